"""Whatever rows a sound file mixes: a report on which every law holds, or a refusal; never an internal error."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from longpole.errors import LongpoleError
from tests.laws import check_report, check_rungs, report_on
from tests.trace_text import steps, write

if TYPE_CHECKING:
    from pathlib import Path

SEEDS: Final = 200
CATEGORIES: Final = (
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cuda_runtime",
    "cuda_driver",
    "cpu_op",
    "user_annotation",
    "python_function",
    "cuda_sync",
    "gpu_user_annotation",
    "overhead",
    "Trace",
    "in_house",
    None,
)
ON_DEVICE: Final = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation")
NAMES: Final = (
    "gemm",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
    "ncclDevKernel_SendRecv(x)",
    "Memcpy HtoD (Pageable -> Device)",
    "Memset (Device)",
    "cudaLaunchKernel",
    "cudaMemcpyAsync",
    "cudaDeviceSynchronize",
    "cudaGraphLaunch",
    "cudaMalloc",
    "aten::mm",
    "aten::item",
    "ProfilerStep#0",
    "ProfilerStep#1",
    "Optimizer.step#AdamW.step",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "nccl:all_reduce",
    "record_param_comms",
    "Stream Wait Event",
    "<built-in function collect>",
    "save_checkpoint",
    "ncclCommInitRank",
    "autograd::engine::evaluate_function: MmBackward0",
    "",
)


def _row(rng: random.Random) -> dict[str, Any]:
    category = rng.choice(CATEGORIES)
    args: dict[str, Any] = {"correlation": rng.randrange(6)} if rng.random() < 0.8 else {}
    if category in ON_DEVICE:
        args |= {"device": rng.choice([0, 0, 0, 1, -1]), "stream": rng.choice([7, 7, 20, -1])}
    if rng.random() < 0.3:
        args["External id"] = rng.randrange(6)
    if rng.random() < 0.2:
        args |= _collective(rng)
    if rng.random() < 0.1:
        args |= {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}
    return {
        "ph": "X",
        "cat": category,
        "name": rng.choice(NAMES),
        "pid": rng.choice([0, 4200, 4200, 4201, "x"]),
        "tid": rng.choice([7, 20, 4200, 4300, "stream 7"]),
        "ts": rng.choice([0, 1, 5, 10, 50, 100, 200, 400, 1000, 5000]) + rng.choice([0, 0.25, 1e6]),
        "dur": rng.choice([0, 0, 0.5, 1, 5, 50, 100, 1000, 20000]),
        "args": args,
    }


def _collective(rng: random.Random) -> dict[str, Any]:
    return {
        "Collective name": rng.choice(["allreduce", "_allgather_base", "send", "recv", "broadcast", "x"]),
        "In msg nelems": rng.choice([0, 1, 1000, -1]),
        "Out msg nelems": rng.choice([0, 1000]),
        "Group size": rng.choice([1, 2, 8]),
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Ranks": rng.choice(["[0, 1]", "[0]", "[]", "[0, ...]"]),
        "Seq": rng.randrange(4),
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_mixture_of_rows_gives_a_report_or_a_refusal(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    n_ranks = rng.choice([1, 1, 2])
    for rank in range(n_ranks):
        rows = [_row(rng) for _ in range(rng.choice([1, 2, 3, 5, 8, 15, 30]))]
        rows += steps(rng.choice([1, 3, 6])) if rng.random() < 0.3 else []
        write(tmp_path / f"rank{rank}.json", rows, rank, n_ranks)

    try:
        report = report_on(tmp_path)
    except LongpoleError as error:
        if error.exit_code not in (2, 3):
            raise
        return

    check_report(report)
    for row in report.ranks:
        check_rungs(row.ledger)
