"""What `longpole serve` hands out: the page of a run, and answers about the run as `longpole whatif` gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole.errors import UsageError
from longpole.pipeline.operation_tables import find_operation_tables
from longpole.pipeline.page import make_page
from longpole.pipeline.replays import replay_run
from longpole.pipeline.report import report_on
from longpole.pipeline.whatif import what_if_of
from longpole.records.strict_json import encode_document
from longpole.whatif.change import parse_change

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.pipeline.reading import ReportOptions
    from longpole.pipeline.replays import RunReplay


@dataclass(frozen=True, slots=True)
class Served:
    """A run that is ready to be looked at and asked about.

    Attributes:
        page: What `longpole report --html` writes.
        replayed: The run with its unchanged replay, or why there is none.
        options: What was read, and how.
    """

    page: bytes
    replayed: RunReplay
    options: ReportOptions

    def answer(self, changes: Sequence[str]) -> bytes:
        """Return what `longpole whatif --json -` writes for these changes.

        Args:
            changes: Options with their values, in order: `--set input=0.5x`.

        Raises:
            UsageError: A change is none.
        """
        made = [parse_change(text) for text in changes]
        return encode_document(what_if_of(self.replayed, made, self.options))


def prepare(
    paths: Sequence[str], options: ReportOptions, progress: Callable[[str, int, int], None] | None = None
) -> Served:
    """Read a run, make its page, and replay it unchanged.

    Args:
        paths: Files, folders and patterns; together they are one run.
        options: What to read, and how.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Raises:
        UsageError: A path, an option or the choice of a run is wrong, or the paths are operation tables.
        InputError: No file could be used.
    """
    tables = find_operation_tables(paths)
    if tables:
        msg = f"{tables[0]}: expected traces, found an operation table, which has no page; use longpole whatif"
        raise UsageError(msg)
    run, report = report_on(paths, options, progress)
    return Served(make_page(paths, options, run, report), replay_run(paths, options, progress), options)
