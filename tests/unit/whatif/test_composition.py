"""What a replayed path is made of, before and after changes."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.timeline.intervals import Intervals
from longpole.vocabulary.objects import OBJECTS
from longpole.whatif.composition import Alteration, time_left_ns
from tests.build import LOADER, Script
from tests.run_graphs import Run, replayed


def _run() -> Run:
    script = Script(base_ns=0)
    for step in range(5):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.span(LOADER, at + 10, at + 310)
        script.kernel(at + 410, at + 900, script.launch(at + 400, at + 405))
        script.sync(at + 420, at + 905)
    return replayed(script)


RUN = _run()


def test_the_parts_of_a_replayed_path_add_up_to_its_periods() -> None:
    path = RUN.replayed.path

    assert path.part_ns.sum() == pytest.approx(RUN.replayed.replayed_ns.sum())
    assert {name: sum_ns for name, sum_ns in zip(OBJECTS, path.by_object_ns().tolist(), strict=True) if sum_ns} == {
        "compute": 4 * 490_000,
        "input": 4 * 300_000,
        "host": pytest.approx(4 * 210_000),
    }


@pytest.mark.parametrize(
    ("change", "after"),
    [
        ("--set input=0", {"compute": 490_000, "host": 210_000}),
        ("--set input=0.5x", {"compute": 490_000, "host": 210_000, "input": 150_000}),
        ("--set input=+100us", {"compute": 490_000, "host": 210_000, "input": 400_000}),
        ("--set input=-100us", {"compute": 490_000, "host": 210_000, "input": 200_000}),
        ("--set compute=0.5x", {"compute": 245_000, "host": 210_000, "input": 300_000}),
        ("--set compute=2x", {"compute": 980_000, "host": 210_000, "input": 300_000}),
        ("--prefetch input", {"compute": 490_000, "host": 210_000, "input": 300_000}),
    ],
)
def test_a_saving_comes_from_what_was_changed(change: str, after: dict[str, int]) -> None:
    found = RUN.predict(change)

    assert found.before_ns == {"compute": 490_000, "host": 210_000, "input": 300_000}
    assert found.after_ns == pytest.approx(after, abs=2)
    assert sum(found.after_ns.values()) == pytest.approx(found.predicted_mean_ns, abs=len(OBJECTS))


def test_two_changes_of_one_activity_leave_the_product() -> None:
    found = RUN.predict("--set input=0.5x", "--set name:DataLoader=0.5x")

    assert found.after_ns["input"] == pytest.approx(75_000)
    assert found.after_ns["host"] == pytest.approx(210_000)


def _time(*pairs: tuple[int, int]) -> Intervals:
    return Intervals(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))


def _left(time: Intervals, *earlier: tuple[Intervals, float]) -> list[float]:
    changes = [Alteration(0, 0, when, factor) for when, factor in earlier]
    return time_left_ns(time, np.array([0, 50]), np.array([50, 100]), changes).tolist()


def test_time_is_left_where_no_change_took_it() -> None:
    whole = _time((0, 100))

    assert _left(whole) == [50, 50]
    assert _left(whole, (_time((40, 60)), 0.0)) == [40, 40]
    assert _left(whole, (_time((40, 60)), 0.5), (_time((0, 50)), 0.0)) == [0, 45]
    assert _left(whole, (_time((40, 60)), 0.5), (_time((40, 60)), 0.5)) == [42.5, 42.5]
    assert _left(_time((45, 55)), (_time((40, 60)), 2.0), (_time((0, 50)), 0.5)) == [5, 10]
    assert _left(_time(), (whole, 0.5)) == [0, 0]
    assert _left(whole, (_time(), 0.5)) == [50, 50]


def test_a_change_of_each_of_many_units_is_no_deep_recursion() -> None:
    """Eleven hundred units, each halved by itself, and all of them halved again."""
    units = [Alteration(0, 0, _time((10 * k, 10 * k + 10)), 0.5) for k in range(1100)]
    whole = _time((0, 11_000))

    left = time_left_ns(whole, np.array([0]), np.array([11_000]), [*units, Alteration(0, 0, whole, 0.5)])

    assert left.tolist() == [2750]
