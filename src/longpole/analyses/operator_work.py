"""What the operators of a device row had to do: FLOPs and bytes from recorded shapes, and what has none (DESIGN 3.9).

A kernel belongs to the innermost operator around its launch whose work can be counted, and that operator's call is
counted once for all its kernels:

    aten::linear ├────────────────────────────┤       not counted: an operator inside it is
      aten::addmm    ├──────────────────┤             2·M·K·N
        cudaLaunchKernel  ├─┤   ├─┤                   both kernels are the product's

A call whose own shapes do not tell is counted with its partner (`operator_partners`).

Where an operator holds another counted one, it is a composite: kernels that are its own, but of an inner operator of
which no work is known, stay uncounted, for its formula would count the other's work again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from longpole.analyses.operator_partners import find_partners
from longpole.analyses.pieces import RUNG_COMPUTE
from longpole.costs.operator_work.call import parse_call
from longpole.costs.operator_work.count import OPAQUE, count_work, is_countable
from longpole.records.operator_work import OperatorWork, RowWork, UncountedWork
from longpole.timeline.columns import NONE_ID, Kind
from longpole.vocabulary.objects import STAGES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.rungs import DeviceRow
    from longpole.analyses.threads import Threads
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Work
    from longpole.timeline.intervals import Intervals
    from longpole.timeline.timeline import Timeline

    Ints = NDArray[np.int64]

ROWS_KEPT: Final = 200  # of work; what is beyond it is uncounted as `other operators`
UNCOUNTED_KEPT: Final = 30
WHY_NO_RULE: Final = "no rule counts this operator"
WHY_OPAQUE: Final = "its arguments name neither the weights that it reads nor who reads them"
WHY_NO_SHAPES: Final = "its shapes were not recorded"
WHY_ODD_SHAPES: Final = "its recorded shapes or arguments do not tell its work"
WHY_COMPOSITE: Final = "part of an operator whose other parts are counted"
WHY_NO_LAUNCH: Final = "its launch was not recorded"
WHY_NO_OPERATOR: Final = "no operator launched it"
WHY_GRAPH: Final = "replayed from a captured graph, which records no shapes"
WHY_SMALL: Final = "one of many operators with little time each"
WHYS: Final = (
    WHY_NO_LAUNCH,
    WHY_GRAPH,
    WHY_NO_OPERATOR,
    WHY_COMPOSITE,
    WHY_OPAQUE,
    WHY_NO_RULE,
    WHY_NO_SHAPES,
    WHY_ODD_SHAPES,
)
# What kernels' names call element types, where their operator only says that it takes a list of tensors.
_KERNEL_TYPES: Final = (("BFloat16", "bf16"), ("Half", "fp16"), ("double", "fp64"), ("float", "fp32"))
_PERCENT_MAX: Final = 100
_TF32_BIT: Final = 1 << len(_KERNEL_TYPES)
_TRANSFORM_BIT: Final = 2 * _TF32_BIT
_TRANSFORMS: Final = ("winograd", "sp3asmconv", "fft")  # convolutions by fewer products; the second is MIOpen's name
_REDUCED_PRODUCT: Final = ("tf32", "s1688gemm", "s1688tensorop")  # kernels that take 19 of 32 bits


@dataclass(frozen=True, slots=True)
class KernelOwners:
    """Which operator's call each compute kernel of a row belongs to.

    Attributes:
        kernel: `[N]` int64: places among the row's spans, ascending: compute kernels that start within the units.
        owner: `[N]` int64: host row of the call whose work counts for it, -1 for none.
        innermost: `[N]` int64: host row of the innermost operator around its launch, -1 for none.
        composite: `[N]` bool: its owner was taken away because another counted call lies inside it.
        partner: `[N]` int64: host row of the call that its owner is counted with, -1 for none.
    """

    kernel: Ints
    owner: Ints
    innermost: Ints
    composite: NDArray[np.bool_]
    partner: Ints


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What each compute kernel of a row did: the work of the whole call that it belongs to, over that call's kernels.

    Attributes:
        kernel: `[N]` int64: places among the row's spans, ascending.
        call: `[N]` int64: place among the calls, -1 where none of known work owns it.
        why: `[N]` int8: into WHYS, why nothing is known of it; -1 where something is.
        occupancy: `[N]` float64: share of the processors' warps that it fills by the profiler's estimate, -1 for none.
        name: `[C]` int32: name code of each call's operator.
        device_ns: `[C]` int64: durations of each call's kernels.
        work: `[C]` int64: place among `works`.
        works: The distinct work of calls.
    """

    kernel: Ints
    call: Ints
    why: NDArray[np.int8]
    occupancy: NDArray[np.float64]
    name: NDArray[np.int32]
    device_ns: Ints
    work: Ints
    works: list[Work]


