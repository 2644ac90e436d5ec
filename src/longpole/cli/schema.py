"""`longpole schema`: the JSON Schemas of what Longpole writes."""

from __future__ import annotations

import typer

from longpole.cli.terminal import write_bytes

schema_app = typer.Typer(
    help="Print the JSON Schema of what Longpole writes.",
    epilog="Example: longpole schema report > report.schema.json",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@schema_app.callback()
def schema() -> None:
    """Print the JSON Schema of what Longpole writes."""


@schema_app.command("report", epilog="Example: longpole schema report > report.schema.json")
def report() -> None:
    """Print the JSON Schema of `longpole report --json`."""
    _print("report")


@schema_app.command("operations", epilog="Example: longpole schema operations > operations.schema.json")
def operations() -> None:
    """Print the JSON Schema of `longpole report --json` on operation tables."""
    _print("operations")


@schema_app.command("record", epilog="Example: longpole schema record > record.schema.json")
def record() -> None:
    """Print the JSON Schema of a run record, as `longpole report --record` writes it."""
    _print("record")


@schema_app.command("journal", epilog="Example: longpole schema journal > journal.schema.json")
def journal() -> None:
    """Print the JSON Schema of `longpole journal … --json`."""
    _print("journal")


@schema_app.command("compare", epilog="Example: longpole schema compare > compare.schema.json")
def compare() -> None:
    """Print the JSON Schema of `longpole bench compare --json`."""
    _print("compare")


@schema_app.command("history", epilog="Example: longpole schema history > history.schema.json")
def history() -> None:
    """Print the JSON Schema of `longpole bench history --json`."""
    _print("history")


@schema_app.command("memory", epilog="Example: longpole schema memory > memory.schema.json")
def memory() -> None:
    """Print the JSON Schema of `longpole memory --json`."""
    _print("memory")


@schema_app.command("explain", epilog="Example: longpole schema explain > explain.schema.json")
def explain() -> None:
    """Print the JSON Schema of `longpole explain --json`."""
    _print("explain")


@schema_app.command("gate", epilog="Example: longpole schema gate > gate.schema.json")
def gate() -> None:
    """Print the JSON Schema of `longpole bench gate --json`."""
    _print("gate")


@schema_app.command("scaling", epilog="Example: longpole schema scaling > scaling.schema.json")
def scaling() -> None:
    """Print the JSON Schema of `longpole scaling --json`."""
    _print("scaling")


@schema_app.command("ledger", epilog="Example: longpole schema ledger > ledger.schema.json")
def ledger() -> None:
    """Print the JSON Schema of `longpole ledger --json`."""
    _print("ledger")


@schema_app.command("hang", epilog="Example: longpole schema hang > hang.schema.json")
def hang() -> None:
    """Print the JSON Schema of `longpole hang --json`."""
    _print("hang")


@schema_app.command("audit", epilog="Example: longpole schema audit > audit.schema.json")
def audit() -> None:
    """Print the JSON Schema of `longpole audit --json`."""
    _print("audit")


@schema_app.command("buckets", epilog="Example: longpole schema buckets > buckets.schema.json")
def buckets() -> None:
    """Print the JSON Schema of `longpole buckets --json`."""
    _print("buckets")


@schema_app.command("balance", epilog="Example: longpole schema balance > balance.schema.json")
def balance() -> None:
    """Print the JSON Schema of `longpole balance --json`."""
    _print("balance")


@schema_app.command("candidates", epilog="Example: longpole schema candidates > candidates.schema.json")
def candidates() -> None:
    """Print the JSON Schema of `longpole candidates --json`."""
    _print("candidates")


@schema_app.command("verify", epilog="Example: longpole schema verify > verify.schema.json")
def verify() -> None:
    """Print the JSON Schema of `longpole verify --json`."""
    _print("verify")


@schema_app.command("plan", epilog="Example: longpole schema plan > plan.schema.json")
def plan() -> None:
    """Print the JSON Schema of `longpole plan --json`."""
    _print("plan")


@schema_app.command("whatif", epilog="Example: longpole schema whatif > whatif.schema.json")
def whatif() -> None:
    """Print the JSON Schema of `longpole whatif --json`."""
    _print("whatif")


@schema_app.command("bench-io", epilog="Example: longpole schema bench-io > bench-io.schema.json")
def bench_io() -> None:
    """Print the JSON Schema of a record of `longpole bench io`."""
    _print("bench-io")


@schema_app.command(
    "bench-collectives", epilog="Example: longpole schema bench-collectives > bench-collectives.schema.json"
)
def bench_collectives() -> None:
    """Print the JSON Schema of a record of `longpole bench collectives`."""
    _print("bench-collectives")


@schema_app.command("calibration", epilog="Example: longpole schema calibration > calibration.schema.json")
def calibration() -> None:
    """Print the JSON Schema of `longpole bench calibrate --json`."""
    _print("calibration")


@schema_app.command("doctor", epilog="Example: longpole schema doctor > doctor.schema.json")
def doctor() -> None:
    """Print the JSON Schema of `longpole bench doctor --json`."""
    _print("doctor")


def _print(name: str) -> None:
    from longpole.report.schema import read_schema

    write_bytes(read_schema(name))
