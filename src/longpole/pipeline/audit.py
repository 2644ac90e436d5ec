"""`longpole audit`: read a file of claims, and hold them against each other."""

from __future__ import annotations

import json
import sys
import tomllib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.claims import audit, read_claims
from longpole.costs.architecture import Architecture, read_config
from longpole.errors import InputError, UsageError
from longpole.pipeline.version import package_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.records.audit import Audit

STDIN: Final = "-"
_MOST_BYTES: Final = 16_000_000
_HINT: Final = "State figures as KEY = VALUE in TOML; docs/reference/claims.md lists the keys"


def audit_file(path: str, progress: Callable[[str, int, int], None] | None = None) -> Audit:
    """Audit the claims of a file.

    Args:
        path: TOML, or JSON of the same keys; `-` for standard input.
        progress: Hears (what is done, statements done, statements in all).

    Raises:
        UsageError: There is no such file.
        InputError: It cannot be read, or states what no figure can be.
    """
    data = _read(path)
    folder = Path() if path == STDIN else Path(path).parent
    try:
        claims = read_claims(_parse(data, path), lambda name: _configuration(folder, name))
    except UsageError as error:
        raise InputError.at(_shown(path), None, str(error), _HINT) from None
    return audit(claims, version=package_version(), progress=progress)


def _shown(path: str) -> str:
    return "standard input" if path == STDIN else path


def _read(path: str) -> bytes:
    if path == STDIN:
        data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    else:
        if not Path(path).exists():
            msg = f"{path}: no such file; name a file of claims, or - for standard input"
            raise UsageError(msg)
        try:
            with Path(path).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise InputError.at(path, None, f"cannot be read: {error.strerror}", "Name a file of claims") from None
    if len(data) > _MOST_BYTES:
        raise InputError.at(_shown(path), None, "is larger than 16 MB", "Name a file of claims")
    return data


def _parse(data: bytes, path: str) -> dict[str, Any]:
    """Return the keys of a file; numbers with a fraction as `Decimal`, so that their digits are known.

    Raises:
        InputError: It is neither TOML nor a JSON object.
    """
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError.at(_shown(path), error.start, "is not UTF-8", _HINT) from None
    kind = "JSON" if text.lstrip().startswith("{") else "TOML"
    try:
        if kind == "TOML":
            return tomllib.loads(text, parse_float=_decimal)
        found = json.loads(text, parse_float=_decimal, parse_constant=_decimal)
    except (ValueError, RecursionError) as error:
        raise InputError.at(_shown(path), None, f"is not {kind}: {error}", _HINT) from None
    if not isinstance(found, dict):
        raise InputError.at(_shown(path), None, "is no JSON object", _HINT)
    return found


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text.replace("_", ""))
    except InvalidOperation:
        msg = f"{text!r} is no number"
        raise ValueError(msg) from None


def _configuration(folder: Path, name: str) -> Architecture | None:
    """Return the model of a `config.json` that is named, beside the file of claims; None for other names."""
    if not name.endswith(".json"):
        return None
    return read_config(folder / name)
