"""The exception tree, and the value that stands for an answer that cannot be given.

LongpoleError                 exit code 4
├── UsageError                exit code 2: the call is wrong (a path, an option, two jobs in one folder)
├── InputError                exit code 3: what was read is not what was expected, or is beyond repair
│   ├── NotATraceError        another format, or nothing in it that carries time
│   └── TwoWritersError       two processes wrote into one file at once; no figure from it can be trusted
├── InvariantError            exit code 4: one of our own laws does not hold; a bug of ours
└── MissingExtraError         exit code 2: an optional library is not installed

Every message says what was expected, what was found, where, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike


class LongpoleError(Exception):
    """Any failure that Longpole explains to its user."""

    exit_code = 4


class UsageError(LongpoleError):
    """The call cannot be carried out as it was written."""

    exit_code = 2


class InputError(LongpoleError):
    """A file is not readable, not what was expected, or damaged beyond what repair can save."""

    exit_code = 3

    @classmethod
    def at(cls, path: str | PathLike[str], byte: int | None, found: str, hint: str) -> InputError:
        """Build the message from its four parts: where, what was found, and what to do."""
        where = f"{path}" if byte is None else f"{path}, byte {byte:,}"
        return cls(f"{where}: {found}. {hint}")


class NotATraceError(InputError):
    """The file is of another format, or holds no timed event."""


class TwoWritersError(InputError):
    """Two processes wrote into one file at the same time."""


class InvariantError(LongpoleError):
    """One of Longpole's own laws is broken; the input is not at fault."""


class MissingExtraError(LongpoleError):
    """An optional library is needed and is not installed."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Unanswered:
    """An answer that the evidence does not carry.

    Attributes:
        reason: One sentence for a person: why the figure is not known.
        missing: What would have to be recorded for it to be known.
    """

    reason: str
    missing: Sequence[str] = field(default=())
