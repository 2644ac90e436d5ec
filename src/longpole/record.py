"""The recorder's door: `from longpole import record`, then `with record.unit(step):` in the loop.

Off until `record.start()`, or until the variable `LONGPOLE_RECORD` names a folder when this is imported; then each
process writes a span file there, which `longpole report FOLDER` reads. docs/guides/recorder.md shows how.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from longpole.recorder import session
from longpole.recorder.collectives import collectives
from longpole.recorder.loader import Items, Loader, units
from longpole.recorder.outputs import Writer, checkpoint, writer
from longpole.recorder.session import BUFFER_LINES, FLUSH_INTERVAL_S, FOLDER_VARIABLE, stop
from longpole.recorder.spans import Stage, Unit, queue

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from longpole.recorder.loader import Batch

__all__ = [
    "Loader",
    "Stage",
    "Unit",
    "Writer",
    "checkpoint",
    "collectives",
    "flush",
    "is_on",
    "loader",
    "path",
    "queue",
    "stage",
    "start",
    "stop",
    "unit",
    "units",
    "writer",
]

DEFAULT_FOLDER = "longpole-spans"

stage = Stage
unit = Unit


def start(  # noqa: PLR0913 - what a recording may be told, all optional and by name
    folder: str | os.PathLike[str] | None = None,
    *,
    rank: int | None = None,
    world_size: int | None = None,
    items: str = "",
    annotate: bool = False,
    flush_interval_s: float = FLUSH_INTERVAL_S,
    buffer_lines: int = BUFFER_LINES,
) -> None:
    """Begin to record this process, and those that it forks or spawns; a recording that runs is ended first.

    The file is made with the first span. An error of writing is said once on stderr, and never raised.

    Args:
        folder: Where files go; by default what `LONGPOLE_RECORD` names, else `longpole-spans`.
        rank: Of this process; by default as torch.distributed says, else the launcher's variables.
        world_size: Processes of the job; by default likewise.
        items: What `items` of units count: `token`, `sample`, `request`.
        annotate: Open a range of the same name in PyTorch's profiler, and in NVTX where CUDA is in use, for each span.
        flush_interval_s: How long a span waits for the disk at most; what a killed process loses.
        buffer_lines: How many spans may wait; those beyond are dropped and counted.

    Raises:
        UsageError: A number is out of its range.
    """
    where = os.fspath(folder) if folder is not None else os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER
    options = session.Options(
        os.path.abspath(where),  # noqa: PTH100 - the program may change its folder, and children start in others
        rank=rank,
        world_size=world_size,
        item_kind=items,
        annotate=annotate,
        flush_interval_s=flush_interval_s,
        buffer_lines=buffer_lines,
    )
    session.check_options(options)
    session.start(options)


def is_on() -> bool:
    """Tell whether this process records."""
    return session.STATE.recorder is not None


def path() -> Path | None:
    """Return the file of this process; None while there is none."""
    recorder = session.STATE.recorder
    return None if recorder is None else recorder.path


def flush() -> None:
    """Write what is recorded until now, before something that may not return."""
    if session.STATE.recorder is not None:
        session.STATE.recorder.flush()


def loader(source: Iterable[Batch], *, items: Items = None, waits: bool | None = None) -> Loader[Batch]:
    """Wrap a loader, so that each `next` is a span of input with the bytes of its batch.

    Worker processes of PyTorch's DataLoader write span files of their own, with what they load.

    Args:
        source: A DataLoader, or any iterable of batches.
        items: What a batch holds: a number, or a function of the batch.
        waits: Other threads or processes load, and `next` only waits for them; by default where the loader has
            worker processes.
    """
    return Loader(source, items=items, waits=waits)


session.start_from_environment()
