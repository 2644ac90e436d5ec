"""Records that an entry of a journal rests on: linked by path and hash, and read for their configuration."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.advice.journal.entry import flatten_config
from longpole.errors import InputError, UsageError
from longpole.pipeline.journal_file import hash_record
from longpole.records.journal import RecordLink
from longpole.records.run_record_file import decode_record, looks_like_record

if TYPE_CHECKING:
    from longpole.records.journal import ConfigValue
    from longpole.records.run_record import RunRecord

SIDES: Final = ("before", "after", "verdict", "other")
_HEAD_BYTES: Final = 4096
_SCHEMA_MAX: Final = 64
# What a contract says of the data is part of the configuration; fingerprints of what ran are not.
_CONTRACT: Final = ("global_batch", "micro_batch", "length_distribution", "dtype", "sampler", "seed", "layout")


@dataclass(frozen=True, slots=True)
class Linked:
    """A record as it is linked, with the configuration that it holds."""

    link: RecordLink
    config: dict[str, ConfigValue]


def link_record(side: str, path: Path, folder: Path) -> Linked:
    """Link a record.

    Args:
        side: One of `SIDES`.
        path: A file or a folder.
        folder: The journal's, from which paths are written.

    Raises:
        UsageError: There is no such file or folder.
        InputError: It cannot be read, or means to be a run record and is none.
    """
    sha256 = hash_record(path)
    if not sha256:
        msg = (
            f"record {path}: there is no such file or folder. An entry needs the records that it rests on;"
            " where there are none, say why with --no-record REASON"
        )
        raise UsageError(msg)
    where = Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()
    if path.is_dir():
        return Linked(RecordLink(where, sha256, side, "folder"), {})
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if looks_like_record(head):
        record = decode_record(path.read_bytes(), str(path))
        return Linked(RecordLink(where, sha256, side, record.schema, record.run_id), config_of(record))
    return Linked(RecordLink(where, sha256, side, _kind(path, head)), {})


class _Schema(msgspec.Struct):
    schema: str = "file"


def _kind(path: Path, head: bytes) -> str:
    """Return the schema that a JSON document of ours names; `file` for anything else."""
    if b'"longpole.' not in head:
        return "file"
    try:
        schema = msgspec.json.decode(path.read_bytes(), type=_Schema).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "file"
    return schema if schema.startswith("longpole.") and len(schema) < _SCHEMA_MAX else "file"


def config_of(record: RunRecord) -> dict[str, ConfigValue]:
    """Return what a run was set to: its configuration, and what its contract declares."""
    declared = {name: getattr(record.contract, name) for name in _CONTRACT}
    contract = {name: value for name, value in declared.items() if value is not None}
    return flatten_config({**record.configuration, **({"contract": contract} if contract else {})})


def read_config(option: str, path: Path) -> dict[str, ConfigValue]:
    """Read a configuration: TOML where the file is called `.toml`, else JSON.

    Raises:
        UsageError: There is no such file.
        InputError: It cannot be read, or is not an object of keys.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        msg = f"{option} {path}: there is no such file; name a JSON or a TOML file"
        raise UsageError(msg) from None
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", "Name another file") from None
    try:
        found: Any = tomllib.loads(data.decode()) if path.suffix == ".toml" else msgspec.json.decode(data)
    except (tomllib.TOMLDecodeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise InputError.at(path, None, f"not {kind}: {error}", "Name a JSON file, or a .toml file") from None
    if not isinstance(found, dict):
        raise InputError.at(path, None, "expected keys and values, found something else", "Name another file")
    return flatten_config(found)