def kernel_work(timeline: Timeline, row: DeviceRow, owners: KernelOwners) -> KernelWork:
    """Say kernel by kernel what `measure_work` adds up.

    Args:
        timeline: The record.
        row: The device.
        owners: Which call each of its compute kernels belongs to.
    """
    dur_ns = row.spans.end_ns[owners.kernel] - row.spans.start_ns[owners.kernel]
    calls = _calls(timeline, row, owners, dur_ns)
    counted = [_work(timeline, signature) for signature in calls.signatures]
    works = [one for one in counted if _is_known(one)]
    place = np.cumsum([_is_known(one) for one in counted], dtype=np.int64) - 1
    known = np.array([_is_known(one) for one in counted] or [False])[calls.signature]
    number = np.where(known, np.cumsum(known) - 1, -1)
    call = np.full(len(owners.kernel), -1, np.int64)
    owned = owners.owner >= 0
    call[owned] = number[np.searchsorted(calls.row, owners.owner[owned])]
    why = why_uncounted(timeline, row, owners)
    why[owned & (call < 0)] = WHYS.index(WHY_ODD_SHAPES)
    return KernelWork(
        kernel=owners.kernel,
        call=call,
        why=why,
        occupancy=np.maximum(_occupancy(timeline, row, owners.kernel), -100) / 100,
        name=timeline.host.name[calls.row[known]],
        device_ns=calls.device_ns[known],
        work=place[calls.signature[known]],
        works=[one for one in works if one is not None],
    )


def _is_known(work: Work | None) -> bool:
    return work is not None and (work.flops, work.moved_bytes) != (None, None)


def measure_work(timeline: Timeline, row: DeviceRow, owners: KernelOwners) -> RowWork:
    """Count the work of a row's operators within its units.

    Args:
        timeline: The record.
        row: The device.
        owners: Which call each of its compute kernels belongs to.
    """
    dur_ns = row.spans.end_ns[owners.kernel] - row.spans.start_ns[owners.kernel]
    calls = _calls(timeline, row, owners, dur_ns)
    work = [_work(timeline, signature) for signature in calls.signatures]
    known = np.array([_is_known(one) for one in work] or [False])
    uncounted = _uncounted(timeline, row, owners, dur_ns)
    for place in np.flatnonzero(~known[calls.signature]).tolist():
        held = uncounted.setdefault((timeline.names[int(timeline.host.name[calls.row[place]])], WHY_ODD_SHAPES), [0, 0])
        held[0] += int(calls.kernels[place])
        held[1] += int(calls.device_ns[place])
    rows = _rows(timeline, calls, work)
    for one in rows[ROWS_KEPT:]:
        held = uncounted.setdefault(("other operators", WHY_SMALL), [0, 0])
        held[0] += one.kernels
        held[1] += one.device_ns
    return RowWork(
        compute_ns=int(dur_ns.sum()),
        operators=rows[:ROWS_KEPT],
        uncounted=_longest(uncounted),
        shapes=len(timeline.input_dims.row) > 0,
        stage_ns=_stage_times(row, owners, dur_ns),
    )


def _stage_times(row: DeviceRow, owners: KernelOwners, dur_ns: Ints) -> dict[str, int]:
    total_ns = np.zeros(len(STAGES), np.int64)
    np.add.at(total_ns, row.launch_stage[owners.kernel], dur_ns)
    return {stage: int(one_ns) for stage, one_ns in zip(STAGES, total_ns.tolist(), strict=True) if one_ns}


def kernel_owners(timeline: Timeline, threads: Threads, row: DeviceRow, window: Intervals) -> KernelOwners:
    """Find the call that each compute kernel of the units belongs to.

    Args:
        timeline: The record.
        threads: What its threads did.
        row: The device.
        window: From the first unit's start to the last one's end.
    """
    kernel = _compute_kernels(row, window)
    since = _since(timeline, row, kernel)
    owner = np.full(len(kernel), -1, np.int64)
    innermost = np.full(len(kernel), -1, np.int64)
    composite = np.zeros(len(kernel), np.bool_)
    countable = _countable_rows(timeline)
    linked = np.flatnonzero(since >= 0)
    track = timeline.host.track[since[linked]]
    for code in np.unique(track).tolist():
        mine = linked[track == code]
        cover = threads.cover(code)
        first, parent = cover.first_row, cover.parent
        inner = cover.row_operator[since[mine] - first] - first
        inner = np.where(inner >= 0, inner, -1)
        own = cover.outwards(inner, countable[threads.rows_of(code)])
        taken = _holds_another(own, parent) & (own != inner)
        innermost[mine] = np.where(inner >= 0, inner + first, -1)
        owner[mine] = np.where((own >= 0) & ~taken, own + first, -1)
        composite[mine] = taken & (own >= 0)
    return KernelOwners(kernel, owner, innermost, composite, find_partners(timeline, threads).of(owner))


