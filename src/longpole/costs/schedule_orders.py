"""The order of passes on every device, one function a schedule.

Parts of the model are counted from its input: with p devices and v chunks there are p*v parts. Part k is on device
k mod p (`interleaved`), or goes down the devices and up again (`V_SHAPED`); with `dualpipe` device k has parts k and
p-1-k, and one half of the micro-batches takes the devices in the opposite direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SIMULATED: Final = ("gpipe", "1f1b", "interleaved", "zb1p", "zb2p", "zbv", "dualpipe", "dualpipev")
STAGGERED: Final = frozenset({"zb2p", "zbv"})  # the optimizer of a device does not wait for the others
V_SHAPED: Final = frozenset({"zbv", "dualpipev"})
DUAL: Final = frozenset({"dualpipe", "dualpipev"})


class Op(NamedTuple):
    """A pass of a micro-batch through a part: `F`, `B` (whole backward), `I` (of the input), `W` (of the weights)."""

    kind: str
    part: int
    micro_batch: int


Step: TypeAlias = tuple[Op, ...]  # one pass, or a forward and a backward that run into each other


@dataclass(frozen=True, slots=True)
class Order:
    """A schedule: what every device does, one after the other.

    Attributes:
        schedule: Its name.
        parts: Of the model.
        devices: Steps of every device.
        device_of: The device of (part, micro-batch).
    """

    schedule: str
    parts: int
    devices: tuple[tuple[Step, ...], ...]
    device_of: Callable[[int, int], int]

    def peaks(self) -> tuple[int, ...]:
        """Return how many parts' activations every device holds at most, each from its forward to its last backward."""
        return tuple(_peak(steps) for steps in self.devices)


def check_counts(schedule: str, stages: int, micro_batches: int, chunks: int = 1) -> int:
    """Return the chunks of a device, and refuse counts for which the schedule does not exist.

    Raises:
        UsageError: With what would be accepted.
    """
    if schedule not in SIMULATED:
        msg = f"schedule: expected one of {', '.join(SIMULATED)}; found {schedule!r}"
        raise UsageError(msg)
    for name, value in (("stages", stages), ("micro-batches", micro_batches), ("chunks", chunks)):
        if type(value) is not int or value < 1:
            msg = f"{schedule}: expected a positive whole number of {name}, found {value!r}"
            raise UsageError(msg)
    if schedule in V_SHAPED:
        if chunks not in {1, 2}:
            msg = f"{schedule} has two chunks on every device, not {chunks}"
            raise UsageError(msg)
        chunks = 2
    elif chunks > 1 and schedule != "interleaved":
        msg = f"{schedule} has one chunk on every device, not {chunks}; several are for interleaved"
        raise UsageError(msg)
    if schedule == "dualpipe" and (stages % 2 or micro_batches % 2):
        msg = f"dualpipe needs even numbers of stages and micro-batches, found {stages} and {micro_batches}"
        raise UsageError(msg)
    if schedule in DUAL and micro_batches < 2 * stages:
        msg = f"{schedule} needs at least two micro-batches per stage: {2 * stages}, found {micro_batches}"
        raise UsageError(msg)
    return chunks


@lru_cache(maxsize=32)
def order_of(schedule: str, stages: int, micro_batches: int, chunks: int) -> Order:
    """Return the passes of every device; counts as `check_counts` returns them."""
    rows: Iterable[list[Step]]
    if schedule == "dualpipe":
        rows = _dual_pipe(stages, micro_batches)
    elif schedule == "interleaved" and chunks > 1:
        rows = (_interleaved(device, stages, micro_batches, chunks) for device in range(stages))
    else:
        build = _BUILDERS[schedule]
        rows = ([(op,) if isinstance(op, Op) else op for op in build(d, stages, micro_batches)] for d in range(stages))
    return Order(
        schedule=schedule,
        parts=stages * chunks,
        devices=tuple(tuple(row) for row in rows),
        device_of=placement(schedule, stages, micro_batches),
    )


def placement(schedule: str, stages: int, micro_batches: int) -> Callable[[int, int], int]:
    """Return which device has (part, micro-batch)."""
    last = stages - 1
    if schedule in V_SHAPED:
        return lambda part, _: part if part < stages else 2 * stages - 1 - part
    if schedule == "dualpipe":
        return lambda part, micro_batch: part if micro_batch < micro_batches // 2 else last - part
    return lambda part, _: part % stages


