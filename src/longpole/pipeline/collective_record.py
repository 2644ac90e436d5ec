"""The user's record of collectives as cost models of a run: behind a fit to it, before shipped fits (DESIGN 3.8)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from longpole.errors import InputError
from longpole.ranks.cost_model import Model, RecordedModels
from longpole.records.bench_collectives import DEFAULT_SETTING
from longpole.timeline.integrity import Example, Finding

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.records.bench_collectives import CollectivesFit, CollectivesRecord

DIFFERS: Final = "collective.record_differs"


def with_models(run: Run, options: ReportOptions) -> tuple[Run, list[Finding]]:
    """Return a run with the cost models of the user's record, and what is doubtful about them.

    Args:
        run: The digests.
        options: Which record, if any.

    Raises:
        UsageError: There is no such file.
        InputError: It is no record, or carries no model.
    """
    if options.collective_record is None:
        return run, []
    models = read_models(options.collective_record, options.settings)
    return replace(run, recorded=models), _doubts(run, models)


def read_models(path: Path, settings: Path | None = None) -> RecordedModels:
    """Read a record or a log, and return the model of each kind and number of ranks.

    Of several settings the default's model is taken, for that is what a job runs with; else the first one there is.

    Raises:
        UsageError: There is no such file.
        InputError: It is no record, or carries no model.
    """
    from longpole.pipeline.bench_collectives import read_collectives

    record = read_collectives([str(path)], settings=settings)
    chosen: dict[tuple[str, int], CollectivesFit] = {}
    for fit in record.fits:
        key = (fit.kind, fit.ranks)
        if not fit.why_none and (key not in chosen or fit.setting == DEFAULT_SETTING):
            chosen[key] = fit
    if not chosen:
        why = next((f"{fit.kind}: {fit.why_none}" for fit in record.fits), "it holds no point")
        raise InputError.at(path, None, f"no cost model can be made of it: {why}", "Measure more sizes")
    models = {key: _model(fit, record) for key, fit in chosen.items()}
    return RecordedModels(models, record.machine.device, record.machine.nodes, str(path))


def _model(fit: CollectivesFit, record: CollectivesRecord) -> Model:
    where = record.machine.device or record.machine.backend
    setting = "" if fit.setting == DEFAULT_SETTING else f", {fit.setting}"
    says = f"{record.label}: {fit.kind}, {fit.ranks} ranks, {where}{setting}"
    return Model(float(fit.alpha_ns or 0), fit.gamma or 0.0, fit.gb_per_s or 0.0, "record", says, fit.error_median)


def _doubts(run: Run, models: RecordedModels) -> list[Finding]:
    """Complain where the record was not measured on what the run ran on."""
    rows = [row for digest in run.digests for row in digest.rows]
    mine = {row.device_name or ("cpu" if row.device == "cpu" else "") for row in rows} - {""}
    theirs = {name.strip() for name in models.device.split(",")} - {""}
    hosts = {digest.host for digest in run.digests} - {""}
    doubts = []
    if mine and theirs and {_plain(name) for name in mine} != {_plain(name) for name in theirs}:
        doubts.append(f"on {', '.join(sorted(theirs))}, the run on {', '.join(sorted(mine))}")
    if hosts and models.nodes is not None and len(hosts) != models.nodes:
        doubts.append(f"on {_machines(models.nodes)}, the run on {_machines(len(hosts))}")
    if not doubts:
        return []
    message = f"the record of collectives was measured {'; and '.join(doubts)}: its prices may not hold here"
    return [Finding(DIFFERS, "warn", None, 1, Example(models.path), message, [])]


def _plain(name: str) -> str:
    """Return a device's name without its maker and signs, which older logs leave out."""
    return name.upper().removeprefix("NVIDIA").removeprefix("AMD").replace("-", " ").strip()


def _machines(n: int) -> str:
    return f"{n} machine" if n == 1 else f"{n} machines"
