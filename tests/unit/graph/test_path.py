"""The critical path as pieces, on jobs drawn by hand; and the failures of a path that has one rank only."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.graph.kinds import GRADES, EdgeKind
from longpole.graph.path import UNEXPLAINED
from longpole.vocabulary.objects import OBJECTS
from tests.build import LOADER, Script
from tests.path_laws import check_path
from tests.run_graphs import Run, replayed


def _shown(run: Run, unit: int) -> list[tuple[float, str, str]]:
    """Return the pieces of a unit as (µs, object, kind)."""
    mine = run.path.take(run.path.unit == unit)
    names = {int(kind): kind.name.lower() for kind in EdgeKind} | {UNEXPLAINED: "unexplained"}
    return [
        (dur / 1000, OBJECTS[charged], names[kind])
        for dur, charged, kind in zip(mine.dur_ns.tolist(), mine.object.tolist(), mine.kind.tolist(), strict=True)
    ]


def _job(returns: float = 5) -> Script:
    script = Script(base_ns=0)
    for step in range(3):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.span(LOADER, at + 10, at + 310)
        script.kernel(at + 410, at + 800, script.launch(at + 400, at + 405))
        script.sync(at + 420, at + 800 + returns)
    return script


def test_a_step_tells_its_story_in_order() -> None:
    run = replayed(_job())

    assert _shown(run, 1) == [
        (10, "host", "section"),
        (300, "input", "section"),
        (90, "host", "section"),
        (10, "host", "launch"),
        (390, "compute", "duration"),
        (5, "host", "return"),
        (195, "host", "section"),
    ]
    check_path(run.graph, run.replayed)


def test_what_is_kept_is_host_time_and_what_is_named_is_an_activity() -> None:
    pieces = replayed(_job()).path
    unit = pieces.take(pieces.unit == 1)

    assert unit.kept.tolist() == [True, True, True, False, False, False, True]
    assert unit.named.tolist() == [False, True, False, False, False, False, False]
    assert [GRADES[grade] for grade in unit.grade.tolist()] == [
        *["ordered"] * 3,
        "recorded",
        "recorded",
        "ordered",
        "ordered",
    ]


@pytest.mark.parametrize(("returns", "unexplained"), [(28.0, 0.0), (28.5, 20.5), (100.0, 92.0)])
def test_what_exceeds_an_edge_by_more_than_twenty_microseconds_is_unexplained(
    returns: float, unexplained: float
) -> None:
    """A return is given 8 µs; the wait comes back later, with too few samples to learn from."""
    pieces = replayed(_job(returns)).path
    unit = pieces.take(pieces.unit == 1)

    assert unit.dur_ns[unit.kind == UNEXPLAINED].sum() / 1000 == unexplained
    assert (unit.object[unit.kind == UNEXPLAINED] == OBJECTS.index("unknown")).all()


def test_the_unit_that_is_alone_takes_from_its_start_to_its_completion() -> None:
    script = Script(base_ns=0)
    script.step(0, 100, 1000)
    script.kernel(110, 1200, script.launch(101, 103))

    run = replayed(script)

    assert run.replayed.measured_ns.tolist() == [1_100_000]
    check_path(run.graph, run.replayed)


# --- across ranks -----------------------------------------------------------------------------------------------


def _peers(stall_us: float = 0.0, *, steps: int = 6) -> list[Script]:
    """Draw two ranks whose computation fills the step and hides nearly all communication.

    stream 7    ├──────── 8 kernels of 1,000 µs ────────┤ ├ optimizer, 440 ┤
    stream 20      ├ r ┤  ├ r ┤   … seven all-reduces of 640 µs …

    Rank 1 has `stall_us` of host time without any record in every step, before its first launch.
    """
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    now = [0.0, 0.0]
    for step in range(steps):
        starts = list(now)
        hosts = [at + 200 + stall for at, stall in zip(now, (0.0, stall_us), strict=True)]
        reduced = 0.0
        for k in range(8):
            for script, host in zip(scripts, hosts, strict=True):
                call = host + 30 * k
                script.kernel(host + 6 + 1002 * k, host + 1006 + 1002 * k, script.launch(call, call + 4), name="gemm")
            if k == 7:
                break
            # The gradients of kernel k are reduced while the next ones run.
            arrive = [max(host + 1009 + 1002 * k, reduced + 1) for host in hosts]
            reduced = max(arrive) + 640
            for script, host, arrived in zip(scripts, hosts, arrive, strict=True):
                call = host + 30 * k
                script.call("cudaStreamWaitEvent", call + 5, call + 6)
                script.collective(arrived, reduced, script.launch(call + 8, call + 12), stream=20)
        for r, (script, host) in enumerate(zip(scripts, hosts, strict=True)):
            script.kernel(host + 8022, host + 8462, script.launch(host + 260, host + 264), name="adam")
            done = max(host + 8462, reduced) + 6
            script.sync(host + 300, done, name="cudaDeviceSynchronize")
            now[r] = done + 50
            script.step(step, starts[r], now[r])
    return scripts


def _shares(run: Run) -> dict[str, float]:
    sums = np.bincount(run.path.object, run.path.dur_ns, len(OBJECTS))
    return {name: float(sums[code] / sums.sum()) for code, name in enumerate(OBJECTS) if sums[code]}


def test_a_job_that_computes_and_hides_its_communication_is_called_so() -> None:
    """Compute is busy for more than nine tenths of the step; a path over streams alone said 66 % communication."""
    run = replayed(*_peers())
    shares = _shares(run)

    check_path(run.graph, run.replayed)
    assert shares["compute"] > 0.93
    assert shares.get("collective", 0.0) < 0.03
    assert run.saving_us("--set collective=0") < 0.03 * run.replayed_us
    # Of 8 x 1,000 and 440 µs a fifth; halved, computation would no longer hide 7 x 640 µs of communication.
    assert run.saving_us("--set compute=0.8x") == pytest.approx(0.2 * 8440, abs=5)
    assert run.saving_us("--set compute=0.5x") < 0.5 * 8440 - 500


def test_a_stall_without_any_record_is_on_the_path_as_host_time() -> None:
    """Three milliseconds a step on rank 1; a path that gives gaps no weight found the same total for both ranks."""
    run, free = replayed(*_peers(3000.0)), replayed(*_peers())
    host = run.path.take((run.path.object == OBJECTS.index("host")) & (run.path.rank == 1))
    units = len(run.replayed.measured_ns)

    check_path(run.graph, run.replayed)
    assert run.replayed.judgement.unexplained_share == 0
    assert run.replayed_us - free.replayed_us == pytest.approx(3000, abs=5)
    assert host.dur_ns.sum() / units / 1000 == pytest.approx(3000 + 200, rel=0.05)
    # Besides the stall, a step of rank 1 has 260 µs of host time on the path; rank 0 is ahead by more at first.
    assert 3000 <= run.saving_us("--set host&rank:1=0") <= 3000 + 262
    assert run.saving_us("--set host=0") == pytest.approx(3000 + 260, abs=15)
    assert run.saving_us("--set host&rank:0=0") == 0


def test_the_path_continues_on_the_rank_that_came_last() -> None:
    """From the all-reduce's end, on whatever rank it is looked at, back to the rank that computes longer."""
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    for step in range(4):
        at = 2000.0 * step
        for script, compute in zip(scripts, (400.0, 1500.0), strict=True):
            script.step(step, at, at + 2000)
            script.kernel(at + 10, at + 10 + compute, script.launch(at, at + 3))
            script.collective(at + 11 + compute, at + 1611, script.launch(at + 5, at + 8), stream=7)
            script.sync(at + 20, at + 1616, name="cudaDeviceSynchronize")
    run = replayed(*scripts)
    computed = run.path.take(run.path.object == OBJECTS.index("compute"))
    collective = run.path.take(run.path.object == OBJECTS.index("collective"))

    assert computed.rank.tolist() == [1] * 3
    assert (computed.dur_ns == 1_500_000).all()
    assert collective.dur_ns.sum() / 3 == 100_000