def _peak(steps: Iterable[Step]) -> int:
    """Return how many activations are held at most; of a pair the forward counts first."""
    held = most = 0
    split = {(op.part, op.micro_batch) for step in steps for op in step if op.kind == "W"}
    for step in steps:
        for op in step:
            if op.kind == "F":
                held += 1
                most = max(most, held)
            elif op.kind == "W" or (op.kind == "B" and (op.part, op.micro_batch) not in split):
                held -= 1
    return most


def _g_pipe(device: int, stages: int, micro_batches: int) -> list[Op]:  # noqa: ARG001 - one signature for all
    """Return all forwards, then all backwards in the opposite order (arXiv:1811.06965)."""
    every = range(micro_batches)
    return [*(Op("F", device, i) for i in every), *(Op("B", device, i) for i in reversed(every))]


def _one_f_one_b(device: int, stages: int, micro_batches: int) -> list[Op]:
    """Return a forward for every stage behind, then one forward and one backward in turn (arXiv:2006.09503)."""
    ahead = min(stages - 1 - device, micro_batches)
    row = [Op("F", device, i) for i in range(ahead)]
    for i in range(micro_batches):
        if ahead + i < micro_batches:
            row.append(Op("F", device, ahead + i))
        row.append(Op("B", device, i))
    return row


def _interleaved(device: int, stages: int, micro_batches: int, chunks: int) -> list[Step]:
    """Return groups of p micro-batches that take one chunk after the other (arXiv:2104.04473, section 2.2).

    Backwards take the chunks from the last one on; between them lie as many forwards as keep the devices behind
    supplied. The schedule is made for whole groups: what a last group lacks is left out.
    """
    groups = range(0, micro_batches, stages)
    forwards = [(c, i) for first in groups for c in range(chunks) for i in range(first, first + stages)]
    backwards = [(c, i) for first in groups for c in reversed(range(chunks)) for i in range(first, first + stages)]
    ahead = min(2 * (stages - 1 - device) + (chunks - 1) * stages, len(forwards))
    row = [Op("F", chunk * stages + device, i) for chunk, i in forwards[:ahead]]
    for turn, (chunk, i) in enumerate(backwards):
        if ahead + turn < len(forwards):
            forward_chunk, forward_i = forwards[ahead + turn]
            row.append(Op("F", forward_chunk * stages + device, forward_i))
        row.append(Op("B", chunk * stages + device, i))
    return [(op,) for op in row if op.micro_batch < micro_batches]


def _zero_bubble(device: int, micro_batches: int, ahead: int, behind: int) -> list[Op]:
    """Return forwards `ahead` of the first backward, then F, I, W in turn, W `behind` micro-batches later than I."""
    ahead = min(ahead, micro_batches)
    row = [Op("F", device, i) for i in range(ahead)]
    weights = 0
    for i in range(micro_batches):
        if ahead + i < micro_batches:
            row.append(Op("F", device, ahead + i))
        row.append(Op("I", device, i))
        if i >= behind or ahead + i >= micro_batches:
            row.append(Op("W", device, weights))
            weights += 1
    row.extend(Op("W", device, i) for i in range(weights, micro_batches))
    return row


def _zb1p(device: int, stages: int, micro_batches: int) -> list[Op]:
    """Return ZB-H1 of arXiv:2401.10241: 1F1B's warm-up; the later a device starts, the longer it leaves its weights."""
    return _zero_bubble(device, micro_batches, stages - 1 - device, device)


def _zb2p(device: int, stages: int, micro_batches: int) -> list[Op]:
    """Return ZB-H2 of arXiv:2401.10241: twice the warm-up, so that nobody waits for the first backward."""
    return _zero_bubble(device, micro_batches, 2 * (stages - 1 - device), 2 * device)


def _zbv(device: int, stages: int, micro_batches: int) -> list[Op]:
    """Return ZB-V of arXiv:2405.15362: two chunks a device, down and up again, everything by turns.

    Passes of micro-batches that a short step does not have are left out.
    """
    down, up = device, 2 * stages - 1 - device
    counts = dict.fromkeys((kind + way for kind in "FIW" for way in "du"), 0)
    row: list[Op] = []

    def take(kinds: str, part: int, times: int = 1) -> None:
        for _ in range(times):
            for kind in kinds:
                key = kind + ("d" if part == down else "u")
                row.append(Op(kind, part, counts[key]))
                counts[key] += 1

    whole = max(micro_batches, 2 * stages - 1)
    take("F", down, 2 * (stages - device) - 1)
    for _ in range(device):
        take("F", up)
        take("F", down)
    take("FIW", up, stages - device)
    while counts["Fu"] < whole:
        if counts["Fd"] < whole:
            take("F", down)
        take("IW", down)
        take("FIW", up)
    for _ in range(device):
        take("I", down)
        take("I", up)
    take("IW", down, stages - device)
    take("W", up, counts["Iu"] - counts["Wu"])
    take("W", down, counts["Id"] - counts["Wd"])
    return [op for op in row if op.micro_batch < micro_batches]


