"""How much of a report a JSON document holds: `run`, `rank` or `unit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from longpole.errors import UsageError
from longpole.report.document import UnknownEntry
from longpole.report.worst import by_largest_wait

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.report.document import Report

_ROWS: Final = "/ranks/"
DETAILS: Final = ("run", "rank", "unit")
ROWS_UP_TO: Final = 64
ROWS_KEPT: Final = 16
"""`rank` holds all rows up to 64 ranks, and the 16 with the largest waits beyond that (REPORT-JSON)."""


def check_detail(detail: str) -> None:
    """Check the name of a level of detail.

    Raises:
        UsageError: There is no such level.
    """
    if detail not in DETAILS:
        msg = f"--detail: expected one of {', '.join(DETAILS)}; found {detail!r}"
        raise UsageError(msg)


def select_detail(report: Report, detail: str) -> Report:
    """Return a report with the rows that a level of detail keeps; pointers into it still resolve.

    Pointers at rows that are left out go, and an entry of `unknown` says how many rows that were.

    Args:
        report: The whole report.
        detail: `run`: no rows. `rank`: all of them up to 64, beyond that the 16 with the largest waits. `unit`: all.

    Raises:
        UsageError: There is no such level of detail.
    """
    check_detail(detail)
    kept = _kept_places(report, detail)
    n_left_out = len(report.ranks) - len(kept)
    if not n_left_out:
        return report
    new_place = {old: new for new, old in enumerate(kept)}
    why = f"{n_left_out} of {len(report.ranks)} rows are left out of this document: --detail {detail}"
    entries = [
        msgspec.structs.replace(entry, at=at) for entry in report.unknown for at in _moved([entry.at], new_place)
    ]
    findings = [
        msgspec.structs.replace(finding, voids=list(_moved(finding.voids, new_place))) for finding in report.integrity
    ]
    return msgspec.structs.replace(
        report,
        ranks=[report.ranks[place] for place in kept],
        unknown=[*entries, UnknownEntry("/ranks", why, ["--detail unit"])],
        integrity=findings,
    )


def _kept_places(report: Report, detail: str) -> list[int]:
    if detail == "run":
        return []
    if detail == "unit" or len(report.ranks) <= ROWS_UP_TO:
        return list(range(len(report.ranks)))
    return sorted(by_largest_wait(report.ranks)[:ROWS_KEPT])


def _moved(pointers: Iterable[str], new_place: dict[int, int]) -> Iterable[str]:
    """Yield the pointers that still have a target, brought to the rows' new places."""
    for pointer in pointers:
        if not pointer.startswith(_ROWS):
            yield pointer
            continue
        place, slash, inside = pointer[len(_ROWS) :].partition("/")
        if place.isdecimal() and int(place) in new_place:
            yield f"{_ROWS}{new_place[int(place)]}{slash}{inside}"
