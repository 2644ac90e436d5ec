"""`longpole report`: where a step went, on all ranks."""

from __future__ import annotations

from typing import Final

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.operations import report_on_tables
from longpole.cli.outputs import Outputs
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.records import RecordOutput
from longpole.cli.terminal import COLORS
from longpole.cli.timeline_outputs import TimelineOutputs
from longpole.cli.values import parse_choice

EXAMPLES: Final = """\b
Examples:
  longpole report runs/7b-sft
  longpole report traces/ --html report.html
  longpole report traces/ --units 3..7 --json report.json
  longpole report rank0.json.gz rank1.json.gz --csv tables/
  longpole report traces/ --markdown comment.md --parquet tables/
  longpole report operations.parquet
  longpole report traces/ --perfetto run.pftrace.gz
  longpole report traces/ --record before.json --items 16384:token
  longpole report 'runs/*/rank*.json' --job 2 --json - | jq .headline"""


def report(
    paths: option.Paths,
    *,
    json: option.JsonFile = None,
    html: option.HtmlFile = None,
    csv: option.CsvFolder = None,
    parquet: option.ParquetFolder = None,
    markdown: option.MarkdownFile = None,
    perfetto: option.PerfettoFile = None,
    record: option.RecordFile = None,
    items: option.Items = None,
    label: option.Label = None,
    step: option.Step = None,
    units: option.Units = None,
    unit: option.Unit = None,
    rank: option.Ranks = None,
    rules: option.Rules = None,
    settings: option.SettingsFile = None,
    detail: option.Detail = "rank",
    collective_record: option.CollectiveRecord = None,
    no_cache: option.NoCache = False,
    verify_cache: option.VerifyCache = False,
    job: option.Job = None,
    jobs: option.Jobs = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say where every nanosecond of a step went, and which wait is the long pole."""
    outputs = Outputs(
        json_file=json,
        csv_folder=csv,
        detail=parse_choice("--detail", detail, option.DETAILS),
        quiet=quiet,
        color=parse_choice("--color", color, COLORS),
        markdown_file=markdown,
        parquet_folder=parquet,
    )
    outputs.check()
    kept = RecordOutput.of_options(record, items, label)
    drawn = TimelineOutputs.of_options(html, perfetto)
    options = reading_options(
        step=step,
        units=units,
        rank=rank,
        rules=rules,
        settings=settings,
        no_cache=no_cache,
        verify_cache=verify_cache,
        job=job,
        jobs=jobs,
        unit=unit,
        collective_record=collective_record,
    )
    of_traces = {"--csv": csv, "--step": step, "--units": units, "--unit": unit, "--rank": rank}
    of_traces |= {"--rules": rules, "--job": job, "--record": record, "--collective-record": collective_record}
    of_traces |= {"--perfetto": perfetto, "--parquet": parquet, "--markdown": markdown}
    document_output = DocumentOutput(json_file=json, quiet=quiet, color=color)
    if report_on_tables(paths, document_output, settings, of_traces, drawn.page):
        return
    from longpole.pipeline.report import report_on

    with Progress(wanted=not quiet) as progress:
        run, document = report_on(paths, options, progress.update)
    with Progress(wanted=not quiet, counted=True) as reading:
        drawn.write(paths, options, run, document, reading.update)
    if kept is not None:
        kept.write(run, document, options)
    outputs.write(document)
    progress.say_done()
