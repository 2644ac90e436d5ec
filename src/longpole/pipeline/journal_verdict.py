"""A verdict's document (`longpole.verify/1`) as `longpole journal add --from` reads it.

Only what the journal takes is read, so that a document with more in it still serves.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from longpole.advice.journal.verdict import FromVerdict, Verdict, take_verdict
from longpole.errors import InputError, UsageError
from longpole.pipeline.journal_records import Linked, link_record
from longpole.records.verdict import VERDICTS, ContractItem, Effect, Limit, Part, Predicted, RunEntry, SideFigure

if TYPE_CHECKING:
    from collections.abc import Iterator

Form = TypeVar("Form")

_SCHEMA: Final = "longpole.verify/1"
_HINT: Final = "Name what `longpole verify … --json FILE` wrote"


def read_verdict(path: Path | None, folder: Path) -> tuple[FromVerdict, list[Linked]]:
    """Read a verdict, and link it and the runs that it compares.

    Args:
        path: The document; None where there is none.
        folder: The journal's.

    Raises:
        UsageError: The document or one of its runs is not there.
        InputError: It is no verdict, or a run is not what it was when the verdict was given.
    """
    if path is None:
        return FromVerdict(), []
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        msg = f"--from {path}: there is no such file. {_HINT}"
        raise UsageError(msg) from None
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror}", _HINT) from None
    verdict = decode_verdict(data, path)
    runs = [("before", run) for run in verdict.before] + [("after", run) for run in verdict.after]
    linked = [link_record(side, _find(run, path), folder) for side, run in runs]
    return take_verdict(verdict), [*linked, link_record("verdict", path, folder)]


def decode_verdict(data: bytes, path: Path) -> Verdict:
    """Decode a verdict.

    Raises:
        InputError: It is none.
    """
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError.at(path, None, f"not JSON: {error}", _HINT) from None
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise InputError.at(path, None, f"expected the schema {_SCHEMA}, found {found!r}", _HINT)
    if document.get("verdict") not in VERDICTS:
        found = f"$.verdict: expected one of {', '.join(VERDICTS)}; found {document.get('verdict')!r}"
        raise InputError.at(path, None, found, _HINT)
    try:
        return _verdict(document)
    except msgspec.ValidationError as error:
        raise InputError.at(path, None, str(error), _HINT) from None


def _verdict(document: dict[str, Any]) -> Verdict:
    moved = document.get("moved")
    return Verdict(
        verdict=document["verdict"],
        reason=str(document.get("reason") or ""),
        says=str(document.get("says") or ""),
        candidate=str(document.get("candidate") or ""),
        unit_kind=str(document.get("unit_kind") or "unit"),
        effect=_form(document.get("effect"), Effect),
        part=_form(document.get("part"), Part),
        predicted=_form(document.get("predicted"), Predicted),
        limits=list(_forms(document.get("limits"), Limit)),
        contract=list(_forms(document.get("contract"), ContractItem)),
        figures=list(_forms(document.get("figures"), SideFigure)),
        moved=str(moved.get("says") or "") if isinstance(moved, dict) else "",
        before=list(_forms(document.get("before"), RunEntry)),
        after=list(_forms(document.get("after"), RunEntry)),
    )


def _form(value: object, form: type[Form]) -> Form | None:
    """Return a part of the document; None where it is not known or not there."""
    if not isinstance(value, dict) or "unknown" in value:
        return None
    return msgspec.convert(value, form)


def _forms(values: object, form: type[Form]) -> Iterator[Form]:
    for value in values if isinstance(values, list) else []:
        yield msgspec.convert(value, form)


def _find(run: RunEntry, document: Path) -> Path:
    """Return where a run lies: its path from the current folder, else from the document's.

    Raises:
        InputError: The record is not the one that was compared.
    """
    path = next((one for one in (Path(run.path), document.parent / run.path) if one.exists()), Path(run.path))
    if run.blake2b and path.is_file():
        with path.open("rb") as file:
            now = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=len(run.blake2b) // 2)).hexdigest()
        if now != run.blake2b:
            hint = "Verify again, and add that verdict"
            raise InputError.at(path, None, "not what it was when the verdict was given (its hash differs)", hint)
    return path
