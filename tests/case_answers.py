"""Where each expected value of `tests/cases` stands in a report, and which values only a later part answers.

Values are in microseconds there, in integer nanoseconds here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.analyses.name_book import CALL_CODE, NameBook
from longpole.digest.across import Across, bring_together
from longpole.digest.digest import Selection, digest
from longpole.errors import LongpoleError
from longpole.pipeline.discover import find_traces
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.settings import Settings
from longpole.timeline.columns import NONE_ID, Kind
from longpole.vocabulary.matcher import Vocabulary
from tests.laws import refusal_of, report_on, whole_units

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.records.collectives import CollectiveEntry
    from longpole.report.document import RankEntry, Report
    from longpole.timeline.timeline import Timeline

CASES: Final = Path(__file__).parent / "cases"

_PATH = "needs the critical path"
_CAUSES = "needs the diagnosis of causes"
_FLIGHT = "longpole hang answers it: tests/unit/pipeline/test_hang.py"
_MEMORY = "answered by longpole memory (test_cases_memory.py)"
LATER_OF_CASE: Final = {
    "B044": {"critical_kernels": _PATH},
    "B056": dict.fromkeys(("ranks", "empty", "world_size", "missing"), _FLIGHT),
    "B057": dict.fromkeys(("compare_from", "stuck_at", "not_entered", "mismatches"), _FLIGHT),
    "B064": {"pause_us": _CAUSES},
    "B065": {"idle_us_by_cause_per_step": _CAUSES},
    "B071": dict.fromkeys(("gap_us", "gaps", "gaps_per_step"), _CAUSES),
    "B073": dict.fromkeys(("tokens", "loss_us_max_minus_mean"), _CAUSES),
    "B076": dict.fromkeys(("gap_us_per_step", "other_thread"), _CAUSES),
    "B078": {"slow_steps": _CAUSES},
    "B079": {"startup_us": _CAUSES},
    "B082": {"start_delay_us": _CAUSES},
    "B087": {"slow_steps": _CAUSES},
    "B090": dict.fromkeys(
        (
            "reserved_bytes",
            "free_in_segments_bytes",
            "largest_free_block_bytes",
            "request_bytes",
            "device_free_bytes",
        ),
        _MEMORY,
    ),
}
LATER_EVERYWHERE: Final = {
    "cause": _CAUSES,
    "recoverable_us_per_step": "needs the replay",
    "host_blocked_us_per_step": _CAUSES,
    **dict.fromkeys(
        (
            "cost_us_per_unit",
            "cost_us_per_unit_between",
            "cost_mean_us_per_unit",
            "cost_once_us",
            "cost_statistic",
            "cost_basis",
            "cost_removes",
            "cost_open",
        ),
        "needs the replay",
    ),
}
NOT_KINETO: Final = {
    "B015": "an execution trace",
    "B056": "a pickle",
    "B057": "a pickle",
    "B090": "a memory snapshot",
}


def later(case: str, key: str) -> str | None:
    """Return why a value is not answered yet, None where it must be right."""
    return LATER_OF_CASE.get(case, {}).get(key) or LATER_EVERYWHERE.get(key)


@dataclass(frozen=True)
class Case:
    """One folder of cases: its input, what must come out, and what does."""

    name: str

    @cached_property
    def expected(self) -> dict[str, Any]:
        """The values of expected.json."""
        values: dict[str, Any] = json.loads((CASES / self.name / "expected.json").read_text(encoding="utf-8"))["values"]
        return values

    @cached_property
    def input(self) -> Path:
        """The input: a folder of files, or one file."""
        return next(path for path in sorted((CASES / self.name).iterdir()) if path.name.startswith("input"))

    @cached_property
    def report(self) -> Report:
        """The report on it."""
        return report_on(self.input)

    @cached_property
    def timelines(self) -> list[Timeline]:
        """The records of its ranks, in order of the files' names."""
        settings = Settings()
        context = WorkContext(None, settings, None, None, None)
        files = find_traces([str(self.input)], settings)
        return [timeline for file in files for timeline in read_timelines(file, context)]

    @property
    def row(self) -> RankEntry:
        """The only row of the report."""
        (row,) = self.report.ranks
        return row

    @property
    def timeline(self) -> Timeline:
        """The only record."""
        (timeline,) = self.timelines
        return timeline

    def count_of(self, code: str) -> int:
        """Return how many instances of a finding there are, 0 where there is none."""
        return sum(finding.count for finding in self.report.integrity if finding.code == code)


