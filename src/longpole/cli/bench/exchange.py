"""`longpole bench import` and `longpole bench export`: records from and for other benchmark programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from longpole.cli.outputs import check_file, write_file
from longpole.cli.terminal import tell, write_bytes, write_text
from longpole.cli.values import parse_choice

IMPORT_EXAMPLES: Final = """\b
Examples:
  longpole bench import .benchmarks/*/0001_main.json --out records/
  longpole bench import hyperfine.json asv/results --out records/"""
EXPORT_EXAMPLES: Final = """\b
Examples:
  longpole bench export before.json --out bencher.json
  longpole bench export benchmarks/results | bencher run --adapter json"""
FORMATS: Final = ("bencher",)
_REFUSED_SHOWN: Final = 10

Files = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="JSON of pytest-benchmark, hyperfine or asv; or folders of it.")
]
Records = Annotated[
    list[str], typer.Argument(metavar="RECORD...", help="Run records, or what can be imported; files or folders.")
]
OutFolder = Annotated[str, typer.Option("--out", metavar="DIR", help="Where the records go.")]
OutFile = Annotated[str | None, typer.Option("--out", metavar="FILE", help="A file; standard output by default.")]
Format = Annotated[str, typer.Option("--to", metavar="FORMAT", help="bencher: the Bencher Metric Format.")]


def import_results(files: Files, *, out: OutFolder) -> None:
    """Write results of other benchmark programs as run records, one file a benchmark."""
    from longpole.pipeline import bench_compare
    from longpole.report.escape import escape

    written, refused = bench_compare.import_results(files, Path(out))
    for file in written:
        write_text(f"{escape(str(file))}\n")
    _tell_refused(refused)


def export_results(records: Records, *, to: Format = "bencher", out: OutFile = None) -> None:
    """Write records in another program's format."""
    parse_choice("--to", to, FORMATS)
    if out is not None:
        check_file("--out", Path(out))
    from longpole.pipeline.bench_compare import export_bencher

    data, refused = export_bencher(records)
    if out is None:
        write_bytes(data)
    else:
        write_file("--out", Path(out), data)
    _tell_refused(refused)


def _tell_refused(refused: list[str]) -> None:
    from longpole.report.escape import escape

    for why in refused[:_REFUSED_SHOWN]:
        tell(f"left out: {escape(why)}")
    if len(refused) > _REFUSED_SHOWN:
        tell(f"left out: {len(refused) - _REFUSED_SHOWN} more")
