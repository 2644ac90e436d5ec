"""`longpole bench`: what it can measure, and what it makes of it."""

from __future__ import annotations

from typing import Final

import typer

from longpole.cli.bench.history import EXAMPLES as HISTORY_EXAMPLES
from longpole.cli.bench.history import history

EXAMPLES: Final = """\b
Examples:
  longpole bench doctor
  longpole bench io --size 64MiB
  longpole bench run --label before -- python train.py
  longpole bench gate --a 'python old.py' --b 'python new.py'"""

bench_app = typer.Typer(
    help="Measure commands, steps and this machine's paths; compare and gate what was measured.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@bench_app.callback()
def bench() -> None:
    """Measure commands, steps and this machine's paths; compare and gate what was measured."""


bench_app.command("history", epilog=HISTORY_EXAMPLES, short_help="Say whether benchmarks drift, and since when.")(history)