def ns(value_us: float) -> int:
    """Return whole nanoseconds of microseconds with at most three decimals."""
    return round(value_us * 1000)


def _busy(case: Case, want: float) -> None:
    assert case.row.device_span.busy_ns == ns(want)


def _busy_by_rank(case: Case, want: dict[str, float]) -> None:
    assert {str(row.rank): row.device_span.busy_ns for row in case.report.ranks} == {r: ns(v) for r, v in want.items()}


def _complete_events(case: Case, want: int) -> None:
    timeline = case.timeline
    assert len(timeline.host) + len(timeline.device) + len(timeline.aside) + len(timeline.tasks) == want


def _names(case: Case, want: dict[str, str]) -> None:
    timeline = case.timeline
    order = np.argsort(timeline.host.start_ns[timeline.host.kind == Kind.PYTHON])
    codes = timeline.host.name[timeline.host.kind == Kind.PYTHON][order]
    assert {str(i): timeline.names[code] for i, code in enumerate(codes.tolist(), 1)} == want


def _skipped(case: Case, want: dict[str, int]) -> None:
    found = {f.code.removeprefix("event."): f.count for f in case.report.integrity if f.code.startswith("event.")}
    assert found == want
    assert case.report.run.sources[0].skipped == sum(want.values())


def _step_busy(case: Case, want: list[float]) -> None:
    assert [unit.device_by_time_ns for unit in whole_units(case.row)] == [ns(value) for value in want]


def _between(value_ns: int, want: list[float]) -> None:
    assert ns(want[0]) <= value_ns <= ns(want[1])


def _kernels(case: Case, want: int) -> None:
    counted = sum(row.count for row in case.row.top.kernels)
    assert counted + case.count_of("kernel.time.missing") == want


def _overlapping(case: Case, want: int) -> None:
    device = case.timeline.device
    order = np.lexsort((device.start_ns, device.stream))
    same = device.stream[order][1:] == device.stream[order][:-1]
    assert int((same & (device.start_ns[order][1:] < device.end_ns[order][:-1])).sum()) == want


def _flows(case: Case, want: int) -> None:
    timeline = case.timeline
    assert len(np.unique(timeline.flows.id)) == want
    launch = timeline.device.launch
    assert sorted(launch.tolist()) == sorted(np.unique(launch).tolist())
    assert len(launch) == want
    # Each arrow starts with the call that comes at its own place in time.
    calls_ns = timeline.host.start_ns[launch]
    assert calls_ns.tolist() == sorted(calls_ns.tolist())


def _linked(case: Case) -> int:
    return int((case.timeline.device.launch != NONE_ID).sum())


def _links(case: Case, want: int) -> None:
    assert _linked(case) == want
    assert len(case.timeline.device) == want


def _worst_delay(case: Case, want: float) -> None:
    timeline = case.timeline
    delays_ns = timeline.device.start_ns - timeline.host.start_ns[timeline.device.launch]
    assert int(delays_ns.min()) == ns(want)


def _durations(case: Case, want: dict[str, float]) -> None:
    timeline = case.timeline
    host = timeline.host
    found = {timeline.names[code]: int(dur) for code, dur in zip(host.name, host.end_ns - host.start_ns, strict=True)}
    assert found == {name: ns(value) for name, value in want.items()}


def _unfinished(case: Case, want: list[str]) -> None:
    (finding,) = [finding for finding in case.report.integrity if finding.code == "event.unfinished"]
    assert finding.count == len(want)
    events = json.loads(case.input.read_text(encoding="utf-8"))["traceEvents"]
    assert finding.example.event is not None
    assert events[finding.example.event]["name"] == want[0]


def _launches(case: Case, want: int) -> None:
    timeline = case.timeline
    book = NameBook(timeline, Vocabulary.load(None))
    assert int((book.call[timeline.host.name] == CALL_CODE["launch"]).sum()) == want


