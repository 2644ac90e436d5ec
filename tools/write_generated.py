"""Write the files that are made from the code: the JSON Schema that the package ships, and the golden pages.

Run it after a change that is meant to change them, and read the difference before it is committed:
`python -m tools.write_generated`. Tests fail where a file is not what this would write.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from longpole.records.audit import SCHEMA as AUDIT_SCHEMA
from longpole.records.audit import Audit
from longpole.records.bench_collectives import SCHEMA as COLLECTIVES_SCHEMA
from longpole.records.bench_collectives import CollectivesRecord
from longpole.records.bench_io import SCHEMA as IO_SCHEMA
from longpole.records.bench_io import BenchIo
from longpole.records.calibration import SCHEMA as CALIBRATION_SCHEMA
from longpole.records.calibration import Calibration
from longpole.records.doctor import SCHEMA as DOCTOR_SCHEMA
from longpole.records.doctor import Doctor
from longpole.records.hang import SCHEMA as HANG_SCHEMA
from longpole.records.hang import Hang
from longpole.records.run_record import SCHEMA as RECORD_SCHEMA
from longpole.records.run_record import RunRecord
from longpole.report.balance import balance_schema
from longpole.report.buckets import buckets_schema
from longpole.report.candidates import candidates_schema
from longpole.report.compare import compare_schema
from longpole.report.declared_ledger import ledger_schema
from longpole.report.explain import explain_schema
from longpole.report.gate import gate_schema
from longpole.report.gate_markdown import render_gate_markdown
from longpole.report.history import history_schema
from longpole.report.journal import journal_schema
from longpole.report.json import report_schema
from longpole.report.markdown import render_markdown
from longpole.report.memory_snapshot import memory_schema
from longpole.report.operations import operations_schema
from longpole.report.plan import plan_schema
from longpole.report.scaling import scaling_schema
from longpole.report.schema_of import document_schema
from longpole.report.text import render_text
from longpole.report.text.audit import render_audit
from longpole.report.text.balance import render_balance
from longpole.report.text.bench_collectives import render_collectives
from longpole.report.text.declared_ledger import render_declared_ledger
from longpole.report.text.gate import render_gate
from longpole.report.text.hang import render_hang
from longpole.report.text.memory_snapshot import render_memory
from longpole.report.text.plan import render_plan
from longpole.report.text.scaling import render_scaling
from longpole.report.text.verify import render_verify
from longpole.report.text.whatif import render_whatif
from longpole.report.verify import verify_schema
from longpole.report.whatif import whatif_schema
from tests.audit_samples import SAMPLES as AUDIT_SAMPLES
from tests.balance_samples import SAMPLES as BALANCE_SAMPLES
from tests.collective_samples import SAMPLES as COLLECTIVE_SAMPLES
from tests.gate_samples import SAMPLES as GATE_SAMPLES
from tests.hang_samples import SAMPLES as HANG_SAMPLES
from tests.ledger_samples import SAMPLES as LEDGER_SAMPLES
from tests.memory_snapshots import SAMPLES as MEMORY_SAMPLES
from tests.plan_samples import SAMPLES as PLAN_SAMPLES
from tests.report_builder import SAMPLES
from tests.scaling_runs import SAMPLES as SCALING_SAMPLES
from tests.verify_samples import SAMPLES as VERIFY_SAMPLES
from tests.whatif_samples import SAMPLES as WHATIF_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_D = TypeVar("_D")
ROOT: Final = Path(__file__).resolve().parents[1]
SCHEMAS: Final = Path("src/longpole/report/schema")
GOLDEN: Final = Path("tests/golden")


def generated_files() -> dict[Path, bytes]:
    """Return path from the repository's root -> what belongs there."""
    pages = {
        GOLDEN / f"report-{name}.txt": render_text(build(), width=80, color=False).encode()
        for name, build in SAMPLES.items()
    }
    pages |= _pages("scaling", SCALING_SAMPLES, render_scaling)
    pages |= _pages("whatif", WHATIF_SAMPLES, render_whatif)
    pages |= _pages("ledger", LEDGER_SAMPLES, render_declared_ledger)
    pages |= _pages("verify", VERIFY_SAMPLES, render_verify)
    pages |= _pages("collectives", COLLECTIVE_SAMPLES, render_collectives)
    pages |= _pages("gate", GATE_SAMPLES, render_gate)
    pages |= {
        GOLDEN / f"plan-{name}.txt": render_plan(build(), width=80, color=False, explain=explain).encode()
        for name, (build, explain) in PLAN_SAMPLES.items()
    }
    pages[GOLDEN / "report-typical.md"] = render_markdown(SAMPLES["typical"]()).encode()
    pages[GOLDEN / "gate-regressed.md"] = render_gate_markdown(GATE_SAMPLES["regressed"]()).encode()
    pages |= _pages("balance", BALANCE_SAMPLES, render_balance)
    pages |= _pages("audit", AUDIT_SAMPLES, render_audit)
    pages |= _pages("hang", HANG_SAMPLES, render_hang)
    pages |= _pages("memory", MEMORY_SAMPLES, render_memory)
    return {SCHEMAS / f"{name}.json": schema for name, schema in _schemas().items()} | pages


def _schemas() -> dict[str, bytes]:
    """Return the schema of each kind of document, by its name."""
    return {
        "audit": document_schema(Audit, AUDIT_SCHEMA),
        "balance": balance_schema(),
        "bench-collectives": document_schema(CollectivesRecord, COLLECTIVES_SCHEMA),
        "bench-io": document_schema(BenchIo, IO_SCHEMA),
        "buckets": buckets_schema(),
        "calibration": document_schema(Calibration, CALIBRATION_SCHEMA),
        "candidates": candidates_schema(),
        "compare": compare_schema(),
        "doctor": document_schema(Doctor, DOCTOR_SCHEMA),
        "explain": explain_schema(),
        "history": history_schema(),
        "gate": gate_schema(),
        "hang": document_schema(Hang, HANG_SCHEMA),
        "journal": journal_schema(),
        "ledger": ledger_schema(),
        "memory": memory_schema(),
        "operations": operations_schema(),
        "plan": plan_schema(),
        "record": document_schema(RunRecord, RECORD_SCHEMA),
        "report": report_schema(),
        "scaling": scaling_schema(),
        "verify": verify_schema(),
        "whatif": whatif_schema(),
    }


def _pages(kind: str, samples: Mapping[str, Callable[[], _D]], render: Callable[..., str]) -> dict[Path, bytes]:
    """Return the kept pages of one kind of document: path -> text of 80 columns without colour."""
    return {
        GOLDEN / f"{kind}-{name}.txt": render(build(), width=80, color=False).encode()
        for name, build in samples.items()
    }


def main() -> int:
    """Write the files that differ."""
    for path, content in generated_files().items():
        target = ROOT / path
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
