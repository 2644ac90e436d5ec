"""Where the page goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longpole.cli.outputs import check_file, refuse_traces, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report


@dataclass(frozen=True, slots=True)
class PageOutput:
    """The file of `--html`.

    Attributes:
        path: The file, None for no page.
    """

    path: Path | None

    @classmethod
    def of_option(cls, file: str | None) -> PageOutput:
        """Look whether the file can be written, before long work is done in vain.

        Raises:
            UsageError: It cannot.
        """
        path = Path(file) if file is not None else None
        if path is not None:
            check_file("--html", path)
        return cls(path)

    def write(
        self,
        paths: Sequence[str],
        options: ReportOptions,
        run: Run,
        report: Report,
        progress: Callable[[str, int, int], None],
    ) -> None:
        """Make and write the page, where one was asked for.

        Raises:
            UsageError: The file is one of the traces, or cannot be written.
        """
        if self.path is None:
            return
        from longpole.pipeline.page import make_page

        refuse_traces("--html", self.path, report)
        write_file("--html", self.path, make_page(paths, options, run, report, progress))
