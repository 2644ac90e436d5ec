"""Which rank a process is: torch.distributed knows once it is set up, else the launcher's variables say."""

from __future__ import annotations

import os
from typing import Any

# (rank, world) as torchrun, Open MPI and PMI launchers (MPICH, Intel MPI) set them. Slurm's SLURM_NTASKS is also set
# for a program that is not started by srun, so Slurm tells a rank and no world.
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", ""),
)


def rank_told(environ: Any = os.environ) -> int | None:
    """Return the rank that a launcher's variables give this process, None where there are none."""
    for rank, _ in _VARIABLES:
        if environ.get(rank, "").isdigit():
            return int(environ[rank])
    return None


def world_told(environ: Any = os.environ) -> int | None:
    """Return how many ranks a launcher's variables say there are: 1 without a launcher, None where it does not say."""
    for rank, world in _VARIABLES:
        if environ.get(rank, "").isdigit():
            return int(environ[world]) if environ.get(world, "").isdigit() else None
    return 1


def is_distributed(torch: Any) -> bool:
    """Tell whether the process has joined a job of torch.distributed."""
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def rank_of(torch: Any) -> int:
    """Return this process's rank, 0 where nothing says otherwise."""
    if is_distributed(torch):
        return int(torch.distributed.get_rank())
    return rank_told() or 0
