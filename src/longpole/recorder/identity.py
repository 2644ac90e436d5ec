"""Who records: rank, machine, program and versions; looked up in what is loaded already, never by loading anything."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from longpole.records.span_file import SCHEMA, Header, RankLine

if TYPE_CHECKING:
    from collections.abc import Mapping

_RANK: Final = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_WORLD: Final = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL: Final = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
# Libraries whose version is worth knowing, where the program has loaded them: name of the module -> its key.
_LIBRARIES: Final = ("torch", "tensorflow", "jax", "numpy", "lightning", "transformers", "deepspeed", "megatron")


def read_clocks() -> tuple[int, int]:
    """Return the same instant on the process's clock and since the epoch, both in ns.

    The clock is read before and after, and the tightest of three tries is taken: what is off is at most half of it.
    """
    tries = []
    for _ in range(3):
        before_ns = time.perf_counter_ns()
        epoch_ns = time.time_ns()
        width_ns = time.perf_counter_ns() - before_ns
        tries.append((width_ns, before_ns + width_ns // 2, epoch_ns))
    _, clock_ns, epoch_ns = min(tries)
    return clock_ns, epoch_ns


def find_rank(environment: Mapping[str, str] | None = None) -> RankLine:
    """Return rank, world size and local rank: from torch.distributed once it is initialised, else from the launcher.

    Launchers say it in variables: torchrun, SLURM, Open MPI, other MPIs, in this order.
    """
    variables = os.environ if environment is None else environment
    said = RankLine(*(_first_count(variables, names) for names in (_RANK, _WORLD, _LOCAL)))
    group = rank_of_torch()
    return said if group is None else RankLine(*group, said.local_rank)


def rank_of_torch() -> tuple[int, int] | None:
    """Return rank and world size of torch.distributed's default group; None where it is not initialised."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_initialized():
            return None
        return distributed.get_rank(), distributed.get_world_size()
    except (AttributeError, RuntimeError, ValueError):
        return None  # it is being imported, or taken down, by another thread


def make_header(rank: RankLine, item_kind: str, role: tuple[str, int | None, int | None]) -> Header:
    """Build the first line of a file.

    Args:
        rank: Who the process is.
        item_kind: What items count.
        role: Of a process that carries no units: what it does, its number, and its parent's process id.
    """
    clock_ns, epoch_ns = read_clocks()
    return Header(
        SCHEMA,
        clock_ns,
        epoch_ns,
        os.getpid(),
        rank.rank,
        rank.world_size,
        rank.local_rank,
        host=platform.node(),
        program=_find_program(),
        main_thread=threading.main_thread().ident or 0,
        item_kind=item_kind,
        environment=describe_environment(),
        role=role[0],
        worker=role[1],
        parent_pid=role[2],
    )


def describe_environment() -> dict[str, Any]:
    """Return versions of Python, of what is loaded, and the devices that torch sees; no variables, no arguments."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
    for name in _LIBRARIES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    devices = _name_devices()
    if devices:
        found["devices"] = devices
    return found


def _name_devices() -> list[str]:
    """Name the CUDA devices, if the program has initialised them: asking earlier would make a context for it."""
    cuda = sys.modules.get("torch.cuda")
    try:
        if cuda is None or not cuda.is_initialized():
            return []
        return [str(cuda.get_device_name(device)) for device in range(cuda.device_count())]
    except (AttributeError, RuntimeError, AssertionError):
        return []


def _find_program() -> str:
    """Return the script's or module's name: arguments, and the folders that it lies in, may tell secrets."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) and sys.argv[0] else ""  # noqa: PTH119
    if name != "__main__.py":
        return name
    return os.path.basename(os.path.dirname(sys.argv[0]))  # noqa: PTH119, PTH120


def _first_count(variables: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    return next((int(variables[name]) for name in names if variables.get(name, "").isdecimal()), None)
