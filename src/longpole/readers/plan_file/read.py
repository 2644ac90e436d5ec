"""From a file to the sections of a plan, every key checked; up to eight mistakes are told at once."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import InputError, UsageError
from longpole.readers.plan_file.keys import NEEDED_SECTIONS, REQUIRED, SECTIONS, TOP, key_of
from longpole.readers.plan_file.values import find_complaint, show_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

HINT: Final = "docs/reference/plan-file.md describes every key"
STDIN: Final = "-"
_BYTES_MAX: Final = 1 << 20
_LISTED: Final = 8
_AT: Final = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column \d+\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as it was written: keys that are there, with values that they may hold.

    Attributes:
        path: The file, `-` for standard input.
        sections: Section -> key -> value; the keys before the first section stand under the empty name.
    """

    path: str
    sections: Mapping[str, Mapping[str, Any]]

    def section(self, name: str) -> Mapping[str, Any]:
        """Return what a section holds, nothing where it is not there."""
        return self.sections.get(name, {})

    @property
    def folder(self) -> Path:
        """What paths inside the plan are relative to."""
        return Path() if self.path == STDIN else Path(self.path).parent


def read_plan_file(path: str, changes: Sequence[tuple[str, object]] = ()) -> PlanFile:
    """Read a plan, `-` for standard input.

    Args:
        path: The file.
        changes: (key, value) that stand in place of the file's: `layout.tp`, or `convention` of the top.

    Raises:
        InputError: It cannot be read, or is no TOML.
        UsageError: A key is unknown, missing, or holds what it cannot hold; up to eight mistakes are listed.
    """
    return check_plan(with_changes(_decode(_read_text(path), path), changes), path)


def check_plan(tables: Mapping[str, Any], path: str) -> PlanFile:
    """Check what a TOML file holds.

    Args:
        tables: Its content.
        path: What messages call it.

    Raises:
        UsageError: As `read_plan_file`.
    """
    sections, strays = _sections_of(tables)
    mistakes = [*strays]
    for name, keys in sections.items():
        mistakes += [f"{_place(name, key)}: {says}" for key, says in _section_mistakes(name, keys)]
    needed = [name for name in NEEDED_SECTIONS if not (name == "batch" and sections.get("serving"))]
    mistakes += [f"[{name}]: missing; expected {_needs(name)}" for name in needed if not sections.get(name, {})]
    if mistakes:
        raise _refusal(path, mistakes)
    return PlanFile(path, sections)


def with_changes(tables: Mapping[str, Any], changes: Sequence[tuple[str, object]]) -> Mapping[str, Any]:
    """Put changes in place of what a plan holds; a key that is none is found by the check.

    Args:
        tables: As TOML decodes them.
        changes: (key, value), such as `layout.tp` and 8.
    """
    changed: dict[str, Any] = {
        name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()
    }
    for key, value in changes:
        *sections, name = key.split(".")
        place = changed
        for section in sections:
            inner = place.get(section)
            place[section] = dict(inner) if isinstance(inner, dict) else {}
            place = place[section]
        place[name] = value
    return changed


def refuse_key(path: str, section: str, key: str, says: str) -> UsageError:
    """Build the message on one key: where, what is wrong, what to do."""
    return UsageError(f"{path}: {_place(section, key)}: {says}. {HINT}")


def _place(section: str, key: str) -> str:
    return f"[{section}] {key}" if section else key


def _needs(section: str) -> str:
    if section == "model":
        return "preset, config, or layers, hidden, heads and vocabulary"
    if section == "hardware":
        return 'device = "H100-SXM5-80GB", or another of the table'
    return ", ".join(key.name for key in SECTIONS[section] if key.default == REQUIRED)


def _sections_of(tables: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Part keys from sections, and tell of sections that there are none of."""
    sections: dict[str, Mapping[str, Any]] = {TOP: {}}
    strays: list[str] = []
    top: dict[str, Any] = {}
    known = [name for name in SECTIONS if name and "." not in name]
    for name, value in tables.items():
        if name in known and not isinstance(value, dict):
            strays.append(f"{name}: expected a section [{name}]; found {show_value(value)}")
        elif name in known:
            sections |= dict(_with_subsections(name, value))
        elif isinstance(value, dict) and key_of(TOP, name) is None:
            strays.append(f"[{name}]: no section of a plan{_meant(name, known)}")
        else:
            top[name] = value
    sections[TOP] = top
    return sections, strays


def _with_subsections(name: str, keys: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    inner = {key: value for key, value in keys.items() if f"{name}.{key}" in SECTIONS and isinstance(value, dict)}
    yield name, {key: value for key, value in keys.items() if key not in inner}
    for key, value in inner.items():
        yield f"{name}.{key}", value


def _section_mistakes(section: str, keys: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    rows = SECTIONS[section]
    for name, value in keys.items():
        row = key_of(section, name)
        if row is None:
            yield name, f"no key of {f'[{section}]' if section else 'a plan'}{_hint(name, section)}"
            continue
        complaint = find_complaint(row, value)
        if complaint:
            yield name, complaint
    for row in rows:
        if row.default == REQUIRED and row.name not in keys and row.name != "convention":
            yield row.name, f"missing: {_lowered(row.meaning)}"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")


def _hint(name: str, section: str) -> str:
    """Say where a key belongs that stands in the wrong section, else which key may be meant."""
    homes = [f"[{home}]" if home else "the top of the file" for home in SECTIONS if key_of(home, name) is not None]
    return f"; it belongs into {' or '.join(homes)}" if homes else _meant(name, [row.name for row in SECTIONS[section]])


def _meant(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"


def _decode(text: str, path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _AT.match(str(error))
        where = f"{path}, line {match['line']}" if match else path
        raise InputError.at(where, None, f"no TOML: {match['what'] if match else error}", HINT) from None
    except (RecursionError, ValueError) as error:
        raise InputError.at(path, None, f"no TOML that can be read: {error}", HINT) from None


def _read_text(path: str) -> str:
    try:
        data = _read_bytes(path)
    except IsADirectoryError:
        raise InputError.at(path, None, "expected a plan in TOML, found a folder", "Name the file") from None
    except FileNotFoundError:
        raise InputError.at(path, None, "expected a plan in TOML, found nothing", "Check the path") from None
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", "Name a plan in TOML") from None
    if len(data) > _BYTES_MAX:
        raise InputError.at(path, None, f"more than {_BYTES_MAX >> 20} MiB, which is no plan", HINT)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.at(path, error.start, "no text in UTF-8", "Save it as UTF-8") from None
    if not text.strip():
        raise InputError.at(path, None, "expected a plan in TOML, found an empty file", HINT)
    if text.lstrip().startswith("{"):
        found = "expected a plan in TOML, found JSON"
        raise InputError.at(path, None, found, 'A Hugging Face config.json goes into [model] config = "config.json"')
    return text


def _read_bytes(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read(_BYTES_MAX + 1)
    with Path(path).open("rb") as file:
        return file.read(_BYTES_MAX + 1)


def _refusal(path: str, mistakes: Sequence[str]) -> UsageError:
    if len(mistakes) == 1:
        return UsageError(f"{path}: {mistakes[0]}{'' if mistakes[0].endswith('?') else '.'} {HINT}")
    lines = [f"{path}: {len(mistakes)} mistakes:", *(f"  {mistake}" for mistake in mistakes[:_LISTED])]
    lines += [f"  and {len(mistakes) - _LISTED} more"] if len(mistakes) > _LISTED else []
    return UsageError("\n".join([*lines, HINT]))
