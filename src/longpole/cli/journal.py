"""`longpole journal`: what was changed, what that was expected to bring, and what it brought."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from longpole.cli import journal_options as option
from longpole.cli import report_options
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS, write_text
from longpole.cli.values import parse_choice, parse_if_given
from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.report.journal import JournalDocument

_PROBLEM: Final = 1
_EXAMPLES: Final = """\b
Examples:
  longpole journal add --from verdict.json
  longpole journal search prefetch workers
  longpole journal summary
  longpole journal check"""
_ADD_EXAMPLES: Final = """\b
Examples:
  longpole journal add --from verdict.json --decision kept --who ada
  longpole journal add 'Two more loader workers' --before 1200 --after 1500 \\
    --unit tokens/s --verdict accepted --config num_workers=4 \\
    --record before=runs/a.json --record after=runs/b.json
  longpole journal add 'Take the workers back' --reverts 2026-11-30-two-more \\
    --no-record 'a revert'

\b
A GAIN is 1.25x (so many times as fast) or 20% (of the time per item is
saved), which is how longpole candidates prints it."""

journal_app = typer.Typer(
    help="Keep a journal of changes: expected, measured, decided.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@journal_app.command("add", short_help="Add an entry.", epilog=_ADD_EXAMPLES)
def add(
    title: option.Title = "",
    *,
    from_: option.From = None,
    record: option.Record = None,
    no_record: option.NoRecord = "",
    before: option.Before = None,
    after: option.After = None,
    unit: option.Unit = "",
    better: option.Better = "",
    scope: option.Scope = "",
    speedup: option.Speedup = None,
    interval: option.Interval = None,
    level: option.Level = None,
    statistic: option.Statistic = "",
    runs: option.Runs = None,
    single_run: option.SingleRun = False,
    expected: option.Expected = None,
    candidate: option.Candidate = "",
    expected_from: option.ExpectedFrom = "",
    expected_error: option.ExpectedError = None,
    verdict: option.Verdict = "",
    reason: option.Reason = "",
    decision: option.Decision = "",
    reverts: option.Reverts = "",
    config: option.Config = None,
    config_file: option.ConfigFile = None,
    config_before: option.ConfigBefore = None,
    part: option.Part = "",
    side_effect: option.SideEffect = None,
    claim: option.StatedClaim = None,
    job: option.OfJob = "",
    who: option.Who = "",
    date: option.Date = "",
    notes: option.Notes = "",
    tag: option.Tags = None,
    file: option.File = None,
    json: option.JsonFile = None,
    markdown: option.Markdown = False,
    quiet: report_options.Quiet = False,
    color: report_options.Color = "auto",
) -> None:
    """Add an entry to the journal, from options or straight from a verdict."""
    given: dict[str, Any] = dict(locals())  # every option by its name: there are too many to hand on one by one
    output = _output(json, color, quiet=quiet, markdown=markdown)
    from longpole.cli.journal_entry import parse_entry
    from longpole.pipeline.journal_add import add as add_entry

    _write(output, add_entry(parse_entry(given), parse_if_given(Path, file)), markdown=markdown)


@journal_app.command("list", short_help="List the entries.", epilog="Example: longpole journal list --tag 7b")
def list_(
    *,
    file: option.File = None,
    job: option.Job = "",
    tag: option.Tag = "",
    json: option.JsonFile = None,
    markdown: option.Markdown = False,
    quiet: report_options.Quiet = False,
    color: report_options.Color = "auto",
) -> None:
    """List the entries of a journal, one line each."""
    output = _output(json, color, quiet=quiet, markdown=markdown)
    from longpole.pipeline.journal import list_entries, open_journal

    path, journal = open_journal(parse_if_given(Path, file))
    _write(output, list_entries(path, journal, job=job, tag=tag), markdown=markdown)


@journal_app.command(
    "show", short_help="Show an entry in full.", epilog="Example: longpole journal show 2026-11-30-prefetch"
)
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="Its id, or as much of it as no other id has.")],
    *,
    file: option.File = None,
    json: option.JsonFile = None,
    markdown: option.Markdown = False,
    quiet: report_options.Quiet = False,
    color: report_options.Color = "auto",
) -> None:
    """Show all of one entry."""
    output = _output(json, color, quiet=quiet, markdown=markdown)
    from longpole.pipeline.journal import open_journal, show_entry

    path, journal = open_journal(parse_if_given(Path, file))
    _write(output, show_entry(path, journal, name), markdown=markdown)


@journal_app.command("search", short_help="Have we tried this?", epilog="Example: longpole journal search bucket size")
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="What to look for, the best match first.")],
    *,
    file: option.File = None,
    job: option.Job = "",
    tag: option.Tag = "",
    json: option.JsonFile = None,
    quiet: report_options.Quiet = False,
    color: report_options.Color = "auto",
) -> None:
    """Say whether something was tried: in titles, candidates, configuration, notes and all other text."""
    output = _output(json, color, quiet=quiet)
    from longpole.pipeline.journal import open_journal
    from longpole.pipeline.journal import search as search_journal

    path, journal = open_journal(parse_if_given(Path, file))
    _write(output, search_journal(path, journal, " ".join(words), job=job, tag=tag), markdown=False)


@journal_app.command(
    "summary", short_help="Say what the changes add up to.", epilog="Example: longpole journal summary --markdown"
)
def summary(
    *,
    file: option.File = None,
    job: option.Job = "",
    tag: option.Tag = "",
    json: option.JsonFile = None,
    markdown: option.Markdown = False,
    quiet: report_options.Quiet = False,
    color: report_options.Color = "auto",
) -> None:
    """Say what the kept changes add up to, what each contributes, and how good the predictions were."""
    output = _output(json, color, quiet=quiet, markdown=markdown)
    from longpole.pipeline.journal import open_journal, summarise_journal

    path, journal = open_journal(parse_if_given(Path, file))
    _write(output, summarise_journal(path, journal, job=job, tag=tag), markdown=markdown)


@journal_app.command(
    "check", short_help="Say whether its records are what they were.", epilog="Example: longpole journal check"
)
def check(
    *,
    file: option.File = None,
    json: option.JsonFile = None,
    quiet: report_options.Quiet = False,
    color: report_options.Color = "auto",
) -> None:
    """Look whether linked records are what they were, and whether lines, ids and order are sound."""
    output = _output(json, color, quiet=quiet)
    from longpole.pipeline.journal import check_journal, open_journal

    path, journal = open_journal(parse_if_given(Path, file))
    document = check_journal(path, journal)
    _write(output, document, markdown=False)
    if isinstance(document.problems, list) and any(one.severity == "error" for one in document.problems):
        raise typer.Exit(_PROBLEM)


def _output(json: str | None, color: str, *, quiet: bool, markdown: bool = False) -> DocumentOutput:
    if markdown and json is not None:
        msg = "--markdown: expected no --json beside it; leave one of them out"
        raise UsageError(msg)
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    return output


def _write(output: DocumentOutput, document: JournalDocument, *, markdown: bool) -> None:
    """Write what was found.

    Raises:
        UsageError: The file cannot be written, or is the journal or one of its records.
    """
    from longpole.records.strict_json import encode_document

    if markdown:
        from longpole.report.journal_markdown import render_markdown

        write_text(render_markdown(document))
        return
    from longpole.report.text.journal import render_journal

    folder = Path(document.file).parent
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_journal(document, width=width, color=color),
        sources=[document.file, *(str(folder / link.path) for entry in document.entries for link in entry.records)],
    )
