"""A progress bar on standard error, for work that takes long enough to wonder about."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

from longpole.cli.terminal import tell
from longpole.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_SHOW_AFTER_S: Final = 0.5


class Progress:
    """Shows how much has been read, while it is a context.

    The bar appears after half a second, on a terminal only, and goes away at the end.

    Args:
        wanted: Whether to show one at all.
        clock: Seconds of any origin.
        counted: What is done is a number of something, not bytes.
    """

    def __init__(self, *, wanted: bool, clock: Callable[[], float] = time.monotonic, counted: bool = False) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._counted = counted
        self._clock = clock
        self._started_s = clock()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, label: str, done_bytes: int, total_bytes: int) -> None:
        """Hear how far the work is.

        Args:
            label: What is being read.
            done_bytes: How much of it all is done.
            total_bytes: How much it all is.
        """
        if not self._wanted:
            return
        if self._bar is None:
            if self.elapsed_s() < _SHOW_AFTER_S:
                return
            self._start()
        self._bar.update(self._task, description=escape(label)[-40:], completed=done_bytes, total=total_bytes)

    def elapsed_s(self) -> float:
        """Return the seconds since this object was made."""
        return self._clock() - self._started_s

    def say_done(self) -> None:
        """Say how long it all took, where a progress bar was wanted."""
        if self._wanted:
            tell(f"{self.elapsed_s():.1f} s")

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn() if self._counted else DownloadColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()
