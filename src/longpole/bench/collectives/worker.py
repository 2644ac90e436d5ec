"""One rank of a measurement, in a process of its own: `python -m longpole.bench.collectives.worker CONFIG RANK`.

It knows nothing of records: it reads what to measure from a file, and writes one JSON line a point into another.

    refill the buffers ─► barrier ─► start ─► operation, until its result is here ─► end          time = end - start
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_EXACT_MAX: Final = 255  # whole numbers up to here are exact in every element type, bfloat16 included
_PATTERN_MAX: Final = 61
_NO_PARENT_CHECK_S: Final = 1.0


def main(arguments: list[str]) -> int:
    """Measure every point of the plan as one rank.

    Args:
        arguments: The file with what to measure, and the number of this rank; or `--probe BACKEND WORLD`.
    """
    _end_with_parent()
    warnings.simplefilter("ignore")
    if arguments[0] == "--probe":
        sys.stdout.write(json.dumps(probe(arguments[1], int(arguments[2]))) + "\n")
        return 0
    config, rank = json.loads(Path(arguments[0]).read_text(encoding="utf-8")), int(arguments[1])
    with Path(config["out"].format(rank=rank)).open("w", encoding="utf-8") as out:
        _measure_all(config, rank, out)
    return 0


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, however it went."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_NO_PARENT_CHECK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def probe(backend: str, world: int) -> dict[str, Any]:
    """Say what a measurement would run on, or why none can be made.

    Args:
        backend: `auto`, `gloo` or `nccl`.
        world: Ranks.
    """
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        return {"backend": backend, "problem": "torch is not installed"}
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    has_nccl = dist.is_available() and dist.is_nccl_available()
    chosen = backend
    if backend == "auto":
        chosen = "nccl" if has_nccl and devices >= world else "gloo"
    problem = ""
    if not dist.is_available() or (chosen == "gloo" and not dist.is_gloo_available()):
        problem = f"this build of torch has no {chosen} backend"
    elif chosen == "nccl" and (not has_nccl or devices < world):
        problem = f"nccl takes a device for each of {world} ranks; torch sees {devices}"
    device, versions = "cpu", {"torch": str(torch.__version__)}
    if chosen == "nccl" and not problem:
        device = torch.cuda.get_device_name(0)
        versions["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
        versions["cuda"] = str(torch.version.cuda)
    return {"backend": chosen, "device": device, "versions": versions, "problem": problem}


def _measure_all(config: dict[str, Any], rank: int, out: IO[str]) -> None:
    import torch
    import torch.distributed as dist

    if config["backend"] == "nccl":
        torch.cuda.set_device(rank)
    from datetime import timedelta

    dist.init_process_group(
        config["backend"],
        init_method=f"file://{config['store']}",
        rank=rank,
        world_size=config["world"],
        timeout=timedelta(seconds=config["timeout_s"]),
    )
    _say(out, {"ready": rank})
    refused: set[str] = set()
    for number, (kind, size_bytes, bucket_bytes) in enumerate(config["cells"]):
        if kind in refused:
            continue
        line = _measure(config, rank, kind, size_bytes, bucket_bytes)
        if "unsupported" in line:
            refused.add(kind)
        _say(out, {"cell": number, **line})
    dist.barrier()
    with suppress(RuntimeError):  # all is measured and written: how the backend closes is not our question
        dist.destroy_process_group()


def _say(out: IO[str], line: dict[str, Any]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


def _measure(config: dict[str, Any], rank: int, kind: str, size_bytes: int, bucket_bytes: int | None) -> dict[str, Any]:
    """Measure one point: check, warm up, time, check again."""
    import torch.distributed as dist

    pieces, done = [], 0
    while done < size_bytes:
        part_bytes = min(bucket_bytes or size_bytes, size_bytes - done)
        piece = Piece(kind, part_bytes, rank, config["world"], config["dtype"], on_device=config["backend"] == "nccl")
        pieces.append(piece)
        done += part_bytes
    wrong = 0
    starts_ns, durations_ns = [], []
    warmup, repeats = config["warmup"], config["repeats"]
    wait_for_device = _waiter(config["backend"])
    for turn in range(1 + warmup + repeats):
        for piece in pieces:
            piece.refill()
        wait_for_device()
        dist.barrier()
        started_ns = time.monotonic_ns()
        try:
            _run(pieces)
        except (RuntimeError, NotImplementedError, ValueError) as error:
            if turn == 0 and _is_refusal(error):
                return {"unsupported": str(error).splitlines()[0][:200]}
            raise
        wait_for_device()
        ended_ns = time.monotonic_ns()
        if turn in (0, warmup + repeats):
            wrong += sum(piece.wrong() for piece in pieces)
        if turn > warmup:
            starts_ns.append(started_ns)
            durations_ns.append(ended_ns - started_ns)
    actual_bytes = sum(piece.size_bytes for piece in pieces)
    return {"bytes": actual_bytes, "wrong": wrong, "starts_ns": starts_ns, "durations_ns": durations_ns}


def _waiter(backend: str) -> Callable[[], None]:
    if backend == "nccl":
        import torch

        return torch.cuda.synchronize
    return lambda: None


def _is_refusal(error: Exception) -> bool:
    """Tell an operation that a backend does not have from one that went wrong."""
    words = str(error).lower()
    signs = ("not support", "unsupported", "not implemented", "does not support", "no backend")
    return isinstance(error, NotImplementedError) or any(sign in words for sign in signs)


def _run(pieces: list[Piece]) -> None:
    """Begin every piece, then wait for each: a single one as a plain call, as programs make it."""
    works = [work for piece in pieces for work in piece.start(later=len(pieces) > 1)]
    for work in works:
        if work is not None:
            work.wait()


class Piece:
    """One operation with its buffers; what each rank puts in is known, so what must come out is, too.

    Rank r holds the pattern 0, 1, …, m-1, 0, 1, … shifted by 5 r places; m keeps sums exact in every element type.
    """

    def __init__(self, kind: str, size_bytes: int, rank: int, world: int, dtype: str, *, on_device: bool) -> None:
        """Make the buffers of `size_bytes`, rounded to whole elements and to equal parts where parts are."""
        import torch

        self.kind, self.rank, self.world = kind, rank, world
        self._torch, self._dtype = torch, getattr(torch, dtype)
        self._device = torch.device("cuda", rank) if on_device else torch.device("cpu")
        self._length = max(2, min(_PATTERN_MAX, _EXACT_MAX // world + 1))
        each = torch.empty(0, dtype=self._dtype).element_size()
        count = max(size_bytes // each, 1)
        if kind in ("all_gather", "reduce_scatter", "all_to_all"):
            count = max(count // world, 1) * world
        self.size_bytes = count * each
        part = count // world
        self.given = self._pattern(rank, part if kind == "all_gather" else count)
        self.expected = self._expectation(count, part)
        in_place = kind in ("all_reduce", "broadcast")
        self.result = torch.empty_like(self.expected)
        self._in_place = in_place

    def _pattern(self, rank: int, count: int, first: int = 0) -> Any:
        """Return `count` elements of a rank's pattern from place `first` on."""
        base = (self._torch.arange(self._length, device=self._device) + 5 * rank + first) % self._length
        return base.to(self._dtype).repeat(-(-count // self._length))[:count].contiguous()

    def _sum(self, count: int, first: int = 0) -> Any:
        places = self._torch.arange(self._length, device=self._device) + first
        base = sum((places + 5 * rank) % self._length for rank in range(self.world))
        return base.to(self._dtype).repeat(-(-count // self._length))[:count].contiguous()

    def _expectation(self, count: int, part: int) -> Any:
        if self.kind == "all_reduce":
            return self._sum(count)
        if self.kind == "reduce_scatter":
            return self._sum(part, self.rank * part)
        if self.kind == "broadcast":
            return self._pattern(0, count)
        if self.kind == "send_recv":
            return self._pattern((self.rank - 1) % self.world, count)
        first = self.rank * part if self.kind == "all_to_all" else 0
        return self._torch.cat([self._pattern(rank, part, first) for rank in range(self.world)])

    def refill(self) -> None:
        """Put the known values in, and nothing where the result will be."""
        if self._in_place and (self.kind == "all_reduce" or self.rank == 0):
            self.result.copy_(self.given)
        else:
            self.result.zero_()

    def start(self, *, later: bool) -> list[Any]:
        """Begin the operation.

        Args:
            later: Only begin it; otherwise it is over on return, but for sends and receives, and work on a device.

        Returns:
            What to wait for.
        """
        import torch.distributed as dist

        if self.kind == "all_reduce":
            return [dist.all_reduce(self.result, async_op=later)]
        if self.kind == "broadcast":
            return [dist.broadcast(self.result, 0, async_op=later)]
        if self.kind == "all_gather":
            gather = _first_of(dist, "all_gather_single", "all_gather_into_tensor")
            return [gather(self.result, self.given, async_op=later)]
        if self.kind == "reduce_scatter":
            scatter = _first_of(dist, "reduce_scatter_single", "reduce_scatter_tensor")
            return [scatter(self.result, self.given, async_op=later)]
        if self.kind == "all_to_all":
            return [dist.all_to_all_single(self.result, self.given, async_op=later)]
        sent, received = (self.rank + 1) % self.world, (self.rank - 1) % self.world
        both = [dist.P2POp(dist.isend, self.given, sent), dist.P2POp(dist.irecv, self.result, received)]
        return list(dist.batch_isend_irecv(both))

    def wrong(self) -> int:
        """Count the elements of the result that are not what they must be."""
        return int((self.result != self.expected).sum().item())


def _first_of(module: Any, *names: str) -> Any:
    """Return the function of the first name that there is: newer releases of torch renamed some."""
    return next(getattr(module, name) for name in names if hasattr(module, name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
