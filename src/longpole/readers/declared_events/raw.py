"""What a file of declared events holds before anything in it is checked."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEvent:
    """An event as it is written.

    Attributes:
        values: Key -> value; a key that is there twice has the last one.
        line: Where it begins, from 1; None where that is not known.
        doubled: Keys that are there more than once.
        problem: What keeps it from being an event at all; empty where nothing does.
    """

    values: dict[str, object]
    line: int | None = None
    doubled: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFile:
    """A file as it is written.

    Attributes:
        events: In their order.
        head: Keys beside the events.
        from_text: Numbers and truth values are texts that were read as such (CSV).
    """

    events: list[RawEvent]
    head: dict[str, object] = field(default_factory=dict)


class DecodingError(Exception):
    """The text is not what its format allows.

    Attributes:
        found: What is wrong.
        line: Where, None where that is not known.
    """

    def __init__(self, found: str, line: int | None = None) -> None:
        super().__init__(found)
        self.found = found
        self.line = line