def _thread_us(case: Case, want: dict[str, float]) -> None:
    timeline = case.timeline
    total: dict[str, int] = {}
    for track, dur_ns in zip(timeline.host.track, timeline.host.end_ns - timeline.host.start_ns, strict=True):
        tid = str(timeline.tracks[track].tid)
        total[tid] = total.get(tid, 0) + int(dur_ns)
    assert total == {tid: ns(value) for tid, value in want.items()}


def _thread_name(case: Case, want: dict[str, str]) -> None:
    named = {str(track.tid): track.name for track in case.timeline.tracks if track.name}
    assert named == want


def _timed_events(case: Case, want: dict[str, int]) -> None:
    for name in want:
        error = refusal_of(case.input / name)
        assert error is not None
        assert "no timed events" in str(error)
        assert error.exit_code == 3


def _must_refuse(case: Case, want: bool) -> None:
    error = refusal_of(case.input)
    assert (error is not None) == want
    assert isinstance(error, LongpoleError)
    assert error.exit_code == 3


def _ranks(case: Case, want: int | dict[str, dict[str, float]]) -> None:
    if isinstance(want, int):
        assert case.report.run.ranks_present == list(range(want))
        return
    assert {str(row.rank) for row in case.report.ranks} == set(want)
    for row in case.report.ranks:
        device = row.ledger.device
        found = {
            "window_us": row.ledger.wall_ns,
            "compute_us": device.compute_ns,
            "comm_us": device.collective_ns,
            "exposed_comm_us": device.collective_exposed_ns,
            "memcpy_us": device.copy_ns,
            "exposed_memcpy_us": device.copy_exposed_ns,
            "idle_us": device.idle_ns,
        }
        assert found == {key: ns(value) for key, value in want[str(row.rank)].items()}, f"rank {row.rank}"


def _collective_kernels(case: Case, want: int) -> None:
    assert sum(row.count for row in case.row.top.kernels if row.object == "collective") == want


def _compute_kernels(case: Case, want: int) -> None:
    assert sum(row.count for row in case.row.top.kernels if row.object == "compute") == want


def _all_reduce(case: Case, want: dict[str, float]) -> None:
    found = {
        str(row.rank): sum(kernel.sum_ns for kernel in row.top.kernels if kernel.object == "collective")
        for row in case.report.ranks
    }
    assert found == {rank: ns(value) for rank, value in want.items()}


def _across(case: Case) -> Across:
    """Return the run's collectives, matched and split."""
    digests = [digest(t, Vocabulary.load(), Settings(), Selection()) for t in case.timelines]
    across = bring_together(sorted(digests, key=lambda one: one.rank), Settings())
    assert across is not None
    return across


def _arrival_skew(case: Case, want: float) -> None:
    assert _across(case).split.lateness_ns.tolist() == [ns(want)]


def _by_group(case: Case) -> dict[str, list[int]]:
    """Return the operations of each group: `name:[members]` -> their numbers."""
    matched = _across(case).matched
    found: dict[str, list[int]] = {}
    for operation, group in enumerate(matched.group_of.tolist()):
        name = f"{matched.group[group].name}:{matched.group[group].members}"
        found.setdefault(name, []).append(operation)
    return found


def _late_rank(case: Case, want: int | dict[str, int]) -> None:
    split = _across(case).split
    if isinstance(want, int):
        assert split.culprit.tolist() == [want]
        return
    culprits = {name: set(split.culprit[ops].tolist()) for name, ops in _by_group(case).items()}
    assert culprits == {name: {rank} for name, rank in want.items()}


def _skews(case: Case, want: dict[str, list[float]]) -> None:
    split = _across(case).split
    skews = {name: split.lateness_ns[ops].tolist() for name, ops in _by_group(case).items()}
    assert skews == {name: [ns(value) for value in values] for name, values in want.items()}


def _end_skew(case: Case, want: float) -> None:
    ends_ns = _across(case).split.end_ns
    assert int(ends_ns.max() - ends_ns.min()) == ns(want)


