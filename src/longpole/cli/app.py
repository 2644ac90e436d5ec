"""The command line as a whole: which commands there are, and what is said of all of them."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from longpole.cli.audit import EXAMPLES as AUDIT_EXAMPLES
from longpole.cli.audit import audit
from longpole.cli.balance import EXAMPLES as BALANCE_EXAMPLES
from longpole.cli.balance import balance
from longpole.cli.bench.app import bench_app
from longpole.cli.buckets import EXAMPLES as BUCKETS_EXAMPLES
from longpole.cli.buckets import buckets
from longpole.cli.cache import cache_app
from longpole.cli.candidates import EXAMPLES as CANDIDATES_EXAMPLES
from longpole.cli.candidates import candidates
from longpole.cli.change_order import KeepsTyped
from longpole.cli.explain import EXAMPLES as EXPLAIN_EXAMPLES
from longpole.cli.explain import explain
from longpole.cli.figure import EXAMPLES as FIGURE_EXAMPLES
from longpole.cli.figure import figure
from longpole.cli.hang import EXAMPLES as HANG_EXAMPLES
from longpole.cli.hang import hang
from longpole.cli.journal import journal_app
from longpole.cli.ledger import EXAMPLES as LEDGER_EXAMPLES
from longpole.cli.ledger import ledger
from longpole.cli.memory import EXAMPLES as MEMORY_EXAMPLES
from longpole.cli.memory import memory
from longpole.cli.plan import EXAMPLES as PLAN_EXAMPLES
from longpole.cli.plan import ExplainsAll, plan
from longpole.cli.record import EXAMPLES as RECORD_EXAMPLES
from longpole.cli.record import TakesCommand, record
from longpole.cli.report import EXAMPLES as REPORT_EXAMPLES
from longpole.cli.report import report
from longpole.cli.scaling import EXAMPLES as SCALING_EXAMPLES
from longpole.cli.scaling import scaling
from longpole.cli.schema import schema_app
from longpole.cli.serve import EXAMPLES as SERVE_EXAMPLES
from longpole.cli.serve import serve
from longpole.cli.verify import EXAMPLES as VERIFY_EXAMPLES
from longpole.cli.verify import verify
from longpole.cli.version import version
from longpole.cli.whatif import EXAMPLES as WHATIF_EXAMPLES
from longpole.cli.whatif import whatif

_EXAMPLES: Final = """\b
Examples:
  longpole report traces/
  longpole report --help"""

app = typer.Typer(
    name="longpole", epilog=_EXAMPLES, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def longpole(
    version_wanted: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code an internal error happened.")] = False,
) -> None:
    """Name the wait that holds up an AI job."""
    # Both are acted on elsewhere: the one by its callback, the other by `main`, which takes it out wherever it stands.
    del version_wanted, debug


app.command("record", cls=TakesCommand, epilog=RECORD_EXAMPLES, short_help="Record a program as it is.")(record)
app.command("report", epilog=REPORT_EXAMPLES, short_help="Say where a step's time went.")(report)
app.command("figure", epilog=FIGURE_EXAMPLES, short_help="Draw a figure of a run for a paper.")(figure)
app.command("serve", epilog=SERVE_EXAMPLES, short_help="Show the page, and answer what-ifs.")(serve)
app.command("whatif", cls=KeepsTyped, epilog=WHATIF_EXAMPLES, short_help="Say what a step would take if …")(whatif)
app.command("explain", epilog=EXPLAIN_EXAMPLES, short_help="Say what decides on a symptom.")(explain)
app.command("candidates", epilog=CANDIDATES_EXAMPLES, short_help="Say which changes are worth trying.")(candidates)
app.command("scaling", epilog=SCALING_EXAMPLES, short_help="Say what is lost as a job grows, and to what.")(scaling)
app.add_typer(journal_app, name="journal")
app.command("verify", epilog=VERIFY_EXAMPLES, short_help="Say whether a change did what it should.")(verify)
app.command("ledger", epilog=LEDGER_EXAMPLES, short_help="Say what declared I/O costs a unit of work.")(ledger)
app.command("memory", epilog=MEMORY_EXAMPLES, short_help="Say who holds device memory, and why it ran out.")(memory)
app.command("plan", cls=ExplainsAll, epilog=PLAN_EXAMPLES, short_help="Say what a layout needs and takes.")(plan)
app.command("hang", epilog=HANG_EXAMPLES, short_help="Say which rank holds up a job that hangs.")(hang)
app.command("audit", epilog=AUDIT_EXAMPLES, short_help="Say which claims contradict which.")(audit)
app.command("balance", epilog=BALANCE_EXAMPLES, short_help="Divide sequences evenly over ranks.")(balance)
app.command("buckets", epilog=BUCKETS_EXAMPLES, short_help="Say which bucket cap hides most.")(buckets)
app.add_typer(bench_app, name="bench")
app.add_typer(cache_app, name="cache")
app.add_typer(schema_app, name="schema")
app.command("version", epilog="Example: longpole version")(version)
