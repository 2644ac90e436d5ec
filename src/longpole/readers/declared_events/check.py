"""From raw events to declared ones: every mistake is named by event and key, and nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.declared_events import DeclaredEvent
from longpole.costs.declared_fields import (
    LIFECYCLE_FIELDS,
    MOST,
    find_complaints,
    finite_number,
    hint_of,
    nearest,
    show,
)
from longpole.errors import InputError
from longpole.readers.declared_events.decode import HINT, read_raw

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.costs.measured_path import MeasuredPath
    from longpole.readers.declared_events.raw import RawEvent, RawFile

_LISTED: Final = 8
_NAME_CHARS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFile:
    """What a file declares.

    Attributes:
        events: In their order.
        paths: Of each the measured path that its bandwidth and latency come from; empty where they are declared.
        lifecycle: What the file says of it: key -> number.
    """

    events: tuple[DeclaredEvent, ...]
    paths: tuple[str, ...]
    lifecycle: dict[str, float]


def read_events(path: str, measured: Mapping[str, MeasuredPath] | None = None) -> EventFile:
    """Read a file of declared events, `-` for standard input.

    Args:
        path: The file.
        measured: Name -> path, of the paths that events may name.

    Raises:
        InputError: It cannot be read, or something in it is wrong: up to eight mistakes are listed, each with its event
            and key.
    """
    return check_file(read_raw(path), path, measured)


def check_file(raw: RawFile, path: str, measured: Mapping[str, MeasuredPath] | None = None) -> EventFile:
    """Turn what a file holds into events.

    Args:
        raw: Its content.
        path: What messages call it.
        measured: As of `read_events`.

    Raises:
        InputError: As `read_events`.
    """
    mistakes = [*_head_mistakes(raw.head)]
    for place, event in enumerate(raw.events):
        mistakes += [f"{name_of(event, place)}: {says}" for says in _event_mistakes(event, measured)]
    if not raw.events:
        mistakes.append("expected at least one event, found none")
    if mistakes:
        raise _refusal(path, mistakes)
    head: dict[str, Any] = raw.head
    return EventFile(
        events=tuple(_declare(event.values, measured or {}) for event in raw.events),
        paths=tuple(str(event.values.get("path") or "") for event in raw.events),
        lifecycle={name: head[name] for name in LIFECYCLE_FIELDS if head.get(name) is not None},
    )


def _declare(values: Mapping[str, object], measured: Mapping[str, MeasuredPath]) -> DeclaredEvent:
    """Make an event of values that were checked."""
    kept: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    path = kept.pop("path", "")
    if path:
        piece = measured[path].at(_moved_bytes(kept))
        kept |= {"bandwidth_gbps": piece.bandwidth_gbps, "fixed_latency_ms": piece.latency_ms}
    return DeclaredEvent(**kept)


def _moved_bytes(values: Mapping[str, Any]) -> float:
    size: float = values.get("stored_bytes", values["bytes"])
    return size


def name_of(event: RawEvent, place: int) -> str:
    """Return what a message calls an event: its number from 1, its name, its line."""
    name = event.values.get("name")
    said = f" ({name:.{_NAME_CHARS}})" if isinstance(name, str) and name else ""
    return f"event {place + 1}{said}" + (f", line {event.line}" if event.line is not None else "")


def _head_mistakes(head: Mapping[str, object]) -> Iterator[str]:
    for name, value in head.items():
        if name not in LIFECYCLE_FIELDS:
            yield f"{name}: no key beside the events{hint_of(name, [*LIFECYCLE_FIELDS, 'events'])}"
        elif value is not None and not 0 < (finite_number(value) or 0) <= MOST:
            yield f"{name}: expected a number above 0 and at most 2^62; found {show(value)}"


def _event_mistakes(event: RawEvent, measured: Mapping[str, MeasuredPath] | None) -> Iterator[str]:
    if event.problem:
        yield event.problem
        return
    for name in event.doubled:
        yield f"{name}: there twice; expected once"
    # A key that holds nothing (null, an empty cell) is a key that is left out.
    given = {name: value for name, value in event.values.items() if value is not None}
    for name, says in find_complaints(given):
        yield f"{name}: {says}"
    path = given.get("path")
    if isinstance(path, str) and path:
        says = _path_mistake(path, measured)
        if says:
            yield f"path: {says}"


def _path_mistake(name: str, measured: Mapping[str, MeasuredPath] | None) -> str:
    if measured is None:
        return f"{name!r:.60} is a measured path, and no record of paths is given (--paths RECORD.json)"
    if name not in measured:
        near = nearest(name, measured)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(measured) or 'none'}"
        return f"the record has no path {name!r:.60}; {hint}"
    return measured[name].problem


def _refusal(path: str, mistakes: Sequence[str]) -> InputError:
    if len(mistakes) == 1:
        return InputError.at(path, None, mistakes[0], HINT)
    lines = [f"{path}: {len(mistakes)} mistakes:", *(f"  {mistake}" for mistake in mistakes[:_LISTED])]
    lines += [f"  and {len(mistakes) - _LISTED} more"] if len(mistakes) > _LISTED else []
    return InputError("\n".join([*lines, HINT]))
