"""`longpole whatif`: what a unit would take if something were different, and how far that may be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from longpole.cli import report_options as option
from longpole.cli import whatif_options as change
from longpole.cli.change_order import in_typed_order, typed_words
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.pipeline.reading import ReportOptions

EXAMPLES: Final = """\b
Examples:
  longpole whatif traces/ --remove input
  longpole whatif traces/ --set collective=0.5x --prefetch input
  longpole whatif traces/ --set 'rank:2&compute=0.8x' --json answer.json
  longpole whatif traces/ --fuse all_reduce=25MB

\b
A SELECTOR is an object (input, artifact, state, output, compute, collective,
host), name:REGEX, stage:NAME, rank:N, stream:N or kind:all_reduce, or several
of them with & between. Several changes are replayed together, in the order
given."""
INCONCLUSIVE: Final = 5


def whatif(
    ctx: typer.Context,
    paths: option.Paths,
    *,
    sets: change.Set = None,
    remove: change.Remove = None,
    prefetch: change.Prefetch = None,
    async_copy: change.AsyncCopy = False,
    fuse: change.Fuse = None,
    split: change.Split = None,
    equalise: change.Equalise = None,
    issue_early: change.IssueEarly = None,
    graph_launches: change.GraphLaunches = False,
    off_path: change.OffPath = None,
    json: change.JsonFile = None,
    step: option.Step = None,
    units: option.Units = None,
    rank: option.Ranks = None,
    rules: option.Rules = None,
    settings: option.SettingsFile = None,
    collective_record: option.CollectiveRecord = None,
    no_cache: option.NoCache = False,
    verify_cache: option.VerifyCache = False,
    job: option.Job = None,
    jobs: option.Jobs = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Predict what a unit would take if something were different, and say how far to believe it."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    values: dict[str, Sequence[str] | bool] = {
        "--set": sets or [],
        "--remove": remove or [],
        "--prefetch": prefetch or [],
        "--async-copy": async_copy,
        "--fuse": fuse or [],
        "--split": split or [],
        "--equalise": equalise or [],
        "--issue-early": issue_early or [],
        "--graph-launches": graph_launches,
        "--off-path": off_path or [],
    }
    given = in_typed_order(values, typed_words(ctx))
    if not given:
        msg = f"whatif: expected at least one change ({', '.join(values)}); found none. Try --remove input"
        raise UsageError(msg)
    from longpole.cli.whatif_tables import what_if_of_tables

    of_traces = {"--step": step, "--units": units, "--rank": rank, "--job": job, "--rules": rules}
    of_traces |= {"--collective-record": collective_record}
    if what_if_of_tables(paths, given, output, settings, of_traces):
        return
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
        collective_record=collective_record,
    )

    _answer(paths, given, options, output)


def _answer(
    paths: Sequence[str], given: Sequence[tuple[str, str]], options: ReportOptions, output: DocumentOutput
) -> None:
    """Ask the engine, and write its answer.

    Raises:
        typer.Exit: There is no prediction; with exit code 5.
    """
    from longpole.pipeline.whatif import what_if
    from longpole.records.strict_json import encode_document
    from longpole.report.text.whatif import render_whatif
    from longpole.whatif.change import parse_option

    changes = [parse_option(name, value) for name, value in given]
    with Progress(wanted=not output.quiet) as progress:
        document = what_if(paths, changes, options, progress.update)
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_whatif(document, width=width, color=color),
        sources=[source.path for source in document.run.sources],
    )
    progress.say_done()
    if document.refused is not None:
        raise typer.Exit(INCONCLUSIVE)
