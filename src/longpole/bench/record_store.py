"""The file of a record in the making: reserved before anything is run, replaced as a whole, never written over."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.errors import UsageError
from longpole.records.run_record_file import encode_record

if TYPE_CHECKING:
    from longpole.records.run_record import RunRecord

RESULTS: Final = Path("benchmarks/results")
"""Where records go unless a folder is named: a folder for each benchmark, by semantic id."""

UNFINISHED: Final = "the measurement has not come to its end"
_PLAIN: Final = re.compile(r"[^A-Za-z0-9._-]+")


def record_path(label: str, semantic_id: str, folder: Path | None = None) -> Path:
    """Return the file of a record: `FOLDER/SEMANTIC-ID/LABEL.json`."""
    plain = _PLAIN.sub("-", label).strip("-.") or "run"
    return (RESULTS if folder is None else folder) / semantic_id / f"{plain}.json"


class RecordStore:
    """One record's file.

    Attributes:
        path: Where it is; another place where it could not be written there in the end.
    """

    def __init__(self, path: Path) -> None:
        """Reserve the file.

        Raises:
            UsageError: It exists, or cannot be written.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except OSError as error:
            if not isinstance(error, FileExistsError) or not path.parent.is_dir():  # the folder's name is a file's
                msg = f"{path}: cannot be written: {error.strerror or error}. Name another place (--out)"
                raise UsageError(msg) from None
            msg = (
                f"{path}: exists, and a record is never written over. Choose another label (--label),"
                " or name a file (--out FILE.json)"
            )
            raise UsageError(msg) from None

    def give_up(self) -> None:
        """Take the reservation back: nothing was measured."""
        self.path.unlink(missing_ok=True)

    def keep(self, record: RunRecord) -> str:
        """Write what there is until now; return why it could not be, empty where it could.

        The record says that it is not finished, for whoever finds it after a crash.
        """
        record.failure = record.failure or UNFINISHED
        try:
            self._replace(encode_record(record))
        except OSError as error:
            return f"{self.path}: {error.strerror or error}"
        return ""

    def finish(self, record: RunRecord) -> str:
        """Write the whole record; into the folder for temporary files where its own place does not take it.

        Returns:
            Why it is not where it should be; empty where it is.

        Raises:
            UsageError: It cannot be written there either.
        """
        return self.finish_with(encode_record(record))

    def finish_with(self, data: bytes) -> str:
        """Write a whole record of whatever kind, as `finish` does.

        Raises:
            UsageError: It cannot be written anywhere.
        """
        try:
            self._replace(data)
        except OSError as error:
            why = f"{self.path}: cannot be written: {error.strerror or error}"
            self.path = _written_elsewhere(data, why)
            return f"{why}; the record is kept in {self.path}"
        return ""

    def _replace(self, data: bytes) -> None:
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        except OSError:
            part.unlink(missing_ok=True)
            raise


def _written_elsewhere(data: bytes, why: str) -> Path:
    try:
        number, name = tempfile.mkstemp(prefix="longpole-record-", suffix=".json")
        with os.fdopen(number, "wb") as file:
            file.write(data)
    except OSError as error:
        msg = f"{why}; nor can a temporary file: {error.strerror or error}. The samples are lost; make room and repeat"
        raise UsageError(msg) from None
    return Path(name)
