"""Tell an SQLite database, and the reports that must be exported to one first."""

from __future__ import annotations

from typing import Final

_MAGIC: Final = b"SQLite format 3\0"
_REPORT_SUFFIXES: Final = (".nsys-rep", ".qdrep")


def looks_like_sqlite(head: bytes) -> bool:
    """Tell whether unpacked bytes begin an SQLite database; whether Nsight Systems wrote it, its tables tell."""
    return head.startswith(_MAGIC)


def looks_like_export(head: bytes) -> bool:
    """Tell whether unpacked bytes begin a database that Nsight Systems wrote: its tables are declared in front."""
    return looks_like_sqlite(head) and b"StringIds" in head


def is_report(name: str) -> bool:
    """Tell whether a file is called like a report of Nsight Systems, whose own form only Nsight Systems reads."""
    return name.lower().endswith(_REPORT_SUFFIXES)


NOT_EXPORTED: Final = (
    "this is a report in Nsight Systems' own form, its export was expected:"
    " nsys export --type sqlite --include-blobs true REPORT"
)
