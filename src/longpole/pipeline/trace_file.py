"""One file of a run, as it was found and before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Form: TypeAlias = Literal["trace", "spans", "nsys"]

_PACKED_RATIO: Final = 15


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file, or one member of an archive, to read.

    Attributes:
        path: The file.
        shown: How it is called in reports: the path as the user gave it.
        member: The member of an archive, None for the file itself.
        size_bytes: Its size as stored, 0 where it is not known.
        named: The user named it, so that failing to read it must be said.
        packed: It is compressed.
        form: What it is: a profiler's trace, a span file of the recorder, an export of Nsight Systems.
        beside: Further span files that are read together with it.
    """

    path: Path
    shown: str
    member: str | None
    size_bytes: int
    named: bool
    packed: bool = False
    form: Form = "trace"
    beside: tuple[TraceFile, ...] = ()

    @property
    def is_spans(self) -> bool:
        """Tell whether it is a span file of the recorder."""
        return self.form == "spans"

    def parts(self) -> tuple[TraceFile, ...]:
        """Return all files that are read together."""
        return (self, *self.beside)

    def stored_bytes(self) -> int:
        """Return the size of all files that are read together, as stored."""
        return sum(file.size_bytes for file in self.parts())

    def decoded_bytes(self) -> int:
        """Return about how much text the file holds: traces compress some fifteen times (12 to 28 in our corpus)."""
        return sum(file.size_bytes * (_PACKED_RATIO if file.packed else 1) for file in self.parts())
