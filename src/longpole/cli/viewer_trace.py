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
    """A file for the viewer; compressed where its name ends in `.gz`."""

    file: str

    @classmethod
    def of_option(cls, file: str | None) -> ViewerTrace | None:
        """Read the option; None where no such file is wanted.

        Raises:
            UsageError: The file cannot be written.
        """
        if file is None:
            return None
        if file == STDOUT:
            msg = f"{_OPTION} -: expected a file; the page and --json may go to standard output, a trace may not"
            raise UsageError(msg)
        check_file(_OPTION, Path(file))
        return cls(file)

    def write(
        self,
        paths: Sequence[str],
        options: ReportOptions,
        run: Run,
        report: Report,
        progress: Callable[[str, int, int], None],
    ) -> None:
        """Write the trace of a run, and say whose spans are not in it.

        Raises:
            UsageError: The file cannot be written, or is one of the traces.
        """
        from longpole.pipeline.perfetto import write_perfetto

        refuse_traces(_OPTION, Path(self.file), report)
        try:
            with Path(self.file).open("wb") as out:
                missing = self._write(out, lambda to: write_perfetto(to, paths, options, run, report, progress))
        except OSError as error:
            refuse(_OPTION, Path(self.file), error)
        if missing:
            ranks = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
            tell(f"{self.file}: no spans of {format_count(len(missing), 'rank')} ({ranks}): not to be read again")

    def _write(self, out: BinaryIO, write: Callable[[BinaryIO], list[int]]) -> list[int]:
        if not self.file.endswith(".gz"):
            return write(out)
        from isal import igzip

        # Neither the time nor the file's name go into it: the same run gives the same bytes.
        packed: Any = igzip
        with packed.IGzipFile(filename="", mode="wb", fileobj=out, mtime=0) as inside:
            return write(inside)
