"""Records of `longpole bench io` as files: written so that they can be read back, and read strictly."""

from __future__ import annotations

from typing import Final

from longpole.records.bench_io import SCHEMA, BenchIo
from longpole.records.strict_json import decode_document, encode_document, refusal

_HINT: Final = "docs/reference/bench-io-record.md describes the format"


def encode_bench_io(record: BenchIo) -> bytes:
    """Write a record as UTF-8 JSON, indented by one space, with a line end."""
    return encode_document(record)


def decode_bench_io(data: bytes, path: str) -> BenchIo:
    """Read a record.

    Args:
        data: The bytes of the file.
        path: The file, for messages.

    Raises:
        InputError: It is no JSON, of another version, or a field is wrong: file and field are named.
    """
    record = decode_document(data, path, BenchIo, SCHEMA, _HINT)
    for place, one in enumerate(record.paths):
        for number, case in enumerate(one.cases):
            if len(case.rounds) != len(case.service_ns) or case.warmups > len(case.service_ns):
                where = f"$.paths[{place}].cases[{number}]"
                raise refusal(path, where, "rounds and service_ns are not of one length", _HINT)
    return record
