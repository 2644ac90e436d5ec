"""The options of `longpole report`: what each is called, what it takes, and what it says of itself."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

from longpole.cli.terminal import COLORS

DETAILS: Final = ("run", "rank", "unit")

Paths: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="Files, folders and patterns; all of them together are one run."),
]
JsonFile: TypeAlias = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - for standard output.")
]
HtmlFile: TypeAlias = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Write the page: one file, works offline, can be mailed.")
]
CsvFolder: TypeAlias = Annotated[
    str | None, typer.Option("--csv", metavar="DIR", help="Write the report's tables as CSV files into a folder.")
]
ParquetFolder: TypeAlias = Annotated[
    str | None, typer.Option("--parquet", metavar="DIR", help="Write the same tables as Parquet files into a folder.")
]
MarkdownFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--markdown", metavar="FILE", help="Write the report as Markdown, for a pull request; - for standard output."
    ),
]
PerfettoFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--perfetto", metavar="FILE", help="Write all ranks, the path and the ledger for the viewer at ui.perfetto.dev."
    ),
]
RecordFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--record", metavar="FILE", help="Write a run record, which verify and the journal compare."),
]
Items: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--items", metavar="N[:KIND]", help="What all ranks together process in a unit (16384:token), for the record."
    ),
]
Label: TypeAlias = Annotated[str | None, typer.Option("--label", metavar="TEXT", help="What the record calls the run.")]
Step: TypeAlias = Annotated[
    str | None,
    typer.Option("--step", metavar="REGEX", help="Events whose name matches mark the units of work."),
]
Units: TypeAlias = Annotated[
    str | None, typer.Option("--units", metavar="A..B", help="Only these units, by number: 3..7, 3.., ..7 or 5.")
]
Unit: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--unit", metavar="NAME", help="The unit whose critical path is shown in full; the longest one by default."
    ),
]
Ranks: TypeAlias = Annotated[str | None, typer.Option("--rank", metavar="LIST", help="Only these ranks: 0,3-5.")]
Rules: TypeAlias = Annotated[
    str | None,
    typer.Option("--rules", metavar="FILE", help="Your own rules for names (TOML), before the shipped ones."),
]
SettingsFile: TypeAlias = Annotated[
    str | None, typer.Option("--settings", metavar="FILE", help="Your own thresholds (TOML), over the shipped ones.")
]
Detail: TypeAlias = Annotated[
    str,
    typer.Option(
        "--detail",
        metavar="LEVEL",
        autocompletion=lambda: list(DETAILS),
        help="How much the JSON holds: run, rank (of more than 64 ranks the 16 worst) or unit (all).",
    ),
]
CollectiveRecord: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--collective-record",
        metavar="FILE",
        help="What collectives take here: a log of nccl-tests, or a record of bench collectives.",
    ),
]
NoCache: TypeAlias = Annotated[
    bool, typer.Option("--no-cache", help="Read every file anew, and keep nothing for the next time.")
]
VerifyCache: TypeAlias = Annotated[
    bool, typer.Option("--verify-cache", help="Compare whole files with the cache, not samples of them.")
]
Job: TypeAlias = Annotated[
    str | None, typer.Option("--job", metavar="N", help="Which job, where the files are of several.")
]
Jobs: TypeAlias = Annotated[
    str | None,
    typer.Option("--jobs", metavar="N", help="How many processes may read at once; one per core by default."),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print no page and no progress.")]
Color: TypeAlias = Annotated[
    str,
    typer.Option(
        "--color",
        metavar="WHEN",
        autocompletion=lambda: list(COLORS),
        help="auto (on a terminal, unless NO_COLOR is set), always or never.",
    ),
]
