"""`longpole plan`: what a model on some devices needs and takes, before there is a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_assignments, parse_choice

if TYPE_CHECKING:
    from longpole.report.plan import Plan

EXAMPLES: Final = """\b
Examples:
  longpole plan plan.toml
  longpole plan plan.toml --set layout.tp=4 --set 'training.recompute="full"'
  longpole plan plan.toml --search
  longpole plan plan.toml --explain mfu
  longpole plan plan.toml --against traces/

\b
Exit codes: 0 fine, 1 a search found nothing that fits, 2 the plan cannot be."""
ALL: Final = "all"
_EXPLAIN: Final = "--explain"

Config = Annotated[str, typer.Argument(metavar="CONFIG", help="A plan in TOML; - for standard input.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="In place of the file's: layout.tp=4; may be repeated."),
]
Convention = Annotated[
    str | None, typer.Option("--convention", metavar="NAME", help="How FLOPs are counted, in place of the file's.")
]
Search = Annotated[bool, typer.Option("--search", help="Look through layouts: the best in time, memory and devices.")]
FreeMemory = Annotated[
    bool, typer.Option("--free-memory", help="Say which batch would fit if memory were saved, and what it buys.")
]
Explain = Annotated[
    str | None,
    typer.Option(_EXPLAIN, metavar="[FIGURE]", help="Show figures with their formulas: all, or those so named."),
]
Against = Annotated[
    list[str] | None,
    typer.Option("--against", metavar="PATH", help="Put a real run's ledger beside the plan; may be repeated."),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the plan as JSON; - for standard output.")
]


class ExplainsAll(TyperCommand):
    """A command whose `--explain` may stand without a figure, for all of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `all` behind an `--explain` that no figure follows, then read the words as any command does."""
        return super().parse_args(ctx, with_figure(args))


def with_figure(args: list[str]) -> list[str]:
    """Return words in which every `--explain` has a figure: what ends in `.toml`, or is an option or `-`, is none.

    >>> with_figure(["--explain", "plan.toml"]), with_figure(["plan.toml", "--explain", "mfu"])
    (['--explain', 'all', 'plan.toml'], ['plan.toml', '--explain', 'mfu'])
    """
    words: list[str] = []
    for place, word in enumerate(args):
        words.append(word)
        if word == _EXPLAIN:
            following = args[place + 1] if place + 1 < len(args) else "-"
            if following.startswith("-") or following.endswith(".toml"):
                words.append(ALL)
    return words


def plan(
    config: Config,
    *,
    changes: Changes = None,
    convention: Convention = None,
    search: Search = False,
    free_memory: FreeMemory = False,
    explain: Explain = None,
    against: Against = None,
    json: JsonFile = None,
    step: option.Step = None,
    units: option.Units = None,
    rank: option.Ranks = None,
    job: option.Job = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say what a model on some devices needs and takes, before there is a run: memory, time, use of the peak."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    given = parse_assignments("--set", changes or [])
    if convention is not None:
        given.append(("convention", convention))
    from longpole.pipeline.plan import PlanOptions, build_plan
    from longpole.records.strict_json import encode_document
    from longpole.report.text.plan import render_plan

    options = PlanOptions(
        changes=given,
        search=search,
        free_memory=free_memory,
        figures=json is not None,
        explain=explain or "",
        against=against or [],
        reading=_reading(step, units, rank, job) if against else None,
    )
    with Progress(wanted=not output.quiet and (search or bool(against)), counted=not against) as progress:
        document = build_plan(config, options, progress.update)
    output.write(
        lambda: encode_document(document),
        lambda width, wants: render_plan(document, width=width, color=wants, explain=explain or ""),
        sources=[config, *(against or [])],
    )
    progress.say_done()
    if _found_nothing(document):
        raise typer.Exit(1)


def _reading(step: str | None, units: str | None, rank: str | None, job: str | None) -> Any:
    from longpole.cli.reading_options import reading_options

    return reading_options(
        step=step,
        units=units,
        rank=rank,
        job=job,
        rules=None,
        settings=None,
        no_cache=False,
        verify_cache=False,
        jobs=None,
    )


def _found_nothing(document: Plan) -> bool:
    return document.search is not None and document.search.best is None
