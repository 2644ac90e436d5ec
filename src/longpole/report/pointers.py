"""JSON Pointers into the report: where unknown figures stand, and which figures a finding voids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from longpole.records.ledger import Unknown
from longpole.report.document import Report, UnknownEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.timeline.integrity import Finding


def resolve_voids(finding: Finding, places: dict[int, list[int]]) -> Finding:
    """Return a finding with `@` replaced by the rows of its rank.

    Args:
        finding: A finding of a rank, or of the run.
        places: Rank -> places of its rows in the report's `ranks`.
    """
    rows = places.get(finding.rank, []) if finding.rank is not None else []
    voids = []
    for pointer in finding.voids:
        voids += [pointer.replace("@", f"/ranks/{row}", 1) for row in rows] if pointer.startswith("@") else [pointer]
    return msgspec.structs.replace(finding, voids=voids)


def unknown_entries(report: Report) -> list[UnknownEntry]:
    """Collect all that is not known: unknown values where they stand, and figures that findings void.

    What is not known of single units is listed once a row, for the first unit: the reason is the same in all.
    """
    entries = unknown_values(report)
    for finding in report.integrity:
        entries += [UnknownEntry(at, f"{finding.code}: {finding.message}", []) for at in finding.voids]
    return entries


def unknown_values(document: msgspec.Struct) -> list[UnknownEntry]:
    """Collect the unknown values of any document of ours, with JSON Pointers to where they stand."""
    return [UnknownEntry(at, unknown.unknown, unknown.missing) for at, unknown in _walk(document, "")]


def _walk(value: Any, at: str) -> Iterator[tuple[str, Unknown]]:
    if isinstance(value, Unknown):
        yield at, value
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            inner = getattr(value, field)
            if field == "units" and isinstance(inner, list) and not any(isinstance(unit, str) for unit in inner):
                yield from _of_units(inner, f"{at}/{field}")
            elif not isinstance(inner, int | str | float):
                yield from _walk(inner, f"{at}/{field}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, f"{at}/{_escaped(str(key))}")
    elif isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
        for place, inner in enumerate(value):
            yield from _walk(inner, f"{at}/{place}")


def _of_units(units: list[Any], at: str) -> Iterator[tuple[str, Unknown]]:
    """Yield each reason once, at the first real unit that has it."""
    seen: set[tuple[str, str]] = set()
    for place, unit in enumerate(units):
        if unit.kind in ("head", "tail"):
            continue
        for pointer, unknown in _walk(unit, f"{at}/{place}"):
            field = pointer.rsplit("/", 1)[-1]
            if (field, unknown.unknown) not in seen:
                seen.add((field, unknown.unknown))
                yield pointer, unknown


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