def _no_cross_rank_verdict(case: Case, want: bool) -> None:
    assert want is False
    report = case.report
    (entry,) = report.collectives
    assert entry.split == "unknown"
    assert not any((report.findings, report.stragglers, entry.waits))
    for name in ("transfer_ns", "skew_ns", "culprit_rank", "culprit_share", "culprit_by_unit"):
        assert "waiting plus moving, cannot be split" in getattr(entry, name).unknown
        assert f"/collectives/0/{name}" in [unknown.at for unknown in report.unknown]
    assert not isinstance(report.ledger.objects["collective"].waiting_ns, int)


def _only_entry(case: Case) -> CollectiveEntry:
    (entry,) = case.report.collectives
    return entry


def _transfer_per_step(case: Case, want: float) -> None:
    entry = _only_entry(case)
    assert entry.transfer_ns == ns(want) * case.report.unit.count
    # What a rank did not move in, it waited in.
    assert isinstance(entry.skew_ns, int)
    assert entry.duration_ns == entry.skew_ns + ns(want) * case.report.unit.count * len(entry.members_present)


def _culprit_by_unit(case: Case, want: list[int]) -> None:
    assert _only_entry(case).culprit_by_unit == want


def _culprit(case: Case, want: int) -> None:
    entry = _only_entry(case)
    assert entry.culprit_rank == want
    assert entry.waiting_ns_by_rank[str(want)] == 0
    assert case.report.stragglers[0].rank == want


def _waits_per_step(case: Case, want: dict[str, float]) -> None:
    per_step = {rank: ns(value) * case.report.unit.count for rank, value in want.items()}
    assert _only_entry(case).waiting_ns_by_rank == per_step
    for row in case.report.ranks:
        assert row.ledger.objects["collective"].waiting_ns == per_step[str(row.rank)]


def _wait_of_the_others(case: Case, want: float) -> None:
    waits = _only_entry(case).waits
    assert {row.waiting_ns for row in waits} == {ns(want)}
    assert {row.rank for row in waits} == {1, 2, 3}
    assert {row.for_rank for row in waits} == {0}


def _exposed_by_bytes(case: Case, want: dict[str, float]) -> None:
    entry = _only_entry(case)
    shares = case.report.unit.count * len(entry.members_present)
    assert {str(row.bytes): row.exposed_ns for row in entry.by_size} == {s: ns(v) * shares for s, v in want.items()}


def _exposed_by_kind(case: Case, want: dict[str, float]) -> None:
    """Compare kinds as a whole: the case keeps gathers of forward and backward apart, its trace has no backward."""
    shares = case.report.unit.count * len(case.report.ranks)
    found = {entry.kind: entry.exposed_ns for entry in case.report.collectives}
    gathers = want["all_gather_forward"] + want["all_gather_backward"]
    assert found == {
        "all_gather": ns(gathers) * shares,
        "reduce_scatter": ns(want["reduce_scatter"]) * shares,
    }


def _rate(found: object, want: float) -> None:
    assert isinstance(found, float)
    assert abs(found - want) < 0.005


def _kernels_of_launch(case: Case, want: dict[str, int]) -> None:
    timeline = case.timeline
    linked = timeline.device.launch != NONE_ID
    of_launch = timeline.host.correlation[timeline.device.launch[linked]]
    assert {str(key): int(count) for key, count in zip(*np.unique(of_launch, return_counts=True), strict=True)} == want


def _idle_under(case: Case, want: dict[str, float]) -> None:
    found = {entry.name: entry.idle_ns for entry in case.row.gaps_by_activity}
    for name, value in want.items():
        assert found[name] == ns(value), name


def _steps(case: Case, want: list[float]) -> None:
    for row in case.report.ranks:
        assert [unit.wall_ns for unit in whole_units(row)] == [ns(value) for value in want]


def _step_count(case: Case, want: int) -> None:
    assert want == 0
    assert case.report.unit.kind == "trace"


def _window_steps(case: Case, want: list[int]) -> None:
    names = [f"ProfilerStep#{number}" for number in range(want[0], want[1] + 1)]
    for row in case.report.ranks:
        assert [unit.name for unit in whole_units(row)] == names


def _steady(case: Case, want: dict[str, Any]) -> None:
    names = [f"ProfilerStep#{number}" for number in want["marked_one_off"]]
    reasons = {"communicator_setup", "compilation", "per_shape_search", "cold_start"}
    assert case.report.unit.count == want["units"]
    for row in case.report.ranks:
        assert [unit.name for unit in row.units if unit.kind == "head" and unit.name != "head"] == want["moved_to_head"]
    marked = [entry.unit for entry in case.report.unit.left_out if entry.why in reasons]
    assert marked == names