def _compute_kernels(row: DeviceRow, window: Intervals) -> Ints:
    if len(window.start_ns) == 0:
        return np.empty(0, np.int64)
    low_ns, high_ns = int(window.start_ns[0]), int(window.end_ns[-1])
    start_ns = row.spans.start_ns
    return np.flatnonzero((row.rung == RUNG_COMPUTE) & (start_ns >= low_ns) & (start_ns < high_ns)).astype(np.int64)


def _since(timeline: Timeline, row: DeviceRow, kernel: Ints) -> Ints:
    """Return the host row that each kernel goes back to: its launch, else the operator of its external id, else -1."""
    host, since = timeline.host, row.spans.launch[kernel].copy()
    lost = np.flatnonzero(since == NONE_ID)
    operators = np.flatnonzero((host.kind == Kind.OPERATOR) & (host.external_id != NONE_ID))
    if len(lost) == 0 or len(operators) == 0:
        return since
    # Of operators that share an id the innermost has it last.
    order = operators[np.argsort(host.external_id[operators], kind="stable")]
    ids, asked = host.external_id[order], row.spans.external_id[kernel[lost]]
    place = np.maximum(np.searchsorted(ids, asked, side="right") - 1, 0)
    since[lost] = np.where((ids[place] == asked) & (asked != NONE_ID), order[place], -1)
    return since


def _countable_rows(timeline: Timeline) -> NDArray[np.bool_]:
    """Return which host rows are operators of which work can be counted and shapes are recorded."""
    by_name = np.array([is_countable(name) for name in timeline.names] or [False], np.bool_)
    found = np.zeros(len(timeline.host), np.bool_)
    rows = timeline.input_dims.row
    found[rows] = by_name[timeline.host.name[rows]] & (timeline.host.kind[rows] == Kind.OPERATOR)
    return found


def _holds_another(own: Ints, parent: Ints) -> NDArray[np.bool_]:
    """Return which of the calls enclose another one of them."""
    calls = np.unique(own[own >= 0])
    holds = np.zeros(len(parent) + 1, np.bool_)  # the last place stands for no call
    at = parent[calls]
    while len(at := np.unique(at[at >= 0])):
        at = at[~holds[at]]
        holds[at] = True
        at = parent[at]
    return holds[own]


