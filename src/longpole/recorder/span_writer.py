"""The file that a process appends its lines to: whole lines only, and no error that reaches the user's program.

A write that fails, because the disk is full or the folder is not writable, is said once on stderr and tried again
with the next batch; what could not be written is counted, and the count is the first line of the next write that works.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.records.span_file import SUFFIX, LostLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.records.span_file import Header, Line

_ENCODER: Final = msgspec.json.Encoder()
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


class SpanWriter:
    """Appends batches of lines to one new file, which it creates with the first batch.

    Not thread-safe: its owner holds a lock.

    Attributes:
        path: The file; None until there is one.
        lost: Lines that could not be written so far, and are not counted in the file yet: reason -> how many.
    """

    def __init__(self, folder: str, make_header: Callable[[], Header]) -> None:
        self.path: Path | None = None
        self.lost: dict[str, int] = {}
        self._folder = folder
        self._make_header = make_header
        self._file: int | None = None
        self._length = 0
        self._cut = False
        self._complained = False

    def write(self, lines: Sequence[Line]) -> bool:
        """Append lines; return whether they are in the file now."""
        try:
            if self._file is None:
                self._create()
            counts = [LostLine(count, why) for why, count in self.lost.items()]
            self._append(_encode([*counts, *lines]))
        except OSError as error:
            self._complain(error)
            why = f"not written: {error.strerror or error}"
            self.lost[why] = self.lost.get(why, 0) + len(lines)
            return False
        self.lost.clear()
        return True

    def close(self) -> None:
        """Close the file; what is written later is lost."""
        if self._file is not None:
            try:
                os.close(self._file)
            except OSError as error:  # a network file system may report here what it could not write
                self._complain(error)
            self._file = None

    def abandon(self) -> None:
        """Give the file up to the process that this one was forked from."""
        self.close()

    def _create(self) -> None:
        header = self._make_header()
        folder = Path(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        rank = "" if header.rank is None else f"rank{header.rank}-"
        worker = "" if header.worker is None else f"worker{header.worker}-"
        host = _NOT_IN_A_NAME.sub("_", header.host)[:64] or "host"
        # The same process id may come back on another machine or in another container; the clock does not.
        path = folder / f"{rank}{worker}{host}-{header.pid}-{time.time_ns():x}{SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file, self._length = os.open(path, flags, 0o644), 0
        self.path = path
        try:
            self._append(_encode([header]))
        except OSError:
            # A file without a header says nothing; the next batch makes another.
            self.close()
            self.path = None
            path.unlink(missing_ok=True)
            raise

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        whole = b"\n" + data if self._cut else data
        rest = memoryview(whole)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            self._cut_back()
            raise
        self._length += len(whole)
        self._cut = False

    def _cut_back(self) -> None:
        """Take back the part of a batch that went in, so that the file ends with a whole line."""
        assert self._file is not None
        try:
            os.ftruncate(self._file, self._length)
        except OSError:
            self._cut = True  # the next write begins by ending the line, which is damaged then, and alone

    def _complain(self, error: OSError) -> None:
        if self._complained:
            return
        self._complained = True
        say(f"cannot write spans to {self._folder}: {error.strerror or error}. The program goes on; lines are counted.")


def say(message: str) -> None:
    """Write a line to stderr, if there is one that can be written to."""
    try:
        sys.stderr.write(f"longpole.record: {message}\n")
    except (OSError, ValueError, AttributeError):
        return


def _encode(lines: Sequence[Line]) -> bytes:
    try:
        return _ENCODER.encode_lines(lines)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError, TypeError):
        return b"".join(_encode_one(line) for line in lines)


def _encode_one(line: Line) -> bytes:
    """Encode a line that may hold what JSON cannot: a lone surrogate is escaped, a number too large is lost."""
    try:
        return _ENCODER.encode(line) + b"\n"
    except UnicodeEncodeError:
        texts = {name: getattr(line, name) for name in line.__struct_fields__}
        mended = {k: v.encode("utf-8", "backslashreplace").decode() for k, v in texts.items() if isinstance(v, str)}
        return _ENCODER.encode(msgspec.structs.replace(line, **mended)) + b"\n"
    except (msgspec.MsgspecError, OverflowError, TypeError):
        return _ENCODER.encode(LostLine(1, "a value that cannot be written")) + b"\n"
