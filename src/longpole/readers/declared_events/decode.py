"""From a file to raw events: which of the three formats it is, told by content and not by its name."""

from __future__ import annotations

import codecs
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.costs.declared_fields import FIELD_OF, LIFECYCLE_FIELDS
from longpole.errors import InputError
from longpole.readers.declared_events.csv_text import decode_csv, delimiter_of
from longpole.readers.declared_events.json_text import decode_json
from longpole.readers.declared_events.raw import DecodingError
from longpole.readers.declared_events.toml_text import decode_toml

if TYPE_CHECKING:
    from longpole.readers.declared_events.raw import RawFile

HINT: Final = "docs/reference/declared-events.md describes the format"
STDIN: Final = "-"
_BYTES_MAX: Final = 64 << 20  # a hundred thousand events have a tenth of that
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TOML_TABLE: Final = re.compile(r"\[\s*(?:\[\s*[\"']?\w+[\"']?\s*\]|[A-Za-z_][\w.]*)\s*\]\s*(?:#.*)?$")
_DECODERS: Final = {"json": decode_json, "toml": decode_toml, "csv": decode_csv}


def read_raw(path: str) -> RawFile:
    """Read a file of declared events, `-` for standard input.

    Raises:
        InputError: It cannot be read, is too large, or is none of the three formats.
    """
    text = _read_text(path)
    kind = sniff_format(text)
    if not kind:
        found = "expected declared events: a JSON list, TOML with [[events]], or CSV with the keys in its first line"
        raise InputError.at(path, None, f"{found}; found {_beginning(text)}", HINT)
    try:
        return _DECODERS[kind](text)
    except DecodingError as error:
        where = f"{path}, line {error.line}" if error.line is not None else path
        raise InputError.at(where, None, error.found, HINT) from None


def sniff_format(text: str) -> str:
    """Tell the format by content: `json`, `toml`, `csv`, or empty for none of them.

    >>> sniff_format('[{"object": "input"}]'), sniff_format("[[events]]"), sniff_format("object,bytes")
    ('json', 'toml', 'csv')
    """
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    if first.startswith("{"):
        return "json"
    if first.startswith("["):
        return "toml" if _TOML_TABLE.match(first) else "json"
    cells = {cell.strip().strip('"') for cell in text.partition("\n")[0].split(delimiter_of(text))}
    if cells & FIELD_OF.keys() and "=" not in first:
        return "csv"
    key = first.partition("=")[0].strip().strip("\"'")
    return "toml" if "=" in first and (key.isidentifier() or key in LIFECYCLE_FIELDS) else ""


def _read_text(path: str) -> str:
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(_BYTES_MAX + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_BYTES_MAX + 1)
    except IsADirectoryError:
        raise InputError.at(path, None, "expected a file of declared events, found a folder", "Name the file") from None
    except FileNotFoundError:
        raise InputError.at(path, None, "expected a file, found nothing", "Check the path") from None
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", "Name a file of declared events") from None
    if len(data) > _BYTES_MAX:
        found = f"more than {_BYTES_MAX >> 20} MiB, which is no list that someone declared"
        raise InputError.at(path, None, found, HINT)
    try:
        text = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.at(path, error.start, "no text in UTF-8", "Save it as UTF-8") from None
    if not text.strip():
        raise InputError.at(path, None, "expected declared events, found an empty file", HINT)
    return text


def _beginning(text: str) -> str:
    return f"{text.strip().splitlines()[0]!r:.50}"
