"""Run records as files: written so that they can be read back, and read strictly."""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING, Any, Final

from longpole.records.run_record import SCHEMA, RecordUnit, RunRecord
from longpole.records.strict_json import decode_document, encode_document, refusal
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HINT: Final = "docs/reference/run-record.md describes the format"
_MARK: Final = re.compile(rb'"schema"\s*:\s*"longpole\.record/')
_MARK_OF_BYTES: Final = b"\xef\xbb\xbf"  # of UTF-8, which some editors write


def encode_record(record: RunRecord) -> bytes:
    """Write a record as UTF-8 JSON, indented by one space, with a line end."""
    return encode_document(record)


def decode_record(data: bytes, path: str) -> RunRecord:
    """Read a record.

    Args:
        data: The bytes of the file.
        path: The file, for messages.

    Raises:
        InputError: It is no JSON, of another version, or a field is wrong: file and field are named.
    """
    record = decode_document(data, path, RunRecord, SCHEMA, _HINT)
    for field, complaint in _complaints(record):
        raise refusal(path, field, complaint, _HINT)
    if not record.run_id:
        record.run_id = hashlib.blake2b(data, digest_size=10).hexdigest()
    return record


def looks_like_record(head: bytes, tail: bytes = b"") -> bool:
    """Tell by its first and last bytes whether a file means to be a run record, of whatever version."""
    begins = head.removeprefix(_MARK_OF_BYTES).lstrip().startswith(b"{")
    return begins and any(_MARK.search(part) is not None for part in (head, tail))


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
