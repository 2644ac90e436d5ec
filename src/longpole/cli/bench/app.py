"""`longpole bench`: what it can measure, and what it makes of it."""

from __future__ import annotations

from typing import Final

import typer

from longpole.cli.bench.calibrate import EXAMPLES as CALIBRATE_EXAMPLES
from longpole.cli.bench.calibrate import calibrate
from longpole.cli.bench.collectives import EXAMPLES as COLLECTIVES_EXAMPLES
from longpole.cli.bench.collectives import collectives
from longpole.cli.bench.compare import EXAMPLES as COMPARE_EXAMPLES
from longpole.cli.bench.compare import compare
from longpole.cli.bench.doctor import EXAMPLES as DOCTOR_EXAMPLES
from longpole.cli.bench.doctor import doctor
from longpole.cli.bench.exchange import EXPORT_EXAMPLES, IMPORT_EXAMPLES, export_results, import_results
from longpole.cli.bench.gate import EXAMPLES as GATE_EXAMPLES
from longpole.cli.bench.gate import gate
from longpole.cli.bench.history import EXAMPLES as HISTORY_EXAMPLES
from longpole.cli.bench.history import history
from longpole.cli.bench.io import EXAMPLES as IO_EXAMPLES
from longpole.cli.bench.io import io
from longpole.cli.bench.run import EXAMPLES as RUN_EXAMPLES
from longpole.cli.bench.run import run
from longpole.cli.bench.show import EXAMPLES as SHOW_EXAMPLES
from longpole.cli.bench.show import show

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


bench_app.command("history", epilog=HISTORY_EXAMPLES, short_help="Say whether benchmarks drift, and since when.")(
    history
)
bench_app.command(
    "collectives", epilog=COLLECTIVES_EXAMPLES, short_help="Measure what collectives take, by size and setting."
)(collectives)
bench_app.command("compare", epilog=COMPARE_EXAMPLES, short_help="Show two sides of benchmarks side by side.")(compare)
bench_app.command("import", epilog=IMPORT_EXAMPLES, short_help="Take results of other programs as records.")(
    import_results
)
bench_app.command("export", epilog=EXPORT_EXAMPLES, short_help="Write records in another program's format.")(
    export_results
)
bench_app.command(
    "run",
    epilog=RUN_EXAMPLES,
    short_help="Measure a command or a step in fresh processes.",
    context_settings={"allow_interspersed_args": False},
)(run)
bench_app.command("doctor", epilog=DOCTOR_EXAMPLES, short_help="Say what makes this machine noisy.")(doctor)
bench_app.command(
    "calibrate",
    epilog=CALIBRATE_EXAMPLES,
    short_help="Measure the noise floor of a command.",
    context_settings={"allow_interspersed_args": False},
)(calibrate)
bench_app.command("gate", epilog=GATE_EXAMPLES, short_help="Say whether something became worse, in an exit code.")(gate)
bench_app.command("io", epilog=IO_EXAMPLES, short_help="Measure what loading, saving and copying take.")(io)
bench_app.command("show", epilog=SHOW_EXAMPLES, short_help="Show a record of bench io.")(show)
