"""The replay of a small job: program order, who waits for whom, and figures computed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.errors import InputError
from longpole.graph.operations.build import build_operation_graph
from longpole.settings import Settings
from longpole.units import NS_PER_MS
from tests.operation_tables import WORK_MS, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.graph.operations.build import OperationGraph
    from tests.operation_tables import Row

    Build = Callable[[Iterable[Row]], OperationGraph]


def test_a_step_is_replayed_as_it_was(build: Build) -> None:
    """F0 s0 F1 | B0 of stage 1 ends at 41, B0 of stage 0 at 62, … the optimizer at 129 ms: no gap, so no error."""
    graph = build(Job().rows())

    assert graph.measured_steps_ns().tolist() == [129 * NS_PER_MS]
    assert graph.replay_steps_ns(graph.work_ns).tolist() == [129 * NS_PER_MS]
    assert graph.replay_ends_ns(graph.work_ns).tolist() == graph.table.end_ns.tolist()


def test_a_slow_worker_holds_up_all_others(build: Build) -> None:
    graph = build(Job(slow={(1, 0): 2.0}).rows())

    assert graph.replay_steps_ns(graph.work_ns).tolist() == [199 * NS_PER_MS]


def test_every_step_starts_anew(build: Build) -> None:
    graph = build(Job(steps=(3, 9), slow_in={(9, 1, 0): 2.0}).rows())

    assert graph.steps.tolist() == [3, 9]
    assert graph.replay_steps_ns(graph.work_ns).tolist() == [129 * NS_PER_MS, 199 * NS_PER_MS]


def test_the_work_of_communication_is_what_comes_after_the_last_arrival(build: Build) -> None:
    """Stage 1 posts its first receive at 0 ms and gets it at 11; the send is posted at 10."""
    graph = build(Job().rows())
    table = graph.table
    code = next(place for place, kind in enumerate(table.types) if kind.name == "forward-recv")
    first = (table.optype == code) & (table.sequence == 0)

    assert table.duration_ns[first].tolist() == [11 * NS_PER_MS] * 2
    assert graph.work_ns[first].tolist() == [1 * NS_PER_MS] * 2


def test_all_operations_but_the_first_of_a_worker_wait_for_another(build: Build) -> None:
    graph = build(Job().rows())

    waits = np.zeros(len(graph.table), bool)
    waits[graph.order.after] = True

    assert int((~waits).sum()) == 4
    assert set(graph.table.start_ns[~waits].tolist()) == {0}


def test_a_gap_in_the_record_is_not_kept(build: Build) -> None:
    """5 ms in which rank 0 did nothing before its first pass are missing from the replay: that is its error."""
    rows = [dict(row, start_ts=row["start_ts"] + 0.005 * (row["start_ts"] > 0.001)) for row in Job().rows()]
    late = [row | {"start_ts": 0.005, "duration": 0.010} if _is_first_pass(row) else row for row in rows]
    late = [
        row | {"duration": 0.016} if row["optype"] == "forward-recv" and row["seq_id"] == 0 else row for row in late
    ]
    anchor = {**rows[0], "optype": "note", "start_ts": 0.0, "duration": 0.0, "seq_id": 0}

    graph = build([*late, anchor])

    assert graph.measured_steps_ns().tolist() == [134 * NS_PER_MS]
    assert graph.replay_steps_ns(graph.work_ns).tolist() == [129 * NS_PER_MS]


def _is_first_pass(row: Row) -> bool:
    return bool(row["optype"] == "forward-compute" and row["stage"] == 0 and row["seq_id"] == 0)


def test_rounding_of_times_does_not_undo_the_order(build: Build) -> None:
    """Each operation ends 3 µs after the next one starts, as when two clocks of one device are read."""
    rows = [dict(row, duration=row["duration"] + 3e-6) for row in Job().rows()]

    graph = build(rows)

    assert graph.replay_steps_ns(graph.work_ns)[0] == pytest.approx(129 * NS_PER_MS, rel=1e-3)
    assert graph.order.asynchronous == ()


def test_communication_beside_computation_has_a_stream_of_its_own(build: Build) -> None:
    """A gather runs from 1 to 9 ms beside the first pass: the pass does not wait for it."""
    gathers = [
        {**row, "optype": "params-all-gather", "start_ts": 0.001, "duration": 0.008}
        for row in Job().rows()
        if row["optype"] == "optimizer" and row["stage"] == 0
    ]
    graph = build([*Job().rows(), *gathers])

    longer = graph.work_ns.copy()
    code = next(place for place, kind in enumerate(graph.table.types) if kind.name == "params-all-gather")
    of_gather = graph.table.optype == code
    longer[of_gather] = 40 * NS_PER_MS

    assert graph.order.asynchronous == ("params-all-gather",)
    assert graph.replay_steps_ns(graph.work_ns).tolist() == [129 * NS_PER_MS]
    # F1 needs the parameters: it ends at 50 ms instead of 21, and its send has been waited for since 41.
    assert graph.replay_steps_ns(longer).tolist() == [138 * NS_PER_MS]


def test_a_send_that_ended_before_its_receive_began_did_not_wait(build: Build) -> None:
    """A send of 1 ms, received 19 ms later: the receive waits for a late send, and not the other way round."""
    place = [{"step": 1, "rank": stage, "dp_rank": 0, "stage": stage} for stage in (0, 1)]
    graph = build(
        [
            {**place[0], "optype": "forward-compute", "start_ts": 0.0, "duration": 0.01},
            {**place[0], "optype": "forward-send", "start_ts": 0.01, "duration": 0.001},
            {**place[1], "optype": "setup", "start_ts": 0.0, "duration": 0.03},
            {**place[1], "optype": "forward-recv", "start_ts": 0.03, "duration": 0.002},
        ]
    )
    later = graph.work_ns.copy()
    later[0] = 50 * NS_PER_MS

    assert graph.replay_ends_ns(graph.work_ns).tolist() == [ms * NS_PER_MS for ms in (10, 11, 30, 32)]
    assert graph.replay_ends_ns(later).tolist() == [ms * NS_PER_MS for ms in (50, 51, 30, 53)]


def test_how_a_direction_sends_is_told_by_most_of_its_pairs(build: Build) -> None:
    """Two sends end before they are received, so the third one, whose receive has been waiting, does not wait either.

    What that receive takes behind the send's end is its own: 1 ms.
    """
    place = [{"step": 1, "rank": stage, "dp_rank": 0, "stage": stage} for stage in (0, 1)]
    sends = [{**place[0], "optype": "forward-send", "start_ts": at / 1000, "duration": 0.002} for at in (0, 10, 50)]
    receives = [
        {**place[1], "optype": "forward-recv", "start_ts": start / 1000, "duration": lasts / 1000}
        for start, lasts in ((20, 1), (25, 1), (30, 23))
    ]
    graph = build([*sends, *receives])

    assert len(graph.instances.sent) == 3
    assert graph.work_ns.tolist() == [ms * NS_PER_MS for ms in (2, 2, 2, 1, 1, 1)]
    assert graph.replay_ends_ns(graph.work_ns).tolist() == [ms * NS_PER_MS for ms in (2, 4, 6, 3, 5, 7)]


def contradiction(step: int) -> list[Row]:
    """Return a step in which rank 0 gathers, then reduces, and rank 1, whose clock is off, reduces, then gathers."""
    place = {"step": step, "stage": 0, "duration": 1.0}
    return [
        {**place, "rank": 0, "dp_rank": 0, "optype": "params-all-gather", "start_ts": 0.0},
        {**place, "rank": 0, "dp_rank": 0, "optype": "grads-all-reduce", "start_ts": 2.0},
        {**place, "rank": 1, "dp_rank": 1, "optype": "grads-all-reduce", "start_ts": 0.0},
        {**place, "rank": 1, "dp_rank": 1, "optype": "params-all-gather", "start_ts": 2.0},
    ]


def test_times_that_contradict_each_other_in_every_step_are_refused(build: Build) -> None:
    with pytest.raises(InputError, match="contradict each other in every step"):
        build(contradiction(1))


def test_a_step_whose_times_contradict_each_other_costs_itself_only(build: Build) -> None:
    good = [row | {"start_ts": 2.0 * (row["optype"] == "grads-all-reduce")} for row in contradiction(2)]

    graph = build([*contradiction(1), *good])

    assert graph.circular_steps.tolist() == [1]
    assert graph.steps.tolist() == [2]
    assert graph.replay_steps_ns(graph.work_ns).tolist() == [2000 * NS_PER_MS]


def test_work_written_in_other_numbers_gives_the_same_replay(build: Build) -> None:
    """Seconds as float32 of a step, seconds since 1970 as float64 and integer nanoseconds mean the same."""
    rows = Job().rows()
    in_ns = [
        {name: value for name, value in row.items() if name not in ("start_ts", "duration")}
        | {
            "start_ns": 1_700_000_000_000_000_000 + round(row["start_ts"] * 1e9),
            "duration_ns": round(row["duration"] * 1e9),
        }
        for row in rows
    ]
    since_1970 = [row | {"start_ts": row["start_ts"] + 1_700_000_000} for row in rows]

    replays = [build(version) for version in (rows, in_ns, since_1970)]
    times = [graph.replay_steps_ns(graph.work_ns)[0] for graph in replays]

    assert times[:2] == [129 * NS_PER_MS] * 2
    assert times[2] == pytest.approx(129 * NS_PER_MS, abs=20_000)


def test_numbers_are_counted_where_they_are_not_written(build: Build) -> None:
    rows = [{name: value for name, value in row.items() if name != "seq_id"} for row in Job(slow={(1, 0): 2.0}).rows()]

    graph = build(rows)

    assert graph.replay_steps_ns(graph.work_ns).tolist() == [199 * NS_PER_MS]


def test_a_written_group_brings_together_what_no_name_says(build: Build) -> None:
    """An all-to-all of ranks 0 and 2, with its own name and group: without the group nobody waits."""
    base = Job(slow={(0, 0): 2.0}).rows()
    calls = [
        {**row, "optype": "moe-exchange", "kind": "collective", "group": "expert 0", "start_ts": row["start_ts"] + end}
        for row in base
        if row["optype"] == "optimizer" and row["dp_rank"] == 0
        for end in (row["duration"],)
    ]
    graph = build([*base, *calls])

    assert graph.instances.count == build(base).instances.count + 1
    assert len(graph.instances.unknown_members) == 0


def test_an_empty_pipeline_of_one_rank_is_a_job_too(build: Build) -> None:
    rows = [
        {"step": 1, "rank": 0, "dp_rank": 0, "stage": 0, "optype": name, "start_ts": start, "duration": 0.01}
        for name, start in (("forward-compute", 0.0), ("backward-compute", 0.01), ("optimizer", 0.02))
    ]
    graph = build(rows)

    assert graph.replay_steps_ns(graph.work_ns).tolist() == [30 * NS_PER_MS]


def test_two_chunks_on_a_stage_are_matched_by_chunk_and_micro_batch(build: Build) -> None:
    """Chunks 0 and 2 on stage 0, 1 on stage 1: chunk 1's output goes back to stage 0, as the numbers do not say."""
    place = {"step": 1, "dp_rank": 0, "mb_id": 0}
    on = [{**place, "rank": stage, "stage": stage} for stage in (0, 1)]
    rows = [
        {**on[0], "optype": "forward-compute", "mc": 0, "gmc": 0, "start_ts": 0.000, "duration": 0.010},
        {**on[0], "optype": "forward-send", "mc": 0, "gmc": 0, "start_ts": 0.010, "duration": 0.001},
        {**on[1], "optype": "forward-recv", "mc": 0, "gmc": 1, "start_ts": 0.000, "duration": 0.011},
        {**on[1], "optype": "forward-compute", "mc": 0, "gmc": 1, "start_ts": 0.011, "duration": 0.010},
        {**on[1], "optype": "forward-send", "mc": 0, "gmc": 1, "start_ts": 0.021, "duration": 0.001},
        {**on[0], "optype": "forward-recv", "mc": 1, "gmc": 2, "start_ts": 0.011, "duration": 0.011},
        {**on[0], "optype": "forward-compute", "mc": 1, "gmc": 2, "start_ts": 0.022, "duration": 0.010},
    ]
    graph = build(rows)

    assert graph.instances.count == 2
    assert len(graph.instances.unmatched) == 0
    assert graph.replay_steps_ns(graph.work_ns).tolist() == [32 * NS_PER_MS]


def test_settings_decide_what_runs_beside_what(read: Callable[[Iterable[Row]], object]) -> None:
    records = read([dict(row, duration=row["duration"] + 3e-6) for row in Job(work_ms=WORK_MS).rows()])

    strict = build_operation_graph(records.table, Settings(operation_overlap_max_ns=0))  # type: ignore[attr-defined]

    assert strict.order.asynchronous != ()
