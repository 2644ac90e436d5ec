"""`longpole verify`: whether a change did what it was made for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from longpole.cli import report_options as option
from longpole.cli import verify_options as asked
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice, parse_if_given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.pipeline.verify import VerifyOptions
    from longpole.report.verify import Verify

EXAMPLES: Final = """\b
Examples:
  longpole verify runs/before runs/after --part input
  longpole verify before.json after.json --candidate input.prefetch
  longpole verify --before a1 --before a2 --after b1 --after b2 --paired
  longpole verify a/ b/ --limit 'p99_ms<=200' --limit 'peak_bytes<=80e9'
  longpole verify a/ b/ --items before=512 --items after=1024

\b
Exit codes: 0 accepted, 1 rejected or mixed, 5 inconclusive, 6 not verifiable."""
EXIT_CODES: Final = {"accepted": 0, "rejected": 1, "mixed": 1, "inconclusive": 5, "not verifiable": 6}


def verify(
    runs: asked.Runs = None,
    *,
    before: asked.Before = None,
    after: asked.After = None,
    paired: asked.Paired = False,
    candidate: asked.Candidate = None,
    catalogue: asked.Catalogue = None,
    part: asked.Part = None,
    change: asked.Change = None,
    limit: asked.Limit = None,
    metric: asked.Metric = None,
    threshold: asked.Threshold = None,
    items: asked.Items = None,
    statistic: asked.Statistic = "auto",
    allow: asked.Allow = None,
    json: asked.JsonFile = None,
    step: option.Step = None,
    units: option.Units = None,
    rank: option.Ranks = None,
    rules: option.Rules = None,
    settings: option.SettingsFile = None,
    collective_record: option.CollectiveRecord = None,
    no_cache: option.NoCache = False,
    verify_cache: option.VerifyCache = False,
    jobs: option.Jobs = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say whether a change did what it was made for: accepted, rejected, mixed, inconclusive or not verifiable."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    sides = asked.parse_runs(runs or [], before or [], after or [])
    share = asked.parse_share("--threshold", threshold)
    declared = asked.parse_items_of_sides(items or [])
    report = reading_options(
        step=step,
        units=units,
        rank=rank,
        rules=rules,
        settings=settings,
        no_cache=no_cache,
        verify_cache=verify_cache,
        jobs=jobs,
        collective_record=collective_record,
    )
    from longpole.pipeline.run_records import ItemsOfUnit
    from longpole.pipeline.verify import VerifyOptions
    from longpole.whatif.change import parse_change

    options = VerifyOptions(
        report=report,
        candidate=candidate,
        catalogue=parse_if_given(Path, catalogue),
        part=part,
        changes=[parse_change(text if text.startswith("-") else f"--{text}") for text in change or []],
        limits=limit or [],
        metrics=[Path(file) for file in metric or []],
        threshold=share,
        items={side: ItemsOfUnit(count=count, kind=kind) for side, (count, kind) in declared.items()},
        paired=paired,
        statistic=parse_choice("--statistic", statistic, asked.STATISTICS),
        allow=allow or [],
    )
    document = _answer(sides, options, output)
    code = EXIT_CODES[document.verdict]
    if code:
        raise typer.Exit(code)


def _answer(sides: tuple[Sequence[str], Sequence[str]], options: VerifyOptions, output: DocumentOutput) -> Verify:
    """Ask the engine, and write its answer."""
    from longpole.pipeline.verify import verify_runs
    from longpole.records.strict_json import encode_document
    from longpole.report.text.verify import render_verify

    with Progress(wanted=not output.quiet) as progress:
        document = verify_runs(*sides, options, progress.update)
    read = [run.path for run in (*document.before, *document.after)]
    read += [source["path"] for run in (*document.before, *document.after) for source in run.sources]
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_verify(document, width=width, color=color),
        sources=read,
    )
    progress.say_done()
    return document
