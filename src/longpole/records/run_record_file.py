"""Run records as files: written so that they can be read back, and read strictly."""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.errors import InputError
from longpole.records.run_record import SCHEMA, RecordUnit, RunRecord
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FIELD: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<field>[^`]*)`)?$", re.DOTALL)
_HINT: Final = "docs/reference/run-record.md describes the format"
_MARK: Final = re.compile(rb'"schema"\s*:\s*"longpole\.record/')
_MARK_OF_BYTES: Final = b"\xef\xbb\xbf"  # of UTF-8, which some editors write


def encode_record(record: RunRecord) -> bytes:
    """Write a record as UTF-8 JSON, indented by one space, with a line end."""
    try:
        data = msgspec.json.encode(record)
    except UnicodeEncodeError:
        # A path that is not UTF-8, or a lone surrogate in a name.
        data = msgspec.json.encode(_encodable(msgspec.to_builtins(record)))
    return msgspec.json.format(data, indent=1) + b"\n"


def decode_record(data: bytes, path: str) -> RunRecord:
    """Read a record.

    Args:
        data: The bytes of the file.
        path: The file, for messages.

    Raises:
        InputError: It is no JSON, of another version, or a field is wrong: file and field are named.
    """
    data = data.removeprefix(_MARK_OF_BYTES)
    try:
        version = msgspec.json.decode(data, type=_Version).schema
    except msgspec.ValidationError:
        version = None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _refusal(path, "$", f"not JSON: {error}") from None
    if version is not None and version != SCHEMA:
        raise _refusal(path, "$.schema", f"expected {SCHEMA!r}, found {version!r}")
    try:
        record = msgspec.json.decode(data, type=RunRecord)
    except msgspec.ValidationError as error:
        match = _FIELD.match(str(error))
        what, field = (match["what"], match["field"]) if match else (str(error), None)
        raise _refusal(path, field or "$", what[:1].lower() + what[1:]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refusal(path, "$", f"not JSON: {error}") from None
    for field, complaint in _complaints(record):
        raise _refusal(path, field, complaint)
    if not record.run_id:
        record.run_id = hashlib.blake2b(data, digest_size=10).hexdigest()
    return record


def looks_like_record(head: bytes, tail: bytes = b"") -> bool:
    """Tell by its first and last bytes whether a file means to be a run record, of whatever version."""
    begins = head.removeprefix(_MARK_OF_BYTES).lstrip().startswith(b"{")
    return begins and any(_MARK.search(part) is not None for part in (head, tail))


class _Version(msgspec.Struct):
    schema: str


def _refusal(path: str, field: str, found: str) -> InputError:
    return InputError(f"{path}: {field}: {found}. {_HINT}")


def _complaints(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Find what is wrong beyond types: names that do not exist, parts that exceed their whole."""
    for place, unit in enumerate(record.units):
        yield from _unit_complaints(f"$.units[{place}]", unit)
    seen: set[tuple[int, str]] = set()
    for place, row in enumerate(record.rows):
        yield from _name_complaints(f"$.rows[{place}]", row.objects, row.idle_ns)
        if (row.rank, row.device) in seen:
            yield f"$.rows[{place}]", f"rank {row.rank} and device {row.device!r} are there already"
        seen.add((row.rank, row.device))
    for name, figure in record.limits.items():
        if isinstance(figure, float) and not math.isfinite(figure):
            yield f"$.limits.{name}", f"expected a finite number, found {figure}"
    for place, metric in enumerate(record.correctness.metrics):
        if not all(math.isfinite(value) for value in metric.values):
            yield f"$.correctness.metrics[{place}].values", "expected finite numbers"
    if all(unit.left_out or not isinstance(unit.period_ns, int) for unit in record.units):
        return
    if not record.counted():
        yield "$.units", "expected at least one unit whose period is not 0"


def _unit_complaints(where: str, unit: RecordUnit) -> Iterator[tuple[str, str]]:
    yield from _name_complaints(where, unit.objects, unit.idle_ns)
    if not isinstance(unit.wall_ns, int):
        return
    exposed_ns = sum(time.exposed_ns for time in unit.objects.values())
    if exposed_ns > unit.wall_ns:
        yield f"{where}.objects", f"exposed times add up to {exposed_ns}, which is more than wall_ns {unit.wall_ns}"
    idle_ns = sum(unit.idle_ns.values())
    if idle_ns > unit.wall_ns:
        yield f"{where}.idle_ns", f"idle times add up to {idle_ns}, which is more than wall_ns {unit.wall_ns}"


def _name_complaints(where: str, objects: Mapping[str, Any], idle: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in objects:
        if name not in OBJECTS:
            yield f"{where}.objects", f"expected one of {', '.join(OBJECTS)}; found {name!r}"
    for name in idle:
        if name not in IDLE_REASONS:
            yield f"{where}.idle_ns", f"expected one of {', '.join(IDLE_REASONS)}; found {name!r}"


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value
