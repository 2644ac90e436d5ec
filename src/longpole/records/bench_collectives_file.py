"""Records of collectives as files: written so that they can be read back, and read strictly."""

from __future__ import annotations

import re
from typing import Final

from longpole.records.bench_collectives import SCHEMA, CollectivesRecord
from longpole.records.strict_json import decode_document, encode_document

_MARK: Final = re.compile(rb'"schema"\s*:\s*"longpole\.bench-collectives/')
_HINT: Final = "docs/reference/bench-collectives.md describes the format"


def encode_collectives(record: CollectivesRecord) -> bytes:
    """Write a record as UTF-8 JSON, indented by one space, with a line end."""
    return encode_document(record)


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
    return decode_document(data, path, CollectivesRecord, SCHEMA, _HINT)
