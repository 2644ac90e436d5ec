"""From a folder of records to how each benchmark went; where a new baseline was accepted is kept beside the records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.bench.history import Accepted, Recorded, build_series
from longpole.errors import InputError, UsageError
from longpole.pipeline.measurements import read_measurements
from longpole.pipeline.version import package_version
from longpole.records.history import SCHEMA, VERDICTS, History

if TYPE_CHECKING:
    from collections.abc import Sequence

ACCEPTED_FILE: Final = "accepted.json"
ACCEPTED_SCHEMA: Final = "longpole.accepted/1"


class AcceptedFile(msgspec.Struct):
    """Where baselines begin, in the order in which they were accepted."""

    schema: str
    accepted: list[Accepted]


def measure_history(folder: str, *, threshold: float, baseline_runs: int, benchmarks: Sequence[str] = ()) -> History:
    """Read a folder of records and judge every series in it.

    Args:
        folder: With records, or results of other benchmark programs, at any depth.
        threshold: A change of this share is worth an alarm.
        baseline_runs: How many runs a baseline has where there are enough.
        benchmarks: Only those whose name contains one of these; all of them where empty.

    Raises:
        InputError: It holds no measurement, or its list of accepted baselines cannot be read.
        UsageError: No benchmark has such a name.
    """
    recorded, refused = _read_folder(folder)
    if benchmarks:
        chosen = [one for one in recorded if any(text in _benchmark(one) for text in benchmarks)]
        if not chosen:
            names = ", ".join(sorted({_benchmark(one) for one in recorded})[:10])
            msg = f"--benchmark {', '.join(benchmarks)}: no benchmark is called so; there are {names}"
            raise UsageError(msg)
        recorded = chosen
    series = build_series(recorded, threshold, baseline_runs, read_accepted(folder))
    verdicts = {one.verdict for one in series}
    return History(
        schema=SCHEMA,
        longpole=package_version(),
        folder=folder,
        threshold=threshold,
        series=series,
        refused=refused,
        verdict=next(verdict for verdict in VERDICTS if verdict in verdicts),
    )


def accept_run(folder: str, run: str, because: str, benchmark: str) -> str:
    """Begin a new baseline at a run, and say so in a sentence.

    Args:
        folder: With records.
        run: Run id or label.
        because: Why the new level is right.
        benchmark: Of this benchmark; of every one with such a run where empty.

    Raises:
        InputError: The folder holds no measurement.
        UsageError: No run is called so, or the file cannot be written.
    """
    recorded, _ = _read_folder(folder)
    of_run = [one for one in recorded if run in (one.record.run_id, one.record.label)]
    if benchmark:
        of_run = [one for one in of_run if _benchmark(one) == benchmark]
    if not of_run:
        labels = ", ".join(sorted({one.record.label for one in recorded})[:10])
        msg = f"--accept {run}: no run is called so; there are {labels}"
        raise UsageError(msg)
    entries = [*read_accepted(folder), Accepted(benchmark, run, because)]
    path = Path(folder) / ACCEPTED_FILE
    data = msgspec.json.format(msgspec.json.encode(AcceptedFile(ACCEPTED_SCHEMA, entries)), indent=1) + b"\n"
    new = path.with_suffix(".new")
    try:
        new.write_bytes(data)
        new.replace(path)
    except OSError as error:
        msg = f"--accept: {path} cannot be written: {error.strerror}; allow writing in {folder}"
        raise UsageError(msg) from None
    names = ", ".join(sorted({_benchmark(one) or "all runs" for one in of_run}))
    return f"{names}: the baseline begins at {run} from now on ({because}); kept in {path}"


def read_accepted(folder: str) -> list[Accepted]:
    """Return where baselines begin; nothing where nobody accepted any.

    Raises:
        InputError: The file is not what it should be.
    """
    path = Path(folder) / ACCEPTED_FILE
    if not path.is_file():
        return []
    try:
        found = msgspec.json.decode(path.read_bytes(), type=AcceptedFile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError.at(path, None, f"cannot be read: {error}", "Mend it, or delete it") from None
    if found.schema != ACCEPTED_SCHEMA:
        raise InputError.at(path, None, f"expected {ACCEPTED_SCHEMA!r}, found {found.schema!r}", "Delete it")
    return found.accepted


def _read_folder(folder: str) -> tuple[list[Recorded], list[str]]:
    """Read every file below a folder for itself, so that each record knows its own."""
    if not Path(folder).is_dir():
        measured = read_measurements(folder)
        return [Recorded(record, folder) for record in measured.records], measured.refused
    recorded: list[Recorded] = []
    refused: list[str] = []
    for file in sorted(Path(folder).rglob("*.json")):
        if file.name == ACCEPTED_FILE:
            continue
        try:
            measured = read_measurements(str(file))
        except InputError as error:
            refused.append(str(error))
            continue
        recorded += [Recorded(record, str(file)) for record in measured.records]
        refused += measured.refused
    if not recorded:
        raise InputError.at(
            folder,
            None,
            "holds no measurement" + (f" ({refused[0]})" if refused else ""),
            "Name a folder of run records",
        )
    return recorded, refused


def _benchmark(one: Recorded) -> str:
    design = one.record.design
    return design.benchmark if design is not None else ""
