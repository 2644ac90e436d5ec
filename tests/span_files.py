"""Recordings for tests: a folder, what lies in it, and programs that record into it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole import record
from longpole.records.span_file_read import SpanFile, read_span_file

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Recording:
    folder: Path

    def stop(self) -> SpanFile:
        """End the recording and return this process's file."""
        record.stop()
        return next(file for file in self.files() if file.header.pid == os.getpid())

    def files(self) -> list[SpanFile]:
        return [read_span_file(path) for path in sorted(self.folder.iterdir())]

    def start_program(self, text: str, **environment: str) -> subprocess.Popen[str]:
        """Start a program that finds `record` imported and recording into the folder."""
        head = f"from longpole import record\nimport os, time\nrecord.start({str(self.folder)!r})\n"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LONGPOLE", "RANK"))}
        return subprocess.Popen(
            [sys.executable, "-c", head + textwrap.dedent(text)],
            env={**kept, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_program(self, text: str, **environment: str) -> tuple[int, str]:
        """Run such a program to its end; return its exit code and what it wrote on stderr."""
        program = self.start_program(text, **environment)
        _, errors = program.communicate(timeout=60)
        return program.returncode, errors