class _Signature(NamedTuple):
    """What decides the work of a call: codes of what it and its partner are (-1 without one), and kernels' names."""

    call: tuple[int, ...]
    partner: tuple[int, ...]
    marks: int


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls that own kernels, all columns of one length but the signatures.

    Attributes:
        row: `[C]` int64: host row, ascending.
        signature: `[C]` int64: place among `signatures`.
        stage: `[C]` int64: code into STAGES.
        kernels, device_ns, host_ns, occupied_ns, occupancy_ns: `[C]` int64: of each call, as in `OperatorWork`.
    """

    signatures: list[_Signature]
    row: Ints
    signature: Ints
    stage: Ints
    kernels: Ints
    device_ns: Ints
    host_ns: Ints
    occupied_ns: Ints
    occupancy_ns: Ints


def _calls(timeline: Timeline, row: DeviceRow, owners: KernelOwners, dur_ns: Ints) -> _Calls:
    """Add the kernels up by call; each distinct call is described once, for programs repeat few shapes many times."""
    owned = np.flatnonzero(owners.owner >= 0)
    calls, first, inverse = np.unique(owners.owner[owned], return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    kernel, host = owners.kernel[owned], timeline.host

    def total(values: Ints) -> Ints:
        result = np.zeros(len(calls), np.int64)
        np.add.at(result, inverse, values)
        return result

    marks = np.zeros(len(calls), np.int64)
    np.bitwise_or.at(marks, inverse, _marks(timeline, row)[row.spans.name[kernel]])
    columns = [*_described(timeline, calls), *_described(timeline, owners.partner[owned][first]), marks]
    distinct, signature = np.unique(np.stack(columns), axis=1, return_inverse=True)
    percent = _occupancy(timeline, row, kernel)
    has = percent >= 0
    return _Calls(
        signatures=[_Signature(tuple(one[:5]), tuple(one[5:10]), one[10]) for one in distinct.T.tolist()],
        row=calls,
        signature=signature.reshape(-1),
        stage=row.launch_stage[kernel[first]].astype(np.int64),
        kernels=total(np.ones(len(kernel), np.int64)),
        device_ns=total(dur_ns[owned]),
        host_ns=host.end_ns[calls] - host.start_ns[calls],
        occupied_ns=total(np.where(has, dur_ns[owned], 0)),
        occupancy_ns=total(np.where(has, np.rint(dur_ns[owned] * percent / 100), 0).astype(np.int64)),
    )


def _described(timeline: Timeline, rows: Ints) -> list[Ints]:
    """Return the codes of what calls are: name, shapes, types, other arguments, strides; -1 for what is not there."""
    places = (timeline.input_dims, timeline.input_types, timeline.input_values, timeline.input_strides)
    names = np.where(rows >= 0, timeline.host.name[rows], -1)
    return [names.astype(np.int64), *(one.codes(rows).astype(np.int64) for one in places)]


def _read_call(timeline: Timeline, codes: tuple[int, ...], list_dtype: str = "") -> Call | None:
    """Return the call that codes describe, None where there is none or its shapes cannot be read."""
    if codes[0] < 0:
        return None
    places = (timeline.input_dims, timeline.input_types, timeline.input_values, timeline.input_strides)
    shapes, types, values, strides = (
        source.texts[code] if code >= 0 else "" for source, code in zip(places, codes[1:], strict=True)
    )
    return parse_call(timeline.names[codes[0]], shapes, types, values, list_dtype, strides)


def _marks(timeline: Timeline, row: DeviceRow) -> Ints:
    """Return, for each name, which element types it shows if a kernel bears it, as bits: `[names]` int64."""
    found = np.zeros(len(timeline.names), np.int64)
    for code in np.unique(row.spans.name).tolist():
        name = timeline.names[code]
        bits = sum(1 << place for place, (mark, _) in enumerate(_KERNEL_TYPES) if mark in name)
        bits |= _TF32_BIT if any(mark in name for mark in _REDUCED_PRODUCT) else 0
        found[code] = bits | (_TRANSFORM_BIT if any(mark in name.lower() for mark in _TRANSFORMS) else 0)
    return found


def _occupancy(timeline: Timeline, row: DeviceRow, kernel: Ints) -> NDArray[np.float64]:
    """Return each kernel's occupancy in percent, -1 where it is not known."""
    values = np.array([*(_percent(text) for text in timeline.occupancy.texts), -1.0])
    return values[timeline.occupancy.codes(row.rows[kernel])]


