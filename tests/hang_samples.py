"""Answers on hangs whose pages are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.hang.answer import explain_hang
from longpole.records.flight import Frame, StackDump, ThreadStack
from longpole.records.hang import Hang, HangSource
from tests.flight_dumps import dump, entry, group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.records.flight import FlightDump


def _answer(dumps: Sequence[FlightDump], stacks: Sequence[StackDump] = ()) -> Hang:
    sources = [HangSource(one.path, "flight_recorder", one.rank, one.version, len(one.entries), 0) for one in dumps]
    sources += [HangSource(one.path, "stacks", one.rank, "", len(one.threads), 0) for one in stacks]
    return explain_hang(dumps, stacks, sources, "0.1.0")


def _never_came() -> Hang:
    """Rank 2 waits for its data loader; ranks 0 and 1 wait for it, and rank 3 does in its pair."""
    everybody, pair = group(range(4)), group((2, 3), "3", "TP")
    dumps = [dump(rank, [entry(everybody, 9), entry(everybody, 10, done=False)]) for rank in (0, 1)]
    dumps.append(dump(2, [entry(everybody, 9)], [pair]))
    dumps.append(dump(3, [entry(everybody, 9), entry(pair, 4, done=False)]))
    frames = (
        Frame("_next_data", "torch/utils/data/dataloader.py", 1_400),
        Frame("train", "train.py", 88),
    )
    return _answer(dumps, [StackDump("pyspy_rank_2.txt", 2, (ThreadStack("MainThread", True, False, frames),))])


def _device_stuck() -> Hang:
    """All have queued two all-gathers; rank 1's device does not finish the first one."""
    key = group(range(4), "41", "TENSOR_MODEL_PARALLEL_GROUP")
    healthy = [dump(rank, [entry(key, 8, "_all_gather_base", done=False)]) for rank in (0, 2, 3)]
    stuck = dump(1, [entry(key, number, "_all_gather_base", done=False) for number in (7, 8)])
    return _answer([*healthy, stuck])


def _mismatch() -> Hang:
    key = group(range(4))
    usual = [dump(rank, [entry(key, 5), entry(key, 6, "all_gather", done=False)]) for rank in (0, 2, 3)]
    frames = (Frame("log_metrics", "train.py", 120),)
    odd = dump(1, [entry(key, 5), entry(key, 6, "broadcast", done=False, frames=frames)])
    return _answer([*usual, odd])


def _nothing() -> Hang:
    key = group(range(2))
    return _answer([dump(rank, [entry(key, number) for number in range(3)]) for rank in range(2)])


SAMPLES: Final[dict[str, Callable[[], Hang]]] = {
    "never-came": _never_came,
    "device-stuck": _device_stuck,
    "mismatch": _mismatch,
    "nothing": _nothing,
}
