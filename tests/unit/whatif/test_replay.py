"""The unchanged replay and what is said of it."""

from __future__ import annotations

import pytest

from longpole.graph.kinds import CONTROL_GROUPS, EdgeKind
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from longpole.whatif.replay import control_error, find_window, median_ns, replay
from tests.build import LOADER, Script
from tests.run_graphs import Run, joined, replayed


def _job(*, waits: float = 908, gap: float = 0.0, steps: int = 4) -> Script:
    """Draw steps of 1,000 µs: load, launch, a kernel that ends at 900, a wait that returns at `waits`."""
    script = Script(base_ns=0)
    for step in range(steps):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.span(LOADER, at + 10, at + 310)
        script.kernel(at + 406 + gap, at + 900, script.launch(at + 400, at + 405))
        script.sync(at + 420, at + waits)
    return script


def test_a_job_that_is_explained_replays_exactly_and_is_usable() -> None:
    judgement = replayed(_job()).replayed.judgement

    assert judgement.error_of_median == 0
    assert judgement.error_units.median == judgement.error_units.max == 0
    assert judgement.unexplained_share == judgement.guess_share == 0
    assert judgement.kept_share == pytest.approx(0.4 + 0.092)
    assert judgement.kept_named_share == pytest.approx(0.3)
    assert (judgement.verdict, judgement.units, judgement.orphans) == ("usable", 3, 0)


def test_the_first_unit_has_no_period_and_does_not_count() -> None:
    run = replayed(_job())

    assert run.replayed.window.names == ("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3")
    assert run.replayed.measured_ns.tolist() == [1_000_000] * 3


def test_the_error_is_signed() -> None:
    """Waits come back 65 µs late, too seldom to learn from: the replay is faster by all but the 8 µs it knows."""
    judgement = replayed(_job(waits=965)).replayed.judgement

    assert judgement.error_of_median == pytest.approx(-57 / 1000)
    assert judgement.unexplained_share == pytest.approx(57 / 1000)


def test_a_job_of_which_too_much_is_unexplained_is_refused() -> None:
    """A kernel begins 160 µs after its launch, for no recorded reason."""
    run = replayed(_job(gap=160))

    assert run.replayed.judgement.verdict == "refused"
    assert "explained by nothing recorded" in run.replayed.why_refused
    assert run.predict("--set input=0").refused == run.replayed.why_refused


def test_a_job_that_replays_wrong_is_refused() -> None:
    """The same below a tenth of the path, but above a twentieth of the period."""
    run = replayed(_job(gap=80))

    assert run.replayed.judgement.verdict == "refused"
    assert "misses its median period by -8.0%" in run.replayed.why_refused


def test_a_job_of_which_nearly_everything_is_kept_was_not_tested() -> None:
    script = Script(base_ns=0)
    for step in range(4):
        script.step(step, 1000 * step, 1000 * step + 1000)
        script.op("aten::mul", 1000 * step, 1000 * step + 990)

    judgement = replayed(script).replayed.judgement

    assert (judgement.error_of_median, judgement.verdict) == (0, "not tested")
    assert judgement.kept_share == 1


def test_thresholds_are_settings() -> None:
    strict = Settings(replay_error_max_share=0.01, unexplained_max_share=0.5)

    assert replayed(_job(waits=965), settings=strict).replayed.judgement.verdict == "refused"
    assert replayed(_job(), settings=Settings(untested_kept_share=0.4)).replayed.judgement.verdict == "not tested"


def test_without_a_steady_unit_there_is_no_replay() -> None:
    graph = joined(_job())
    assert not isinstance(graph, Unknown)

    found = replay(graph, [], Settings())

    assert isinstance(found, Unknown)
    assert "no steady unit" in found.unknown


def test_units_in_between_that_are_not_steady_are_left_out() -> None:
    graph = joined(_job())
    assert not isinstance(graph, Unknown)

    window = find_window(graph, ["ProfilerStep#1", "ProfilerStep#3", "unheard of"])

    assert window.place.tolist() == [1, 3]
    assert window.periods_ns(graph, graph.time_ns).tolist() == [1_000_000] * 2


def test_the_median_is_rounded_to_whole_nanoseconds() -> None:
    import numpy as np

    assert median_ns(np.array([1, 4, 2])) == 2
    assert isinstance(median_ns(np.array([1, 2])), int)


# --- the control law ------------------------------------------------------------------------------------------------


def _effects(run: Run) -> dict[str, float]:
    on_path = set(run.path.kind.tolist())
    return {
        name: control_error(run.graph, run.replayed.window, kinds)
        for name, kinds in CONTROL_GROUPS.items()
        if on_path & {int(kind) for kind in kinds}
    }


def test_without_a_kind_of_edge_that_the_path_crosses_the_error_rises() -> None:
    run = replayed(_job())

    assert set(_effects(run)) == {"launch", "blocking call"}
    assert min(_effects(run).values()) > 0.1
    assert run.replayed.judgement.without_effect == []


def test_a_kind_without_effect_is_named() -> None:
    """A device that ends each unit by the same lag: launched or not, the period is the host's."""
    script = Script(base_ns=0)
    for step in range(5):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.span(LOADER, at + 5, at + 940)
        script.kernel(at + 960, at + 1300, script.launch(at + 950, at + 953))
    run = replayed(script)

    assert EdgeKind.LAUNCH in run.path.kind
    assert run.replayed.judgement.without_effect == ["launch"]


def test_points_that_lose_their_edges_do_not_stay_where_they_were_recorded() -> None:
    """All launches deleted: kernels run one behind the other from the start, and the wait finds them done."""
    run = replayed(_job())
    host_us = 1000 - (908 - 420) + 8

    error = control_error(run.graph, run.replayed.window, CONTROL_GROUPS["launch"])

    assert error == pytest.approx((1000 - host_us) / 1000, abs=0.03)
