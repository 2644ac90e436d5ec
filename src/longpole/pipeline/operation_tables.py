"""Tell whether paths hold operation tables; it is asked before every report, so it imports little."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.errors import UsageError
from longpole.readers.operations.sniff import table_format

if TYPE_CHECKING:
    from collections.abc import Sequence


def find_operation_tables(paths: Sequence[str]) -> list[Path]:
    """Return the operation tables behind some paths; nothing unless every path holds such tables.

    Files are told by content. A folder counts if it, with the folders inside it, holds tables, and beside them only
    notes, figures and the like: nothing that may be a trace.

    Args:
        paths: Files, folders and patterns, as a user gave them.

    Raises:
        UsageError: Some paths are tables and others are not.
    """
    found: list[Path] = []
    others: list[str] = []
    for shown in paths:
        tables = _of_path(shown)
        found += tables
        others += [] if tables else [shown]
    if found and others:
        msg = f"{found[0]} is an operation table, {others[0]} is none: expected one kind of record; name them apart"
        raise UsageError(msg)
    return sorted(dict.fromkeys(found))


def _of_path(shown: str) -> list[Path]:
    path = Path(shown)
    if path.is_dir():
        return _of_folder(path)
    matches = [path] if path.exists() else [Path(match) for match in sorted(glob.glob(shown, recursive=True))]  # noqa: PTH207 - the pattern may be absolute
    return matches if all(match.is_file() and table_format(match) for match in matches) else []


def _of_folder(folder: Path) -> list[Path]:
    files: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent) / name
            if name.startswith(".") or not path.is_file():
                continue
            if table_format(path) is not None:
                files.append(path)
            elif path.suffix.lower() not in _NO_RECORD:
                return []
    return files


_NO_RECORD: Final = frozenset((".md", ".rst", ".txt", ".csv", ".py", ".toml", ".yaml", ".yml", ".log", ".png", ".svg"))
