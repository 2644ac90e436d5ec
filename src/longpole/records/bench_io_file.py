"""Records of `longpole bench io` as files: written so that they can be read back, and read strictly."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from longpole.errors import InputError
from longpole.records.bench_io import SCHEMA, BenchIo

_FIELD: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<field>[^`]*)`)?$", re.DOTALL)
_HINT: Final = "docs/reference/bench-io-record.md describes the format"


def encode_bench_io(record: BenchIo) -> bytes:
    """Write a record as UTF-8 JSON, indented by one space, with a line end."""
    try:
        data = msgspec.json.encode(record)
    except UnicodeEncodeError:
        # A folder whose name is not UTF-8.
        data = msgspec.json.encode(_encodable(msgspec.to_builtins(record)))
    return msgspec.json.format(data, indent=1) + b"\n"


def decode_bench_io(data: bytes, path: str) -> BenchIo:
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
            raise _refusal(path, "$.schema", f"expected {SCHEMA!r}, found {version!r}")
        record = msgspec.json.decode(data, type=BenchIo)
    except msgspec.ValidationError as error:
        match = _FIELD.match(str(error))
        what, field = (match["what"], match["field"]) if match else (str(error), None)
        raise _refusal(path, field or "$", what[:1].lower() + what[1:]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refusal(path, "$", f"not JSON: {error}") from None
    for place, one in enumerate(record.paths):
        for number, case in enumerate(one.cases):
            if len(case.rounds) != len(case.service_ns) or case.warmups > len(case.service_ns):
                where = f"$.paths[{place}].cases[{number}]"
                raise _refusal(path, where, "rounds and service_ns are not of one length")
    return record


class _Version(msgspec.Struct):
    schema: str


def _refusal(path: str, field: str, found: str) -> InputError:
    return InputError(f"{path}: {field}: {found}. {_HINT}")


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value