def _steady_step(case: Case, want: float) -> None:
    assert case.report.ledger.wall_ns == ns(want)
    assert case.report.unit.period_ns.median == ns(want)


def _kernels_per_step(case: Case, want: int) -> None:
    assert sum(row.count for row in case.row.top.kernels) == want * case.report.unit.count


def _collectives(case: Case, want: int) -> None:
    for row in case.report.ranks:
        assert sum(kernel.count for kernel in row.top.kernels if kernel.object == "collective") == want


def _bytes_each(case: Case, want: int) -> None:
    assert [row.bytes for row in _only_entry(case).by_size] == [want]


def _bandwidth(case: Case, want: float) -> None:
    (copy,) = [copy for copy in case.row.top.copies if copy.gb_per_s is not None]
    assert copy.gb_per_s is not None
    assert abs(copy.gb_per_s - want) < 0.001


def _graph_launches(case: Case, want: int) -> None:
    (finding,) = [finding for finding in case.report.integrity if finding.code == "graph.nodes_missing"]
    assert f"of {want} graph launches" in finding.message
    assert finding.severity == "void"


def _graph_launches_with_kernels(case: Case, want: int) -> None:
    (finding,) = [finding for finding in case.report.integrity if finding.code == "graph.nodes_missing"]
    assert f"kernels were recorded for {want} of" in finding.message


def _withheld(case: Case, want: bool) -> None:
    assert want is True
    assert not hasattr(case.report.headline, "says")
    assert case.report.long_pole is None
    assert case.row.ledger.objects["unknown"].exposed_ns == case.row.ledger.device.idle_ns