class _DualRow:
    """The row of one device under construction: passes of two flows of micro-batches, `near` and `far`.

    The near flow enters at this device's end of the pipeline. Weights that were left are taken first in, first out.
    """

    def __init__(self, parts: tuple[int, int], firsts: tuple[int, int]) -> None:
        self.steps: list[Step] = []
        self._parts = parts
        self._forwards = list(firsts)
        self._backwards = list(firsts)
        self._left: list[tuple[int, int]] = []

    def forward(self, flow: int) -> None:
        self.steps.append((self._next_forward(flow),))

    def backward(self, flow: int, *, leaves_weights: bool = False) -> None:
        op = self._next_backward(flow, "I" if leaves_weights else "B")
        if leaves_weights:
            self._left.append((op.part, op.micro_batch))
        self.steps.append((op,))

    def pair(self, forward_flow: int, backward_flow: int) -> None:
        self.steps.append((self._next_forward(forward_flow), self._next_backward(backward_flow, "B")))

    def weights(self) -> None:
        self.steps.append((Op("W", *self._left.pop(0)),))

    def _next_forward(self, flow: int) -> Op:
        self._forwards[flow] += 1
        return Op("F", self._parts[flow], self._forwards[flow] - 1)

    def _next_backward(self, flow: int, kind: str) -> Op:
        self._backwards[flow] += 1
        return Op(kind, self._parts[flow], self._backwards[flow] - 1)


def _dual_pipe(stages: int, micro_batches: int) -> list[list[Step]]:
    """Return DualPipe of arXiv:2412.19437: micro-batches enter at both ends."""
    half = micro_batches // 2
    rows = []
    for device in range(stages):
        near_first, far_first = (0, half) if device < stages // 2 else (half, 0)
        place = min(device, stages - 1 - device)
        row = _DualRow((place, stages - 1 - place), (near_first, far_first))
        _fill_dual(row, place, stages // 2, half)
        rows.append(row.steps)
    return rows


def _dual_pipe_v(device: int, stages: int, micro_batches: int) -> list[Step]:
    """Return DualPipeV: half of DualPipe, whose far flow is the near one on its way back."""
    row = _DualRow((device, 2 * stages - 1 - device), (0, 0))
    _fill_dual(row, device, stages, micro_batches)
    return row.steps


def _fill_dual(row: _DualRow, place: int, places: int, flow: int) -> None:
    """Fill the row of the device `place` places from the end, of `places` up to the middle, `flow` micro-batches each.

    The eight phases of deepseek-ai/DualPipe, by their order there.
    """
    near, far = 0, 1
    inner = places - 1 - place
    for _ in range(2 * inner):
        row.forward(near)
    for _ in range(place + 1):
        row.forward(near)
        row.forward(far)
    for _ in range(inner):
        row.backward(far, leaves_weights=True)
        row.weights()
        row.forward(far)
    for turn in range(flow - 2 * places + place + 1):
        if turn == 0 and inner == 0:  # in the middle the first pair would keep the other half waiting
            row.forward(near)
            row.backward(far)
        else:
            row.pair(near, far)
        row.pair(far, near)
    for _ in range(inner):
        row.backward(far)
        row.pair(far, near)
    for turn in range(place + 1):
        row.backward(far, leaves_weights=2 * turn >= place + 1)
        row.backward(near, leaves_weights=2 * turn + 1 >= place + 1)
    for _ in range(inner):
        row.weights()
        row.backward(near, leaves_weights=True)
    for _ in range(place + 1):
        row.weights()


_BUILDERS: Final[dict[str, Callable[[int, int, int], list[Op] | list[Step]]]] = {
    "gpipe": _g_pipe,
    "1f1b": _one_f_one_b,
    "interleaved": _one_f_one_b,
    "zb1p": _zb1p,
    "zb2p": _zb2p,
    "zbv": _zbv,
    "dualpipev": _dual_pipe_v,
}
