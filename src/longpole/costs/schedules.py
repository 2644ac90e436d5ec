"""Pipeline schedules: simulated pass by pass, and the closed forms where those are exact.

A schedule is, for every device, the order of its passes. A pass starts when the device is free and its inputs have
arrived; nothing else decides. So unequal stages, fewer micro-batches than stages, and transfers between stages need no
formula of their own. The orders themselves are in `schedule_orders.py`.

    1F1B    device 0   F F F F . . . B F B F B . B . B          F forward, B backward,
            device 1     F F F . . B F B F B F B . B            I backward of the input,
            device 2       F F . B F B F B F B F B              W backward of the weights

What is called the bubble is the idle time of the busiest device. Where the optimizer waits for all devices, a step
takes from the first start to the last end; where it does not (`zb2p` and `zbv`), a device goes on with the next step
when its own passes are done, and a step takes the longest of the devices' own spans.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.formula import Formula
from longpole.costs.schedule_orders import DUAL, STAGGERED, check_counts, order_of, placement
from longpole.costs.schedule_program import groups_of, program_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.costs.schedule_program import Program

_SC21: Final = "arXiv:2104.04473, section 2.2"
_ZERO_BUBBLE: Final = "arXiv:2401.10241, table 1, and sail-sg/zero-bubble-pipeline-parallelism, README"
_DUALPIPE: Final = "deepseek-ai/DualPipe, README, pipeline bubbles and memory usage"

# F, B, W: forward, full backward, and of that the part for the weights, of one micro-batch on one device.
BUBBLE_1F1B: Final = Formula("(p-1)*(F+B)", "s", _SC21)
BUBBLE_INTERLEAVED: Final = Formula("(p-1)*(F+B)/v", "s", _SC21)
BUBBLE_ZB1P: Final = Formula("(p-1)*(F+B-2*W)", "s", _ZERO_BUBBLE)
BUBBLE_ZB2P: Final = Formula("(p-1)*(F+B-3*W)", "s", _ZERO_BUBBLE)
BUBBLE_DUALPIPE: Final = Formula("(p/2-1)*(FB+B-3*W)", "s", _DUALPIPE)
BUBBLE_OF_IDEAL: Final = Formula("(p-1)/(v*m)", "", _SC21)
BUBBLE_SHARE: Final = Formula("(p-1)/(v*m+p-1)", "", f"{_SC21}: bubble / (bubble + m*(F+B))")
# Micro-batches whose activations the first device holds, in units of its whole share of the layers.
IN_FLIGHT_1F1B: Final = Formula("min(p, m)", "", _SC21)
IN_FLIGHT_INTERLEAVED: Final = Formula("p*(1+(p-1)/(p*v))", "", "arXiv:2205.05198, section 4.2.3")
IN_FLIGHT_DUALPIPE: Final = Formula("p+1", "", _DUALPIPE)
_RUN_GROUPS: Final = 8  # micro-batches per stage: the fifth p are done before any device runs out of forwards
_WEIGHTS_IN_BUBBLE: Final = {"gpipe": 0, "1f1b": 0, "interleaved": 0, "zb1p": 2, "zb2p": 3}  # W taken off F + B


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long the passes of one micro-batch take on one stage.

    Attributes:
        forward_s: Forward, seconds.
        backward_s: The whole backward.
        weight_s: Of the backward the part that computes the gradients of the weights, which nobody waits for.
        pair_s: Of a forward and a backward of two micro-batches run into each other (DualPipe); None for their sum.
    """

    forward_s: float
    backward_s: float
    weight_s: float = 0.0
    pair_s: float | None = None

    def over(self, chunks: int) -> Times:
        """Return the times of one of that many equal parts."""
        pair_s = None if self.pair_s is None else self.pair_s / chunks
        return Times(
            forward_s=self.forward_s / chunks,
            backward_s=self.backward_s / chunks,
            weight_s=self.weight_s / chunks,
            pair_s=pair_s,
        )


