"""Where a run record goes: the file that `longpole report --record` names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longpole.cli.outputs import STDOUT, check_file, is_same, write_file
from longpole.cli.values import parse_items
from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOutput:
    """What to write into a record beside what the traces say.

    Attributes:
        file: The file.
        items: How many items a unit processes, and of what kind; None where not declared.
        label: What the record calls the run.
    """

    file: str
    items: tuple[int, str] | None
    label: str

    @classmethod
    def of_options(cls, file: str | None, items: str | None, label: str | None) -> RecordOutput | None:
        """Read the options; None where no record is wanted.

        Raises:
            UsageError: The file cannot be written, or something is said of a record that is not wanted.
        """
        declared = parse_items("--items", items) if items is not None else None
        if file is None:
            if items is not None or label is not None:
                msg = f"{'--items' if items is not None else '--label'}: goes into a run record; name it with --record"
                raise UsageError(msg)
            return None
        if file == STDOUT:
            msg = "--record -: expected a file; the page and --json may go to standard output, a record may not"
            raise UsageError(msg)
        check_file("--record", Path(file))
        return cls(file=file, items=declared, label=label or "")

    def write(self, run: Run, report: Report, options: ReportOptions) -> None:
        """Write the record of a run.

        Raises:
            UsageError: The file cannot be written, or is one of the traces.
        """
        from longpole.pipeline.run_records import ItemsOfUnit, make_record
        from longpole.records.run_record_file import encode_record
        from longpole.settings import read_settings

        if any(is_same(self.file, source.path.partition("!")[0]) for source in report.run.sources):
            msg = f"--record {self.file}: expected a file to write the record to, found one of the traces; name another"
            raise UsageError(msg)
        items = ItemsOfUnit(count=self.items[0], kind=self.items[1]) if self.items is not None else None
        record = make_record(run, report, read_settings(options.settings), label=self.label, items=items)
        write_file("--record", Path(self.file), encode_record(record))
