r"""Lengths of sequences: plain numbers, a JSON array, JSON Lines, CSV, or a NumPy file; told by content.

    512 2048 96                        numbers with white space or commas between them; # begins a comment
    [512, 2048, 96]                    an array, of numbers or of objects
    {"text": "…", "length": 512}       objects, one a line: the key is named, or one that is usual is taken
    id,tokens                          CSV with a header
    \x93NUMPY                         an array of whole numbers, as `numpy.save` writes it

Where a key holds a list (`input_ids`), its length is taken.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import InputError
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STDIN: Final = "-"
USUAL_KEYS: Final = ("length", "lengths", "tokens", "num_tokens", "n_tokens", "seq_len", "seqlen", "input_ids")
"""Taken where no key is named and exactly one of them is there."""

_HINT: Final = "One whole number of tokens for each sequence: as text, JSON, JSON Lines, CSV or .npy"
_BYTES_MAX: Final = 512 << 20
_LARGEST: Final = 1 << 40  # tokens of one sequence: beyond, it is something else
_DIGITS_MAX: Final = 30
_LISTED: Final = 8
_NUMPY_MAGIC: Final = b"\x93NUMPY"
_COMMENT: Final = re.compile(r"#.*")
_SEPARATOR: Final = re.compile(r"[\s,;]+")
_NUMBER: Final = re.compile(r"[+-]?\d[\d_]*", re.ASCII)


def read_lengths(path: str, key: str | None = None) -> list[int]:
    """Read the lengths of sequences, in their order.

    Args:
        path: The file, `-` for standard input.
        key: Of objects, or column of CSV; one of `USUAL_KEYS` unless given.

    Raises:
        InputError: It cannot be read, or something in it is no length: up to eight mistakes are listed, each with its
            line or place.
    """
    data = _read(path)
    if data.startswith(_NUMPY_MAGIC):
        found = _from_numpy(data, path)
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError.at(path, error.start, "is no text in UTF-8", _HINT) from None
        found = _from_text(text, path, key)
    lengths, mistakes, n_mistakes = [], [], 0
    for where, value in found:
        says = _complaint(value)
        if not says:
            lengths.append(value if isinstance(value, int) else len(value))
            continue
        n_mistakes += 1
        if n_mistakes <= _LISTED:
            mistakes.append(f"  {where}: {says}")
    if mistakes:
        raise _refusal(path, mistakes, n_mistakes)
    if not lengths:
        raise InputError.at(path, None, "holds no lengths", _HINT)
    return lengths


def _complaint(value: Any) -> str:
    """Return what is wrong with a length, empty for nothing."""
    if isinstance(value, list):
        return ""
    if isinstance(value, bool) or not isinstance(value, int):
        return f"expected a whole number of tokens, found {value!r:.60}"
    if value < 0:
        return f"expected at least 0 tokens, found {value}"
    return "" if value < _LARGEST else f"expected tokens of one sequence, found {value}"


def _refusal(path: str, mistakes: Sequence[str], n_mistakes: int) -> InputError:
    more = [f"  … and {n_mistakes - len(mistakes)} more"] if n_mistakes > len(mistakes) else []
    count = format_count(n_mistakes, "value")
    return InputError(
        "\n".join([f"{path}: {count} that {'is' if n_mistakes == 1 else 'are'} no length:", *mistakes, *more, _HINT])
    )


def _read(path: str) -> bytes:
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(_BYTES_MAX + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        raise InputError.at(path, None, "there is no such file", _HINT) from None
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", _HINT) from None
    if len(data) > _BYTES_MAX:
        raise InputError.at(path, None, f"is larger than {_BYTES_MAX >> 20} MiB", _HINT)
    return data


def _from_numpy(data: bytes, path: str) -> Iterator[tuple[str, Any]]:
    import numpy as np

    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError, OverflowError, TypeError) as error:
        raise InputError.at(path, None, f"is no NumPy array that can be read: {error}", _HINT) from None
    if array.ndim != 1 or array.dtype.kind not in "iu":
        found = f"expected a NumPy array of whole numbers with one axis, found {array.dtype} of shape {array.shape}"
        raise InputError.at(path, None, found, _HINT)
    for place, value in enumerate(array.tolist()):
        yield f"element {place}", value


def _from_text(text: str, path: str, key: str | None) -> Iterator[tuple[str, Any]]:
    lines = text.splitlines()
    first = next((line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    if not first:
        raise InputError.at(path, None, "holds no lengths", _HINT)
    if first.startswith("["):
        return _from_array(text, path, key)
    if first.startswith("{"):
        return _from_json_lines(lines, path, key)
    if key is not None or not _NUMBER.fullmatch(_SEPARATOR.split(first.strip(",; "))[0]):
        return _from_csv(lines, path, key)
    if _is_headless_table(lines):
        found = "has several numbers on every line and no header: which column holds the lengths is not known"
        raise InputError.at(path, None, found, "Write a header and name the column with --key, or one number a line")
    return _from_numbers(lines)


def _is_headless_table(lines: Sequence[str]) -> bool:
    """Tell whether at least two lines have the same number of cells, of at least two."""
    rows = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    counts = {row.count(",") for row in rows}
    return len(rows) > 1 and len(counts) == 1 and counts != {0} and not any(row.endswith(",") for row in rows)


def _from_numbers(lines: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(lines, 1):
        for word in filter(None, _SEPARATOR.split(_COMMENT.sub("", line))):
            yield f"line {number}", int(word) if _is_number(word) else word


def _is_number(word: str) -> bool:
    return len(word) <= _DIGITS_MAX and _NUMBER.fullmatch(word) is not None


def _from_array(text: str, path: str, key: str | None) -> Iterator[tuple[str, Any]]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError.at(path, None, f"is not JSON: {error}", _HINT) from None
    objects = [value for value in values if isinstance(value, dict)]
    if objects and len(objects) == len(values):
        chosen = _choose_key(path, objects[0], key)
        return ((f"element {place}", value.get(chosen)) for place, value in enumerate(values))
    return ((f"element {place}", value) for place, value in enumerate(values))


def _from_json_lines(lines: Sequence[str], path: str, key: str | None) -> Iterator[tuple[str, Any]]:
    chosen = key
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            where, found = f"{path}, line {number}", f"is not JSON: {error}"
            raise InputError.at(where, None, found, _HINT) from None
        if not isinstance(value, dict):
            yield f"line {number}", value
            continue
        chosen = chosen if chosen in value else _choose_key(f"{path}, line {number}", value, key)
        yield f"line {number}", value.get(chosen)


def _from_csv(lines: Sequence[str], path: str, key: str | None) -> Iterator[tuple[str, Any]]:
    kept = [
        (number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")
    ]
    rows = csv.reader(line for _, line in kept)
    at: int | None = None
    try:
        for row in rows:
            if at is None:
                header = [cell.strip() for cell in row]
                at = header.index(_choose_key(path, dict.fromkeys(header), key))
                continue
            text = row[at].strip() if at < len(row) else ""
            yield f"line {kept[rows.line_num - 1][0]}", int(text) if _is_number(text) else text
    except csv.Error as error:
        where = f"{path}, line {kept[rows.line_num - 1][0]}"
        raise InputError.at(where, None, f"is no CSV: {error}", _HINT) from None


def _choose_key(where: str, keys: dict[str, Any], key: str | None) -> str:
    """Return the key that holds lengths.

    Raises:
        InputError: It is not there, or none is named and not exactly one usual one is there.
    """
    if key is not None:
        if key in keys:
            return key
        raise InputError.at(where, None, f"has no {key!r}; there are {_listed(keys)}", "Name one with --key")
    usual = [one for one in USUAL_KEYS if one in keys]
    if len(usual) == 1:
        return usual[0]
    found = f"which of {_listed(usual or keys)} holds the lengths is not clear"
    raise InputError.at(where, None, found, "Name it with --key")


def _listed(keys: Any) -> str:
    names = [repr(name)[:40] for name in keys]
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "") if names else "none"