ANSWERS: Final[dict[str, Callable[[Case, Any], None]]] = {
    "gpu_busy_us": _busy,
    "gpu_busy_us_by_rank": _busy_by_rank,
    "gpu_busy_us_between": lambda case, want: _between(case.row.ledger.device.busy_ns, want),
    "gpu_span_us": lambda case, want: _equal(case.row.device_span.span_ns, ns(want)),
    "span_us": lambda case, want: _equal(case.row.device_span.span_ns, ns(want)),
    "window_us": lambda case, want: _equal(case.row.ledger.wall_ns, ns(want)),
    "idle_us": lambda case, want: _equal(case.row.ledger.device.idle_ns, ns(want)),
    "naive_idle_us": lambda case, want: _equal(case.row.ledger.device.idle_ns, ns(want)),
    "idle_us_between": lambda case, want: _between(case.row.ledger.device.idle_ns, want),
    "kernel_us_between": lambda case, want: _between(case.row.ledger.device.compute_ns, want),
    "memcpy_us": lambda case, want: _equal(case.row.ledger.device.copy_ns, ns(want)),
    "exposed_memcpy_us_max": lambda case, want: _between(case.row.ledger.device.copy_exposed_ns, [0, want]),
    "comm_us": lambda case, want: _equal(case.row.ledger.device.collective_ns, ns(want)),
    "compute_us": lambda case, want: _equal(case.row.ledger.device.compute_ns, ns(want)),
    "comm_wait_us": lambda case, want: _equal(case.row.ledger.objects["collective"].waiting_ns, ns(want)),
    "mean_bandwidth_gbps": _bandwidth,
    "bandwidth_gbps": _bandwidth,
    "memcpy_kind": lambda case, want: _equal([copy.direction for copy in case.row.top.copies], [want.lower()]),
    "x_events": _complete_events,
    "used": _complete_events,
    "skipped": _skipped,
    "names": _names,
    "strings_repaired": lambda case, want: _equal(case.count_of("json.string.repaired"), want),
    "names_replaced": lambda case, want: _equal(case.count_of("json.utf8.replaced"), want),
    "group_size": lambda case, want: _equal([args.group_size for args in case.timeline.collectives], [want]),
    "complete_steps": _window_steps,
    "step_gpu_busy_us": _step_busy,
    "cut": lambda case, want: _equal(case.count_of("json.cut") > 0, want),
    "must_refuse": _must_refuse,
    "kernels": _kernels,
    "kernels_without_time": lambda case, want: _equal(case.count_of("kernel.time.missing"), want),
    "kernel_sum_us": lambda case, want: _equal(sum(row.sum_ns for row in case.row.top.kernels), ns(want)),
    "mean_us": lambda case, want: _equal([row.mean_ns for row in case.row.top.kernels], [ns(want)]),
    "kernel_mean_us": lambda case, want: _equal([row.mean_ns for row in case.row.top.kernels], [ns(want)]),
    "flagged": lambda case, want: _equal(case.count_of("kernel.duration.impossible"), want),
    "flagged_frames": lambda case, want: _equal(case.count_of("python.frame.unclosed"), want),
    "overlapping_pairs": _overlapping,
    "flows": _flows,
    "links": _links,
    "negative_delays": lambda case, want: _equal(case.count_of("kernel.before_launch"), want),
    "worst_delay_us": _worst_delay,
    "host_op_us": lambda case, want: _equal([row.sum_ns for row in case.row.top.operators], [ns(want)]),
    "durations_us": _durations,
    "extra_ends": lambda case, want: _equal(case.count_of("event.unmatched_end"), want),
    "unfinished": _unfinished,
    "launches": _launches,
    "kernel_table": lambda case, want: _equal(len(case.timeline.device) > 0, want),
    "nvtx_ranges": lambda case, want: _equal(int((case.timeline.host.kind == Kind.ANNOTATION).sum()), want),
    "launches_without_kernel": lambda case, want: _equal(case.count_of("launch.without_kernel"), want),
    "threads": lambda case, want: _equal(len(np.unique(case.timeline.host.track)), want),
    "thread_us": _thread_us,
    "thread_name": _thread_name,
    "ranks": _ranks,
    "ranks_assumed": lambda case, want: _equal(case.report.run.ranks_assumed, want),
    "ranks_present": lambda case, want: _equal(case.report.run.ranks_present, want),
    "world_size": lambda case, want: _equal(case.report.run.world_size, want),
    "cross_rank_verdict": _no_cross_rank_verdict,
    "timed_events": _timed_events,
    "steps": _step_count,
    "duplicates": lambda case, want: _equal(case.count_of("event.duplicate"), want),
    "kernels_of_launch": _kernels_of_launch,
    "unlinked": lambda case, want: _equal(case.count_of("kernel.unlinked"), want),
    "comm_kernels": _collective_kernels,
    "compute_kernels": _compute_kernels,
    "documents": lambda case, want: _equal(case.count_of("json.documents") + 1, want),
    "allreduce_us": _all_reduce,
    "arrival_skew_us": _arrival_skew,
    "skew_us": _skews,
    "instances": lambda case, want: _equal(len(_across(case).matched), want),
    "transfer_us_per_step": _transfer_per_step,
    "culprit_by_step": _culprit_by_unit,
    "slowest_by_step": _culprit_by_unit,
    "culprit_rank": _culprit,
    "wait_us_per_step": _waits_per_step,
    "wait_us": _wait_of_the_others,
    "exposed_us_by_bytes_per_step": _exposed_by_bytes,
    "exposed_us_per_step": _exposed_by_kind,
    "bytes": lambda case, want: _equal([row.bytes for row in _only_entry(case).by_size], [want]),
    "algbw_gbps": lambda case, want: _rate(_only_entry(case).algbw_gb_per_s, want),
    "busbw_gbps": lambda case, want: _rate(_only_entry(case).busbw_gb_per_s, want),
    "late_rank": _late_rank,
    "end_skew_us": _end_skew,
    "idle_under": _idle_under,
    "steps_us": _steps,
    "window_steps": _window_steps,
    "steady": _steady,
    "steady_step_us": _steady_step,
    "known_shape_step_us": _steady_step,
    "kernels_per_step": _kernels_per_step,
    "collectives": _collectives,
    "collectives_per_step": lambda case, want: _collectives(case, want * case.report.unit.count),
    "bytes_each": _bytes_each,
    "graph_launches": _graph_launches,
    "graph_launches_with_kernels": _graph_launches_with_kernels,
    "verdict_withheld": _withheld,
}


def _equal(found: object, want: object) -> None:
    assert found == want
