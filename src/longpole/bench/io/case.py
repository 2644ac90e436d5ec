"""What a case is: one path at one size, which can be prepared, run and checked again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.bench.io.catalogue import PathRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long one sample took.

    Attributes:
        service_ns: To the first full touch, the last call that durability needs, or the copy's end.
        returned_ns: Until a load came back; None for what is no load.
        stages_ns: Stage -> its part.
    """

    service_ns: int
    returned_ns: int | None = None
    stages_ns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a look at the result of a sample found; empty texts where nothing is wrong.

    Attributes:
        failed: Bytes or files are not what they must be.
        differs: The bytes are right, and a side effect is another one than usual.
        invalid: The sample is not what its path says: not cold, not durable.
    """

    failed: str = ""
    differs: str = ""
    invalid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """How things stand before a sample.

    Attributes:
        resident_before: Bytes of its files in the page cache; None where that plays no part.
        invalid: Why the sample would not be what its path says.
    """

    resident_before: int | None = None
    invalid: str = ""


class Case(Protocol):
    """One path at one size."""

    row: PathRow
    size_bytes: int
    objects: int
    side_effects: dict[str, object]

    def set_up(self) -> None:
        """Make what every sample needs."""

    def prepare(self) -> Prepared:
        """Bring things into the state that the path names."""

    def prime(self) -> None:
        """Do the like with other, few bytes, so that the code is at hand when the sample is taken."""

    def run(self, clock_ns: Callable[[], int]) -> Timing:
        """Do it once."""

    def check(self) -> Checked:
        """Look at every byte that was moved, and at what else was done."""

    def clean_up(self) -> None:
        """Let go of memory and files."""
