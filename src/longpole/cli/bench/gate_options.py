"""The options of `longpole bench gate`, and their texts as values."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

from longpole.errors import UsageError

FAIL_WHEN: Final = ("likely", "proven")
INCONCLUSIVE: Final = ("neutral", "fail", "pass")

Records: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="BASELINE NEW…", help="Run records, folders of them, or other programs' results."),
]
CommandA: TypeAlias = Annotated[
    str | None, typer.Option("--a", metavar="CMD", help="The command of the baseline; run in pairs with --b.")
]
CommandB: TypeAlias = Annotated[str | None, typer.Option("--b", metavar="CMD", help="The command to be gated.")]
Threshold: TypeAlias = Annotated[
    str | None, typer.Option("--threshold", metavar="SHARE", help="The change that counts; 3% by default.")
]
Metric: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME[=SHARE]",
        help="Gate this, with its own threshold if you like: time, throughput, latency, latency_p95, peak_memory,"
        " collective; may be repeated.  [default: time]",
    ),
]
FailWhen: TypeAlias = Annotated[
    str,
    typer.Option(
        "--fail-when",
        metavar="WHEN",
        help="likely: surely worse, and by the threshold as estimated; proven: surely worse by the threshold.",
    ),
]
Inconclusive: TypeAlias = Annotated[
    str,
    typer.Option(
        "--inconclusive", metavar="AS", help="What an inconclusive answer counts as: neutral (exit 5), fail or pass."
    ),
]
AllowDiff: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-diff", metavar="KEY", help="Compare although this differs: machine, benchmark, cpu, torch_version, …"
    ),
]
Calibration: TypeAlias = Annotated[
    str | None,
    typer.Option("--calibration", metavar="FILE", help="Noise floors of bench calibrate: thresholds are not below."),
]
Critical: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--critical", metavar="STAGE", help="A regression of this stage always fails; may be repeated."),
]
MinContribution: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--min-contribution",
        metavar="SHARE",
        help="A stage's regression fails from this share of the period on.  [default: 1%]",
    ),
]
BenchmarkName: TypeAlias = Annotated[
    str, typer.Option("--benchmark", metavar="NAME", help="Which benchmark, where the files hold several.")
]
Pairs: TypeAlias = Annotated[int, typer.Option("--pairs", metavar="N", min=5, help="Pairs before the first look.")]
MaxPairs: TypeAlias = Annotated[int, typer.Option("--max-pairs", metavar="N", min=5, help="At most so many pairs.")]
Budget: TypeAlias = Annotated[
    str, typer.Option("--budget", metavar="TIME", help="Begin no pair after this long: 90s, 10min, 1h.")
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", metavar="N", help="Of the random order within pairs.")]
WarmUp: TypeAlias = Annotated[
    int, typer.Option("--warmup", metavar="N", min=0, help="First units of each process that do not count.")
]
Timeout: TypeAlias = Annotated[
    str | None, typer.Option("--timeout", metavar="TIME", help="End a process after this long: it has failed.")
]
KeepRecords: TypeAlias = Annotated[
    str | None,
    typer.Option("--records", metavar="DIR", help="Keep both records there (a.json, b.json), written after each pair."),
]
JsonFile: TypeAlias = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the answer as JSON; - for standard output.")
]
JUnitFile: TypeAlias = Annotated[
    str | None, typer.Option("--junit", metavar="FILE", help="Write the answer as JUnit XML.")
]
MarkdownFile: TypeAlias = Annotated[
    str | None, typer.Option("--markdown", metavar="FILE", help="Write the answer as Markdown.")
]


def check_form(records: list[str], a: str | None, b: str | None) -> None:
    """Look whether records or commands were given, and not both.

    Raises:
        UsageError: Neither or both were, or one is missing.
    """
    if records and (a is not None or b is not None):
        msg = "bench gate: expected BASELINE NEW…, or --a and --b; found both"
        raise UsageError(msg)
    if records and len(records) == 1:
        msg = "bench gate: expected two records or more, BASELINE NEW…; found one"
        raise UsageError(msg)
    if not records and (a is None or b is None):
        lacking = " and ".join(name for name, text in (("--a", a), ("--b", b)) if text is None)
        msg = f"bench gate: expected BASELINE NEW…, or --a and --b; found no {lacking}"
        raise UsageError(msg)
