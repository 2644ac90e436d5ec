"""The JSON Schemas of our documents, as shipped files: printing one needs no other part of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from longpole.errors import UsageError

FOLDER: Final = Path(__file__).parent


def schema_names() -> list[str]:
    """Return the names of the documents that have a schema."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def read_schema(name: str) -> bytes:
    """Return the JSON Schema of one kind of document.

    Raises:
        UsageError: No document is called that.
    """
    if name not in schema_names():
        msg = f"schema: expected one of {', '.join(schema_names())}; found {name!r}"
        raise UsageError(msg)
    return (FOLDER / f"{name}.json").read_bytes()
