"""Where a trace for the Perfetto viewer goes: the file that `longpole report --perfetto` names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from longpole.cli.outputs import STDOUT, check_file, refuse, refuse_traces
from longpole.cli.terminal import tell
from longpole.errors import UsageError
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report

_OPTION = "--perfetto"


@dataclass(frozen=True, slots=True)
class ViewerTrace:
    """The file of `--perfetto`, compressed where its name ends in `.gz`.

    Attributes:
        path: The file, None for no trace.
    """

    path: Path | None

    @classmethod
    def of_option(cls, file: str | None) -> ViewerTrace:
        """Look whether the file can be written, before long work is done in vain.

        Raises:
            UsageError: It cannot.
        """
        if file == STDOUT:
            msg = f"{_OPTION} -: expected a file; the page and --json may go to standard output, a trace may not"
            raise UsageError(msg)
        path = Path(file) if file is not None else None
        if path is not None:
            check_file(_OPTION, path)
        return cls(path)

    def write(
        self,
        paths: Sequence[str],
        options: ReportOptions,
        run: Run,
        report: Report,
        progress: Callable[[str, int, int], None],
    ) -> None:
        """Write the trace of a run, where one was asked for, and say whose spans are not in it.

        Raises:
            UsageError: The file is one of the traces, or cannot be written.
        """
        if self.path is None:
            return
        from longpole.pipeline.perfetto import write_perfetto

        refuse_traces(_OPTION, self.path, report)
        try:
            with self.path.open("wb") as out:
                missing = self._write(out, lambda to: write_perfetto(to, paths, options, run, report, progress))
        except OSError as error:
            refuse(_OPTION, self.path, error)
        if missing:
            ranks = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
            tell(f"{self.path}: no spans of {format_count(len(missing), 'rank')} ({ranks}): not to be read again")

    def _write(self, out: BinaryIO, write: Callable[[BinaryIO], list[int]]) -> list[int]:
        if self.path is None or self.path.suffix != ".gz":
            return write(out)
        from isal import igzip

        # Neither the time nor the file's name go into it: the same run gives the same bytes.
        packed: Any = igzip
        with packed.IGzipFile(filename="", mode="wb", fileobj=out, mtime=0) as inside:
            return write(inside)
