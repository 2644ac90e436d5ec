"""What follows from the figures: take the faster path, or tune what takes most; correctness comes first (bench-io B8).

Paths are compared where they promise the same: loads from one state of the page cache, saves of one durability. The
samples of a round are pairs, since a round takes every path once, in random order.
"""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Final

from longpole.bench.io.catalogue import FSYNC, GUEST_COLD, WARM
from longpole.records.bench_io import IoDecision
from longpole.stats.intervals import paired_interval
from longpole.units import format_ns, write_binary_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.records.bench_io import BenchIo, IoCase, IoExposure, IoPath

THRESHOLD: Final = 0.03  # DESIGN 3.12
IO_BUDGET: Final = 0.02  # of the time between two saves: bench-io B8
_LATENCY_RULES: Final = 0.5  # of the service time: bench-io B8
_AT_THE_CEILING: Final = 0.8  # of the rate of plain reads and writes: bench-io B8
_FEWEST_PAIRS: Final = 5  # bench-io A7

_ADVICE: Final = {
    "latency": "fewer and larger objects, or one fsync for many of them",
    "bytes": "move fewer bytes, shard them, or use a faster medium: it runs at what plain reads and writes reach",
    "below_ceiling": "larger or concurrent reads and writes, buffers that are reused, another format",
    "block": "copy the state and save it beside the step",
    "slowdown": "leave the saving thread a core of its own, or save in another process",
}


def decide(record: BenchIo, *, io_budget: float = IO_BUDGET) -> list[IoDecision]:
    """Return what follows for artifact, state, output and input.

    Args:
        record: Paths and exposures; its decisions are not looked at.
        io_budget: The share of the time between two saves that a save may cost.
    """
    size = record.workload.size_bytes
    found = [_faster_load(record, cache, size) for cache in (WARM, GUEST_COLD)]
    found += [_state(record, size), *_output(record, size, io_budget), _many(record)]
    return [decision for decision in found if decision is not None]


def _faster_load(record: BenchIo, cache: str, size: int) -> IoDecision | None:
    choices = [path for path in record.paths if path.object == "artifact" and path.cache == cache]
    usual = next((path for path in choices if path.format == "torch"), None)
    question = f"load {write_binary_bytes(size)}, {cache}"
    return _choose("artifact", question, usual, choices, record) if choices else None


def _choose(what: str, question: str, usual: IoPath | None, choices: Sequence[IoPath], record: BenchIo) -> IoDecision:
    """Accept the fastest correct path if it beats the usual one, else say what to tune."""
    size = record.workload.size_bytes
    made = IoDecision(what, question, "not_measured")
    bad = next((path for path in choices if path.evidence in ("failed", "invalid")), None)
    if usual is None:
        made.says = "the usual path was not measured, so there is nothing to compare with"
        return made
    if usual.evidence != "measured":
        made.verdict, made.says = "invalid", f"{usual.name}: {usual.reason}"
        return made
    made.against = usual.name
    rivals = [path for path in choices if _may_be_chosen(path, size) and path is not usual]
    best = min(rivals, key=lambda path: _median(path, size), default=None)
    change = None if best is None else paired_change(usual.case_of(size), best.case_of(size))
    if best is not None and change is not None and change[0] <= -THRESHOLD and change[2] < 0:
        made.verdict, made.path, made.change = "accept", best.name, change
        made.says = f"{best.name} instead of {usual.name}: {_words(change)}"
        made.next = "one process measured this; longpole bench gate settles it for your program"
    elif best is not None and change is not None and change[1] < 0 and change[0] < THRESHOLD:
        made.verdict, made.path, made.change = "inconclusive", best.name, change
        made.says = f"{best.name} against {usual.name}: {_words(change)}"
        made.next = "more --repeats, or a machine with less else to do"
    else:
        _tune(made, usual, record)
    passed_over = [path for path in choices if path.evidence == "measured" and path.correctness.status == "differs"]
    if passed_over:
        made.says += f". {passed_over[0].name} is left out: it {passed_over[0].correctness.says}"
    if bad is not None:
        made.says += f". {bad.name} is left out: {bad.reason}"
    return made


def _may_be_chosen(path: IoPath, size: int) -> bool:
    """Tell whether a path is a format to choose, measured at this size, and correct in every way."""
    right = path.evidence == "measured" and path.correctness.status == "passed" and path.format != "raw"
    case = path.case_of(size)
    return right and case is not None and case.service is not None


def _tune(made: IoDecision, path: IoPath, record: BenchIo) -> None:
    """Name what takes most of a path."""
    made.verdict, made.path, made.dominant = "tune", path.name, dominant_term(path, record)
    case = path.case_of(record.workload.size_bytes)
    taken = f" ({format_ns(case.service.median_ns)})" if case is not None and case.service is not None else ""
    names = {"latency": "latency", "bytes": "its bytes", "below_ceiling": "the way it moves its bytes"}
    what = names.get(made.dominant, "")
    made.says = f"no measured path beats {path.name}{taken}" + (f"; what takes most is {what}" if what else "")
    made.next = _ADVICE.get(made.dominant, "")


def dominant_term(path: IoPath, record: BenchIo) -> str:
    """Return what takes most of a path at the workload's size: `latency`, `bytes`, `below_ceiling`, or nothing."""
    size = record.workload.size_bytes
    case = path.case_of(size)
    if case is None or case.service is None:
        return ""
    if path.model.status == "fitted":
        piece = next(
            piece for piece in reversed(path.model.pieces) if size >= piece.from_bytes or len(path.model.pieces) == 1
        )
        if piece.latency_ns > _LATENCY_RULES * case.service.median_ns:
            return "latency"
    plain = next(
        (other for other in record.paths if other.format == "raw" and _promises(other) == _promises(path)), None
    )
    ceiling = plain.case_of(size) if plain is not None and plain.evidence == "measured" else None
    if ceiling is None or ceiling.service is None:
        return ""
    return "bytes" if ceiling.service.median_ns >= _AT_THE_CEILING * case.service.median_ns else "below_ceiling"


