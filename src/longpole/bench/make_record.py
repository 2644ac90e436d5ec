"""Put what processes gave into a run record (`longpole.record/1`)."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from longpole.records.credentials import redact_arguments, redact_variable
from longpole.records.run_record import (
    NOT_RECORDED,
    SCHEMA,
    RecordContract,
    RecordCorrectness,
    RecordDesign,
    RecordEnvironment,
    RecordSource,
    RunRecord,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.process_run import Command, ProcessResult
    from longpole.records.ledger import Unknown
    from longpole.records.run_record import RecordCheck

PROCESS: Final = "process"
STEP: Final = "step"
_RUN_ID_BYTES: Final = 10
_SEMANTIC_BYTES: Final = 8
_VERSIONS: Final = ("torch_version", "cuda_runtime_version", "nccl_version", "cudnn_version", "hip_runtime_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """What is measured, apart from how often.

    Attributes:
        command: What is run.
        name: What it is called; two records that are compared share it. By default the command line.
        label: What pages call the record.
        items: What a unit processes; None where it is not declared.
        item_kind: What those are.
        inputs: Files that it reads, with their hashes.
        seed: That it was given; None where it was given none.
        unit_kind: What a unit of it is called where it has any.
    """

    command: Command
    name: str = ""
    label: str = ""
    items: int | None = None
    item_kind: str = ""
    inputs: Sequence[RecordSource] = ()
    seed: int | None = None
    unit_kind: str = STEP

    def title(self) -> str:
        """Return its name, else its command line without credentials."""
        return self.name or " ".join(redact_arguments(self.command.argv))

    def semantic_id(self) -> str:
        """Return a hash of what must be the same for samples to mean the same: name, input, items, what is counted."""
        command = self.command
        meant = {
            "name": self.name or list(command.argv),
            "inputs": sorted(source.blake2b for source in self.inputs),
            "items": [self.items, self.item_kind],
            "warmup_units": command.warmup_units,
            "units": command.units,
        }
        data = json.dumps(meant, sort_keys=True).encode("utf-8", "backslashreplace")
        return hashlib.blake2b(data, digest_size=_SEMANTIC_BYTES).hexdigest()


@dataclass(slots=True, kw_only=True)
class Measured:
    """A record in the making.

    Attributes:
        benchmark: What is measured.
        environment: Where.
        design: How.
        run_id: Of the record.
        results: What its processes gave, in order.
        failure: Why it did not come to its end, beyond what its processes say.
        stopped: Why no further process was started: `target`, `processes`, `budget`, `failed` or `interrupted`.
    """

    benchmark: Benchmark
    environment: RecordEnvironment
    design: RecordDesign
    run_id: str = field(default_factory=lambda: secrets.token_hex(_RUN_ID_BYTES))
    results: list[ProcessResult] = field(default_factory=list)
    failure: str = ""
    stopped: str = ""

    def record(self) -> RunRecord:
        """Return the record of what there is; at least one process has been run."""
        benchmark, results = self.benchmark, self.results
        items, item_kind = _items(benchmark, results)
        units = [unit for result in results for unit in result.units]
        whole = all(unit.name == PROCESS for unit in units)
        checks = _joined_checks([check for result in results for check in result.checks])
        return RunRecord(
            schema=SCHEMA,
            units=units,
            run_id=self.run_id,
            label=benchmark.label,
            written_by=f"longpole {metadata.version('longpole')}",
            unit_kind=PROCESS if whole else benchmark.unit_kind,
            item_kind=item_kind,
            items_per_unit=items,
            items_from="declared" if isinstance(items, int) else "",
            environment=_environment(self.environment, results),
            configuration=_configuration(benchmark, results),
            contract=RecordContract(
                seed=benchmark.seed,
                sampler=_inputs(benchmark.inputs),
            ),
            correctness=RecordCorrectness(checks=checks),
            limits={"peak_bytes": _peak_bytes(results)},
            sources=list(benchmark.inputs),
            processes=[result.process for result in results],
            design=self.design,
            failure=self.failure or _first_failure(results, checks),
            extra={"stopped": self.stopped} if self.stopped else {},
        )


def _items(benchmark: Benchmark, results: Sequence[ProcessResult]) -> tuple[int | Unknown, str]:
    """Return what a unit processes: what was said of it on the command line, else by the step itself."""
    if benchmark.items is not None:
        return benchmark.items, benchmark.item_kind
    for result in results:
        items = result.facts.get("items")
        if isinstance(items, int) and items > 0:
            return items, str(result.facts.get("item_kind", ""))
    return NOT_RECORDED, benchmark.item_kind


def _environment(found: RecordEnvironment, results: Sequence[ProcessResult]) -> RecordEnvironment:
    """Add the versions that the recorder saw loaded: what an interpreter has installed may not be what a job loads."""
    told: dict[str, Any] = next((dict(result.environment) for result in results if result.environment), {})
    loaded = {name: str(told[name]) for name in _VERSIONS if told.get(name)}
    return RecordEnvironment(
        must_match={**found.must_match, **loaded},
        should_match=found.should_match,
        informational=found.informational,
    )


def _configuration(benchmark: Benchmark, results: Sequence[ProcessResult]) -> dict[str, Any]:
    command = benchmark.command
    found: dict[str, Any] = {"command": redact_arguments(command.argv)}
    if command.env:
        found["env"] = {name: redact_variable(name, value) for name, value in sorted(command.env.items())}
    if command.timeout_s is not None:
        found["timeout_s"] = command.timeout_s
    if command.units is not None:
        found["units"] = command.units
    facts: dict[str, Any] = {}
    for result in results:
        facts |= result.facts
    return found | ({"step": facts} if facts else {})


def _inputs(inputs: Sequence[RecordSource]) -> str | None:
    """Name the input by one hash over all its files' hashes, in the order given."""
    if not inputs:
        return None
    together = "|".join(source.blake2b for source in inputs)
    return f"input {hashlib.blake2b(together.encode(), digest_size=20).hexdigest()}"


def _joined_checks(checks: Sequence[RecordCheck]) -> list[RecordCheck]:
    """Return each check once: the first failure where one of its processes failed it."""
    found: dict[str, RecordCheck] = {}
    for check in checks:
        if check.name not in found or (check.status == "failed" and found[check.name].status != "failed"):
            found[check.name] = check
    return list(found.values())


def _peak_bytes(results: Sequence[ProcessResult]) -> int | Unknown:
    peaks = [result.process.peak_bytes for result in results]
    known = [peak for peak in peaks if isinstance(peak, int)]
    return max(known) if known else NOT_RECORDED


def _first_failure(results: Sequence[ProcessResult], checks: Sequence[RecordCheck]) -> str:
    for result in results:
        if result.process.failure:
            return f"process {result.process.process}: {result.process.failure}"
    wrong = next((check for check in checks if check.status == "failed"), None)
    return f"check {wrong.name} failed: {wrong.says}" if wrong is not None else ""