def _percent(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return -1.0
    # A kernel that ran filled something: 0 says that there is no estimate.
    return found if 0 < found <= _PERCENT_MAX else -1.0


def _work(timeline: Timeline, signature: _Signature) -> Work | None:
    """Return the work of all calls of a signature."""
    seen = {dtype for place, (_, dtype) in enumerate(_KERNEL_TYPES) if signature.marks >> place & 1}
    list_dtype = seen.pop() if len(seen) == 1 else ""
    call = _read_call(timeline, signature.call, list_dtype)
    work = count_work(call, _read_call(timeline, signature.partner)) if call is not None else None
    if work is not None and work.family == "convolution" and signature.marks & _TRANSFORM_BIT:
        work = replace(work, flops=None)  # how many it computes is the library's affair
    if work is None or work.processor != "tensor" or work.dtype not in ("fp32", "fp64"):
        return work
    # Products of full 32-bit numbers run on vector units, unless the kernel's name says that it drops bits.
    if work.dtype == "fp32" and signature.marks & _TF32_BIT:
        return replace(work, dtype="tf32")
    return replace(work, processor="vector")


def _rows(timeline: Timeline, calls: _Calls, work: list[Work | None]) -> list[OperatorWork]:
    """Add calls up by operator, stage and element type, the longest first."""
    groups: dict[tuple[object, ...], OperatorWork] = {}
    pairs, inverse = np.unique(np.stack([calls.signature, calls.stage]), axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(pairs.shape[1] + 1))
    for place, (signature, stage) in enumerate(pairs.T.tolist()):
        one, mine = work[signature], order[bounds[place] : bounds[place + 1]]
        if one is None or (one.flops is None and one.moved_bytes is None):
            continue
        name = timeline.names[calls.signatures[signature].call[0]]
        key = (name, stage, one.dtype, one.processor, one.flops is None, one.moved_bytes is None, one.at_least)
        if key not in groups:
            row = int(calls.row[mine[0]])
            groups[key] = OperatorWork(
                name=name,
                family=one.family,
                stage=STAGES[stage],
                processor=one.processor,
                dtype=one.dtype,
                at_least=one.at_least,
                start_ns=int(timeline.host.start_ns[row]),
                event=int(timeline.host.event[row]),
            )
        _add(groups[key], calls, mine, one)
    return sorted(groups.values(), key=lambda one: (-one.device_ns, one.name, one.stage, one.dtype))


def _add(group: OperatorWork, calls: _Calls, mine: NDArray[np.intp], work: Work) -> None:
    group.calls += len(mine)
    group.kernels += int(calls.kernels[mine].sum())
    group.device_ns += int(calls.device_ns[mine].sum())
    group.host_ns += int(calls.host_ns[mine].sum())
    group.occupied_ns += int(calls.occupied_ns[mine].sum())
    group.occupancy_ns += int(calls.occupancy_ns[mine].sum())
    if work.flops is not None:
        group.flops = (group.flops or 0) + len(mine) * work.flops
    if work.moved_bytes is not None:
        group.moved_bytes = (group.moved_bytes or 0) + len(mine) * work.moved_bytes


def _uncounted(
    timeline: Timeline, row: DeviceRow, owners: KernelOwners, dur_ns: Ints
) -> dict[tuple[str, str], list[int]]:
    """Return kernels without an owner by what they are called and why: how many, and their time."""
    why = why_uncounted(timeline, row, owners)
    places = np.flatnonzero(why >= 0)
    by_kernel = np.isin(why[places], [WHYS.index(one) for one in (WHY_NO_LAUNCH, WHY_GRAPH, WHY_NO_OPERATOR)])
    kernel_name = row.spans.name[owners.kernel[places]]
    name = kernel_name if len(timeline.host) == 0 else timeline.host.name[owners.innermost[places]]
    named = np.stack([np.where(by_kernel, kernel_name, name).astype(np.int64), why[places].astype(np.int64)])
    found, inverse, count = np.unique(named, axis=1, return_inverse=True, return_counts=True)
    total_ns = np.zeros(found.shape[1], np.int64)
    np.add.at(total_ns, inverse.reshape(-1), dur_ns[places])
    return {
        (timeline.names[code], WHYS[reason]): [held, held_ns]
        for (code, reason), held, held_ns in zip(found.T.tolist(), count.tolist(), total_ns.tolist(), strict=True)
    }


def why_uncounted(timeline: Timeline, row: DeviceRow, owners: KernelOwners) -> NDArray[np.int8]:
    """Return why nothing is known of what each kernel does: `[N]` int8 into WHYS, -1 of those with an owner."""
    inner, launch = owners.innermost, row.spans.launch[owners.kernel]
    host_names = timeline.host.name
    replays = np.array(["GraphLaunch" in name for name in timeline.names] or [False], np.bool_)
    countable = np.array([is_countable(name) for name in timeline.names] or [False], np.bool_)
    opaque = np.array([name in OPAQUE for name in timeline.names] or [False], np.bool_)
    of_graph, by_rule, hidden = (np.zeros(len(inner), np.bool_) for _ in range(3))
    launched, inside = launch != NONE_ID, inner >= 0
    of_graph[launched] = replays[host_names[launch[launched]]]
    by_rule[inside] = countable[host_names[inner[inside]]]
    hidden[inside] = opaque[host_names[inner[inside]]]
    has_shapes = timeline.input_dims.codes(inner) >= 0
    cases = (
        (owners.owner >= 0, None),
        (~launched & ~inside, WHY_NO_LAUNCH),
        (of_graph, WHY_GRAPH),
        (~inside, WHY_NO_OPERATOR),
        (owners.composite, WHY_COMPOSITE),
        (hidden, WHY_OPAQUE),
        (has_shapes | ~by_rule, WHY_NO_RULE),
    )
    codes = [-1 if why is None else WHYS.index(why) for _, why in cases]
    return np.select([case for case, _ in cases], codes, WHYS.index(WHY_NO_SHAPES)).astype(np.int8)


def _longest(uncounted: dict[tuple[str, str], list[int]]) -> list[UncountedWork]:
    """Return the longest, and all others of one reason together."""
    rows = [UncountedWork(name, why, count, dur_ns) for (name, why), (count, dur_ns) in uncounted.items()]
    rows.sort(key=lambda one: (-one.device_ns, one.name, one.why))
    rest: dict[str, UncountedWork] = {}
    for one in rows[UNCOUNTED_KEPT:]:
        held = rest.setdefault(one.why, UncountedWork("others", one.why, 0, 0))
        held.kernels += one.kernels
        held.device_ns += one.device_ns
    return [*rows[:UNCOUNTED_KEPT], *rest.values()]