def _promises(path: IoPath) -> tuple[str, str, str, str]:
    return path.operation, path.cache, path.durability, path.target


def _state(record: BenchIo, size: int) -> IoDecision:
    question = f"move {write_binary_bytes(size)} to the device"
    pageable, pinned = record.path_named("device.upload.pageable"), record.path_named("device.upload.pinned")
    if pageable is None or pinned is None:
        made = IoDecision("state", question, "not_measured", says="no device here")
        copy = record.path_named("memory.copy")
        case = copy.case_of(size) if copy is not None else None
        if case is not None and isinstance(case.gb_per_s, float):
            made.says += f"; a copy in host memory runs at {case.gb_per_s:.1f} GB/s, and says nothing of a device's"
        made.next = "run it where there is one"
        return made
    return _choose("state", question, pageable, [pageable, pinned], record)


def _output(record: BenchIo, size: int, io_budget: float) -> Iterator[IoDecision | None]:
    choices = [
        path
        for path in record.paths
        if path.object == "output" and path.durability == FSYNC and path.target == "new" and path.format != "files"
    ]
    usual = next((path for path in choices if path.format == "torch"), None)
    if choices:
        yield _choose("output", f"save {write_binary_bytes(size)}, fsync", usual, choices, record)
    if record.exposed:
        yield _exposure(record.exposed, io_budget)


def _exposure(exposed: Sequence[IoExposure], io_budget: float) -> IoDecision:
    """Hold the least exposed way of saving against the budget; without a period, against saving in the step."""
    question = f"save {write_binary_bytes(exposed[0].size_bytes)} while the step goes on"
    made = IoDecision("output", question, "invalid")
    right = [one for one in exposed if one.evidence == "measured" and isinstance(one.estimate_ns, int)]
    if not right:
        made.says = next((one.reason for one in exposed if one.reason), "too few pairs")
        return made
    best = min(right, key=lambda one: one.estimate_ns if isinstance(one.estimate_ns, int) else 0)
    made.path = best.method
    if isinstance(best.exposed_share, tuple):
        return _against_budget(made, best, best.exposed_share, io_budget)
    made.verdict = "not_measured"
    if isinstance(best.estimate_ns, int) and isinstance(best.interval_ns, tuple):
        low, high = (format_ns(end) for end in best.interval_ns)
        made.says = f"{best.method} exposes least: {format_ns(best.estimate_ns)} [{low}, {high}] a save"
    made.next = "--every says how often it is saved; then it is held against the budget"
    return made


def _against_budget(
    made: IoDecision, best: IoExposure, share: tuple[float, float, float], io_budget: float
) -> IoDecision:
    estimate, low, high = share
    made.says = f"{best.method}: {estimate:.2%} [{low:.2%}, {high:.2%}] of the time, of {io_budget:.1%} allowed"
    if high < io_budget:
        made.verdict = "accept"
    elif low > io_budget:
        made.verdict = "tune"
        made.dominant = "slowdown" if sum(best.slowdown_ns) > sum(best.block_ns) else "block"
        made.next = _ADVICE[made.dominant]
    else:
        made.verdict, made.next = "inconclusive", "more --pairs"
    return made


def _many(record: BenchIo) -> IoDecision | None:
    """Hold many files against one of as many bytes, where both were measured."""
    many, one = record.path_named("files.read.cold"), record.path_named("raw.read.cold")
    if many is None or one is None:
        many, one = record.path_named("files.read.warm"), record.path_named("raw.read.warm")
    if many is None or one is None or "measured" not in (many.evidence, one.evidence):
        return None
    for case in many.cases:
        whole = one.case_of(case.size_bytes * case.objects)
        change = paired_change(whole, case)
        if change is None:
            continue
        each = write_binary_bytes(case.size_bytes)
        made = IoDecision("input", f"read {case.objects} files of {each}, {many.cache}", "accept", many.name, one.name)
        made.change = change
        made.says = f"against one file of {write_binary_bytes(case.size_bytes * case.objects)}: {_words(change)}"
        if change[0] >= THRESHOLD and change[1] > 0:
            made.verdict, made.dominant, made.next = "tune", "latency", "pack them into larger files"
        elif change[2] >= THRESHOLD:
            made.verdict = "inconclusive"
        return made
    return None


def paired_change(usual: IoCase | None, other: IoCase | None) -> tuple[float, float, float] | None:
    """Return the relative change of the service time from one case to another, with its 90 % interval.

    One log-ratio a round in which both were taken; None below five of them. A t interval over rounds of one process
    says nothing of another process (DESIGN 3.12), which the page says too.
    """
    if usual is None or other is None or usual.service is None or other.service is None:
        return None
    before, after = (
        dict(zip(case.rounds[case.warmups :], case.service_ns[case.warmups :], strict=True)) for case in (usual, other)
    )
    shared = [number for number in before if number in after and before[number] > 0 and after[number] > 0]
    if len(shared) < _FEWEST_PAIRS:
        return None
    found = paired_interval([log(before[number]) for number in shared], [log(after[number]) for number in shared])
    estimate, low, high = (round(exp(value) - 1, 4) for value in (found.estimate, found.low, found.high))
    return estimate, low, high


def _median(path: IoPath, size: int) -> int:
    case = path.case_of(size)
    return case.service.median_ns if case is not None and case.service is not None else 0


def _words(change: tuple[float, float, float]) -> str:
    estimate, low, high = change
    return f"{estimate:+.0%} time [{low:+.0%}, {high:+.0%}]"
