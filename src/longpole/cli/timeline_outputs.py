"""Where the outputs go that show every span: the page of `--html`, and the trace of `--perfetto` for the viewer."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from longpole.cli.outputs import STDOUT, check_file, refuse, refuse_traces, write_file
from longpole.cli.terminal import tell
from longpole.errors import UsageError
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report

_PAGE: Final = "--html"
_TRACE: Final = "--perfetto"


@dataclass(frozen=True, slots=True)
class TimelineOutputs:
    """The files of both options, each None where it was not given.

    Attributes:
        page: The page.
        trace: The trace, compressed where its name ends in `.gz`.
    """

    page: Path | None
    trace: Path | None

    @classmethod
    def of_options(cls, html: str | None, perfetto: str | None) -> TimelineOutputs:
        """Look whether the files can be written, before long work is done in vain.

        Raises:
            UsageError: One cannot.
        """
        if perfetto == STDOUT:
            msg = f"{_TRACE} -: expected a file; the page and --json may go to standard output, a trace may not"
            raise UsageError(msg)
        for option, file in ((_PAGE, html), (_TRACE, perfetto)):
            if file is not None:
                check_file(option, Path(file))
        return cls(Path(html) if html is not None else None, Path(perfetto) if perfetto is not None else None)

    def write(
        self,
        paths: Sequence[str],
        options: ReportOptions,
        run: Run,
        report: Report,
        progress: Callable[[str, int, int], None],
    ) -> None:
        """Make and write what was asked for, and say whose spans are not in the trace.

        Raises:
            UsageError: A file is one of the traces that were read, or cannot be written.
        """
        for option, path in ((_PAGE, self.page), (_TRACE, self.trace)):
            if path is not None:
                refuse_traces(option, path, report)
        if self.page is None and self.trace is None:
            return
        from longpole.pipeline.timeline_outputs import Wanted, make_outputs

        with _opened(self.trace) as out:
            made = make_outputs(paths, options, run, report, Wanted(self.page is not None, out), progress)
        if made.missing:
            ranks = ", ".join(map(str, made.missing[:8])) + (", …" if len(made.missing) > 8 else "")
            tell(f"{self.trace}: no spans of {format_count(len(made.missing), 'rank')} ({ranks}): not to be read again")
        if self.page is not None:
            write_file(_PAGE, self.page, made.page)


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO | None]:
    """Open the trace to write, where one was asked for."""
    if path is None:
        yield None
        return
    try:
        with path.open("wb") as out:
            if path.suffix != ".gz":
                yield out
                return
            from isal import igzip

            # Neither the time nor the file's name go into it: the same run gives the same bytes.
            packed: Any = igzip
            with packed.IGzipFile(filename="", mode="wb", fileobj=out, mtime=0) as inside:
                yield inside
    except OSError as error:
        refuse(_TRACE, path, error)