class Pass(NamedTuple):
    """One pass of a micro-batch through one part of the model.

    Attributes:
        device: Which of the pipeline's devices.
        part: Which part of the model, counted from its input.
        micro_batch: Which micro-batch.
        kind: `F` forward, `B` backward, `I` and `W` its two halves.
        start_s, end_s: From the start of the step.
    """

    device: int
    part: int
    micro_batch: int
    kind: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What a simulated step looks like.

    Attributes:
        schedule: Its name.
        stages: Devices of the pipeline.
        micro_batches: Of the step.
        passes: Every pass, device by device in order; the two of a pair have the same times.
        makespan_s: From the first start to the last end.
        period_s: What a step takes when one follows the other: the makespan, or the longest span of a device where the
            optimizer does not wait for all of them.
        busy_s: Per device.
        idle_s: Per device: the period less what it is busy.
        peak_in_flight: Per device, the most micro-batches whose activations it holds at once; a device's whole share
            of the layers counts as one. Where a device holds two whole stages (DualPipe), either of them counts as one.
    """

    schedule: str
    stages: int
    micro_batches: int
    passes: tuple[Pass, ...]
    makespan_s: float
    period_s: float
    busy_s: tuple[float, ...]
    idle_s: tuple[float, ...]
    peak_in_flight: tuple[float, ...]

    @property
    def bubble_s(self) -> float:
        """Idle time of the busiest device: period = busiest device + bubble."""
        return self.period_s - max(self.busy_s)

    @property
    def bubble_share(self) -> float:
        """Bubble over period."""
        return self.bubble_s / self.period_s if self.period_s else 0.0


def simulate(
    schedule: str,
    stages: int,
    micro_batches: int,
    times: Times | Sequence[Times],
    chunks: int = 1,
    transfer_s: float = 0,
) -> Timeline:
    """Run a schedule pass by pass.

    Args:
        schedule: One of `layout.SCHEDULES`.
        stages: Devices of the pipeline, p.
        micro_batches: Of the step, m.
        times: Of every part of the model in the order of the layers, or one for devices that are all alike: then of a
            device's whole share, which its chunks divide equally.
        chunks: Parts of the model per device, v (`interleaved`; `zbv` always has two).
        transfer_s: From a pass's end until its output is at the next device; the sending device goes on meanwhile.

    Raises:
        UsageError: The schedule does not exist for these counts.

    >>> simulate("1f1b", 4, 8, Times(forward_s=1.0, backward_s=2.0)).bubble_s
    9.0
    """
    chunks = check_counts(schedule, stages, micro_batches, chunks)
    program = program_of(schedule, stages, micro_batches, chunks)
    lengths = _lengths(program, _times_of_parts(times, stages, chunks))
    rows: list[list[Pass]] = [[] for _ in range(stages)]
    busy_s: list[float] = [0] * stages
    for entry, step, end in zip(program.entries, program.steps, program.ends(lengths, transfer_s), strict=True):
        start = end - lengths[entry.length]
        busy_s[entry.device] += lengths[entry.length]
        rows[entry.device].extend(Pass(entry.device, part, number, kind, start, end) for kind, part, number in step)
    makespan_s = max(row[-1].end_s for row in rows)
    period_s = max(row[-1].end_s - row[0].start_s for row in rows) if schedule in STAGGERED else makespan_s
    return Timeline(
        schedule=schedule,
        stages=stages,
        micro_batches=micro_batches,
        passes=tuple(one for row in rows for one in row),
        makespan_s=makespan_s,
        period_s=period_s,
        busy_s=tuple(busy_s),
        idle_s=tuple(period_s - busy for busy in busy_s),
        peak_in_flight=tuple(peak / chunks for peak in order_of(schedule, stages, micro_batches, chunks).peaks()),
    )


def closed_bubble_s(schedule: str, stages: int, micro_batches: int, times: Times, chunks: int = 1) -> float | None:
    """Return the longest idle time of a device where a closed form is exact, else None.

    It is for devices that are all alike, and transfers that take no time. All devices are then idle equally long, but
    with DualPipe where a pair takes less than its passes: the published form is that of the devices in the middle.

    The zero-bubble forms need 2p micro-batches, and passes that fit into one another: `zb1p` and `zb2p` a W that is no
    longer than F and than I, `zbv` and DualPipe F = I = W.
    """
    p, forward_s, backward_s, weight_s = stages, times.forward_s, times.backward_s, times.weight_s
    inputs_s = backward_s - weight_s
    if schedule in {"gpipe", "1f1b"} or (schedule == "interleaved" and micro_batches % p == 0):
        return BUBBLE_INTERLEAVED(p=p, F=forward_s, B=backward_s, v=chunks)
    if schedule == "interleaved" or micro_batches < 2 * p or weight_s > min(forward_s, inputs_s):
        return None
    if schedule in {"zb1p", "zb2p"}:
        form = BUBBLE_ZB1P if schedule == "zb1p" else BUBBLE_ZB2P
        return form(p=p, F=forward_s, B=backward_s, W=weight_s)
    if max(forward_s, inputs_s) > weight_s:
        return None
    if schedule == "zbv":
        return BUBBLE_ZB2P(p=p, F=forward_s, B=backward_s, W=weight_s)
    # Of DualPipeV the published form counts the parts of the model, two a device, and so do F, B and W.
    pair_s = forward_s + backward_s if times.pair_s is None else times.pair_s
    v = 2 if schedule == "dualpipev" else 1
    return BUBBLE_DUALPIPE(p=v * p, FB=pair_s / v, B=backward_s / v, W=weight_s / v)


def step_seconds(
    schedule: str,
    stages: int,
    micro_batches: int,
    times: Times | Sequence[Times],
    chunks: int = 1,
    transfer_s: float = 0,
) -> float:
    """Return `simulate(...).period_s`, without simulating where that is not needed: for searches.

    Devices that are all alike take the closed form where it is exact; `gpipe` and `1f1b` with unequal stages or
    transfers take a recursion over the micro-batches that stops once every further micro-batch costs the same; the rest
    is simulated, and remembered; of many micro-batches as many as it takes to see that the pipeline has settled.
    """
    chunks = check_counts(schedule, stages, micro_batches, chunks)
    if isinstance(times, Times) and not transfer_s and schedule not in DUAL:
        bubble_s = closed_bubble_s(schedule, stages, micro_batches, times, chunks)
        if bubble_s is not None:
            return micro_batches * (times.forward_s + times.backward_s) + bubble_s
    of_part = _times_of_parts(times, stages, chunks)
    if schedule in {"gpipe", "1f1b"} or (schedule == "interleaved" and chunks == 1):
        forwards = [one.forward_s for one in of_part]
        backwards = [one.backward_s for one in of_part]
        if schedule == "gpipe":
            return _gpipe_seconds(forwards, backwards, micro_batches, transfer_s)
        return _one_f_one_b_seconds(forwards, backwards, micro_batches, transfer_s)
    return _period(schedule, stages, micro_batches, tuple(of_part), chunks, transfer_s)


def estimate_seconds(
    schedule: str,
    stages: int,
    micro_batches: int,
    times: Times | Sequence[Times],
    chunks: int = 1,
    transfer_s: float = 0,
) -> float:
    """Return about what `step_seconds` does, in a microsecond a part: to rank many layouts before a few are simulated.

    The closed forms with every device's own share in place of p-1 equal ones: the busiest device waits for nothing but
    the bubble. Exact where the closed forms are. `zbv` and DualPipe have no such form and are simulated.
    """
    chunks = check_counts(schedule, stages, micro_batches, chunks)
    weights_in_bubble = _WEIGHTS_IN_BUBBLE.get(schedule)
    if weights_in_bubble is None:
        return step_seconds(schedule, stages, micro_batches, times, chunks, transfer_s)
    of_part = _times_of_parts(times, stages, chunks)
    totals_s = _per_micro_batch(schedule, stages, of_part)
    busiest = max(range(stages), key=totals_s.__getitem__)
    others_s = sum(totals_s) - totals_s[busiest]
    if weights_in_bubble:
        others_s -= weights_in_bubble * sum(one.weight_s for part, one in enumerate(of_part) if part != busiest)
    return micro_batches * totals_s[busiest] + max(others_s / chunks, 0) + 2 * (stages - 1) * transfer_s


@lru_cache(maxsize=4096)
def _period(
    schedule: str, stages: int, micro_batches: int, times: tuple[Times, ...], chunks: int, transfer_s: float
) -> float:
    """Return the period of a run, from a shorter one where that has settled."""
    rest = micro_batches // stages - _RUN_GROUPS
    if rest > 0 and schedule not in DUAL:
        few = micro_batches - rest * stages
        group_s = _settled_s(schedule, stages, few, times, chunks, transfer_s)
        if group_s is not None:
            return _period(schedule, stages, few, times, chunks, transfer_s) + rest * group_s
    program = program_of(schedule, stages, micro_batches, chunks)
    lengths = _lengths(program, times)
    ends = program.ends(lengths, transfer_s)
    if schedule not in STAGGERED:
        return max(ends)
    firsts: dict[int, float] = {}
    lasts: dict[int, float] = {}
    for entry, end in zip(program.entries, ends, strict=True):
        firsts.setdefault(entry.device, end - lengths[entry.length])
        lasts[entry.device] = end
    return max(last - firsts[device] for device, last in lasts.items())


def _settled_s(
    schedule: str, stages: int, micro_batches: int, times: tuple[Times, ...], chunks: int, transfer_s: float
) -> float | None:
    """Return what p more micro-batches cost in a run that has settled, None in one that has not.

    Behind the warm-up, what a pass waits for is what the same pass p micro-batches earlier waited for, p micro-batches
    on, and reaches back no further than 2p. So once p micro-batches have moved all their passes by one time, and the
    next p by the same, all others will.
    """
    program = program_of(schedule, stages, micro_batches, chunks)
    ends = program.ends(_lengths(program, times), transfer_s)
    groups = groups_of(schedule, stages, micro_batches, chunks)
    _, second, third = groups[0]
    group_s = ends[third] - ends[second]
    allowed_s = 1e-12 * max(ends)
    for one, two, three in groups:
        if abs(ends[two] - ends[one] - group_s) > allowed_s or abs(ends[three] - ends[two] - group_s) > allowed_s:
            return None
    return group_s


def _per_micro_batch(schedule: str, stages: int, times: Sequence[Times]) -> list[float]:
    """Return what every device computes per micro-batch."""
    found = [0.0] * stages
    device_of = placement(schedule, stages, 1)
    for part, one in enumerate(times):
        found[device_of(part, 0)] += one.forward_s + one.backward_s
    return found


def _times_of_parts(times: Times | Sequence[Times], stages: int, parts: int) -> list[Times]:
    """Return the times of every part of the model, from its input on."""
    if isinstance(times, Times):
        return [times.over(parts) if parts > 1 else times] * (stages * parts)
    if len(times) != stages * parts:
        msg = f"expected times of {stages * parts} parts ({stages} stages, {parts} each), found {len(times)}"
        raise ValueError(msg)
    return list(times)


def _gpipe_seconds(forwards: list[float], backwards: list[float], micro_batches: int, transfer_s: float) -> float:
    """Return the time of all forwards and then all backwards: two flow shops with jobs that are all alike."""
    passes_s = sum(forwards) + sum(backwards) + 2 * (len(forwards) - 1) * transfer_s
    return passes_s + (micro_batches - 1) * (max(forwards) + max(backwards))


def _one_f_one_b_seconds(forwards: list[float], backwards: list[float], micro_batches: int, transfer_s: float) -> float:
    """Return the time of a 1F1B step, by rounds.

    In round j stage s runs forward p-1-s+j, as long as there is one, and backward j. What it needs is of round j-1, or
    of this round's later stages. So once a round has moved all stages by the same time, each of the others that have
    all forwards will too.
    """
    last = len(forwards) - 1
    free, ready = _warm_up(forwards, micro_batches, transfer_s)
    turn = 0
    whole = micro_batches - last  # rounds in which every stage has a forward
    is_steady = False
    while turn < micro_batches:
        done = max(turn + 1 - whole, 0)  # stages without a forward
        new_free, new_ready = _round(free, ready, (forwards, backwards), done, transfer_s)
        turn += 1
        if not is_steady and turn < whole:
            moved = new_free[0] - free[0]
            is_steady = _have_moved(new_free, free, moved) and _have_moved(new_ready[1:], ready[1:], moved)
            if is_steady:
                rest = (whole - turn) * moved
                new_free, new_ready = [one + rest for one in new_free], [one + rest for one in new_ready]
                turn = whole
        free, ready = new_free, new_ready
    return free[0]


def _warm_up(forwards: list[float], micro_batches: int, transfer_s: float) -> tuple[list[float], list[float]]:
    """Return per stage when the forwards ahead of its first backward end, and when the next one has its input."""
    last = len(forwards) - 1
    arrivals = [0.0] * (micro_batches + last + 1)
    free = []
    ready = []
    for stage, took_s in enumerate(forwards):
        ahead = last - stage
        end = 0.0
        for i in range(min(ahead, micro_batches)):
            end = max(end, arrivals[i]) + took_s
            arrivals[i] = end + transfer_s
        free.append(end)
        ready.append(arrivals[ahead])
    return free, ready


def _round(
    free: list[float], ready: list[float], took: tuple[list[float], list[float]], done: int, transfer_s: float
) -> tuple[list[float], list[float]]:
    """Run one forward and one backward of every stage; the first `done` stages have no forward left."""
    forwards, backwards = took
    ends = [max(at, there) + took_s for at, there, took_s in zip(free, ready, forwards, strict=True)]
    ends[:done] = free[:done]
    arrived = 0.0
    new_free = list(ends)
    for stage in range(len(ends) - 1, -1, -1):
        new_free[stage] = end = max(arrived, ends[stage]) + backwards[stage]
        arrived = end + transfer_s
    return new_free, [0.0, *(end + transfer_s for end in ends[:-1])]


def _have_moved(new: list[float], old: list[float], by: float) -> bool:
    """Tell whether all are later by the same time, but for rounding."""
    return all(abs(one - other - by) <= 1e-12 * one for one, other in zip(new, old, strict=True))


def _lengths(program: Program, times: Sequence[Times]) -> list[float]:
    """Return how long every kind of step takes."""
    return [_length(kind, times) for kind in program.lengths]


def _length(kind: tuple[tuple[str, int], ...], times: Sequence[Times]) -> float:
    """Return how long a pass takes, or a pair of them."""
    if len(kind) == 2:
        forward, backward = (times[part] for _, part in kind)
        if forward.pair_s is None or backward.pair_s is None:
            return forward.forward_s + backward.backward_s
        return (forward.pair_s + backward.pair_s) / 2
    ((pass_kind, part),) = kind
    of_part = times[part]
    if pass_kind == "F":
        return of_part.forward_s
    if pass_kind == "W":
        return of_part.weight_s
    return of_part.backward_s if pass_kind == "B" else of_part.backward_s - of_part.weight_s
