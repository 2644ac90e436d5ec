"""Records of collectives as files: written so that they can be read back, and read strictly."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from longpole.errors import InputError
from longpole.records.bench_collectives import SCHEMA, CollectivesRecord

_MARK: Final = re.compile(rb'"schema"\s*:\s*"longpole\.bench-collectives/')
_HINT: Final = "docs/reference/bench-collectives.md describes the format"


def encode_collectives(record: CollectivesRecord) -> bytes:
    """Write a record as UTF-8 JSON, indented by one space, with a line end."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def looks_like_collectives(head: bytes) -> bool:
    """Tell by its first bytes whether a file means to be a record of collectives, of whatever version."""
    return head.lstrip().startswith(b"{") and _MARK.search(head) is not None


def decode_collectives(data: bytes, path: str) -> CollectivesRecord:
    """Read a record.

    Args:
        data: The bytes of the file.
        path: The file, for messages.

    Raises:
        InputError: It is no JSON, of another version, or a field is wrong: file and field are named.
    """
    try:
        version = msgspec.json.decode(data, type=_Version).schema
        if version != SCHEMA:
            msg = f"{path}: $.schema: expected {SCHEMA!r}, found {version!r}. {_HINT}"
            raise InputError(msg)
        return msgspec.json.decode(data, type=CollectivesRecord)
    except msgspec.ValidationError as error:
        msg = f"{path}: {error}. {_HINT}"
        raise InputError(msg) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"{path}: not JSON: {error}. {_HINT}"
        raise InputError(msg) from None


class _Version(msgspec.Struct):
    schema: str
