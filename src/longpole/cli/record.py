"""`longpole record`: a program, recorded as it is."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from longpole.cli.values import parse_choice, parse_count, parse_if_given, parse_ranks
from longpole.errors import UsageError

EXAMPLES: Final = """\b
Examples:
  longpole record -- python train.py --lr 3e-4
  longpole record --out runs/a -- torchrun --nproc-per-node 8 train.py
  longpole record --ranks 0-7 --stacks -- bash launch.sh
  longpole record --step module -- python generate.py

\b
The exit code is the command's own; 2 where it cannot be run."""
STEPS: Final = ("auto", "optimizer", "module")
_BEFORE_COMMAND: Final = "--"


class TakesCommand(TyperCommand):
    """A command that takes another one behind `--`, and reads nothing of it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a command without `--`: its options could be taken for ours."""
        if _BEFORE_COMMAND not in args and not set(args) & {"--help", "-h"}:
            msg = "expected a command behind --, such as: longpole record -- python train.py"
            raise UsageError(msg)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Show where the command begins."""
        return [*super().collect_usage_pieces(ctx)[:-1], "-- COMMAND..."]


def record(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The command, as you would type it.")],
    *,
    out: Annotated[
        str, typer.Option("--out", metavar="DIR", help="Folder for the traces; a fresh one called traces by default.")
    ] = "",
    skip: Annotated[
        str, typer.Option("--skip", metavar="N", help="Steps that pass before the profiler starts.", show_default=True)
    ] = "10",
    warmup: Annotated[
        str, typer.Option("--warmup", metavar="N", help="Steps that the profiler warms up for; they are not kept.")
    ] = "3",
    active: Annotated[str, typer.Option("--active", metavar="N", help="Steps that are kept.")] = "10",
    ranks: Annotated[
        str | None, typer.Option("--ranks", metavar="LIST", help="Record these ranks only: 0,3-5; all by default.")
    ] = None,
    step: Annotated[
        str,
        typer.Option(
            "--step",
            metavar="WHAT",
            autocompletion=lambda: list(STEPS),
            help="What ends a step: optimizer, module (a call of the model), or auto: the optimizer if there is one.",
        ),
    ] = "auto",
    shapes: Annotated[
        bool, typer.Option("--shapes/--no-shapes", help="Record the shapes of operators' inputs.")
    ] = True,
    stacks: Annotated[bool, typer.Option("--stacks", help="Record Python stacks; slower, and larger files.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Record allocations.")] = False,
    spans: Annotated[
        str | None,
        typer.Option("--spans", metavar="DIR", help="Have a program that uses longpole.record leave its spans here."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but failures.")] = False,
) -> None:
    """Run a PyTorch program as it is, and leave a profiler trace of some of its steps."""
    from longpole.pipeline.record import become, prepare_recording
    from longpole.recorder.profiled.injected.longpole_recording.request import Request

    chosen = parse_if_given(parse_ranks, ranks)
    request = Request(
        out=out,
        skip=parse_count("--skip", skip) or 0,
        warmup=parse_count("--warmup", warmup) or 0,
        active=parse_count("--active", active) or 0,
        ranks=None if chosen is None else tuple(sorted(chosen)),
        step=parse_choice("--step", step, STEPS),
        shapes=shapes,
        stacks=stacks,
        memory=memory,
        quiet=quiet,
    )
    become(prepare_recording(command, request, spans))
