"""Run one command in one fresh process, and say what it took and what the machine was like meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.conditions import Reading, conditions_between, flags_of, watched_files
from longpole.bench.gpu import gpu_conditions, read_gpus
from longpole.bench.span_units import FAILED, SpanViews, Window, per_call, units_of_spans
from longpole.bench.step_file import STEP_FILE, StepReport, read_step_file
from longpole.errors import InputError, InvariantError, UsageError
from longpole.records.credentials import redact
from longpole.records.ledger import Unknown
from longpole.records.run_record import RecordCheck, RecordProcess, RecordUnit
from longpole.records.span_file import SUFFIX
from longpole.records.span_file_read import read_span_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.records.span_file_read import SpanFile
    from longpole.settings import Settings

RECORD_VARIABLE: Final = "LONGPOLE_RECORD"
"""Tells the recorder in which folder to leave its file."""

OUTPUT_FILE: Final = "output.txt"
BEYOND: Final = "beyond the number asked for"
_LAUNCHER: Final = Path(__file__).with_name("launcher.py")
_TAIL_BYTES: Final = 4096
_TAIL_LINES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is run, each time in a fresh process.

    Attributes:
        argv: The program and its arguments; no shell reads them.
        cwd: Where; here where None.
        env: Variables over those of this process.
        timeout_s: After so long the process and its group are ended; None for never.
        warmup_units: Units of each process that no statistic counts.
        units: No statistic counts more than so many units of a process after those; None for all.
        inherit_output: Let its output through to standard error, in place of keeping it.
    """

    argv: Sequence[str]
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    warmup_units: int = 0
    units: int | None = None
    inherit_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """What came of one process.

    Attributes:
        process: Its entry of the record.
        units: Its units; at least one, which is left out where the process failed before the first.
        environment: What the recorder in it said of versions and devices.
        output_tail: The last lines of what it wrote, where it was kept.
        checks: What a step that `bench run` called itself said of its results.
        facts: What else it said of itself, such as seeds.
    """

    process: RecordProcess
    units: list[RecordUnit]
    environment: Mapping[str, Any] = field(default_factory=dict)
    output_tail: str = ""
    checks: Sequence[RecordCheck] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def run_process(
    command: Command, settings: Settings, *, process: int = 0, place: int = 0, pair: int | None = None
) -> ProcessResult:
    """Run a command once.

    Args:
        command: What to run.
        settings: Limits of the flags.
        process: Its number in the record.
        place: Its place in the order of all that were started.
        pair: The pair that it belongs to.

    Raises:
        UsageError: The command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="longpole-bench-") as folder:
        kept = Path(folder)
        gpus = read_gpus()
        answer = _launch(command, kept)
        conditions = conditions_between(
            Reading(**answer["before"]),
            Reading(**answer["after"]),
            cpu_ns=answer["cpu_ns"],
            involuntary=answer["involuntary"],
        )
        conditions |= gpu_conditions(gpus, read_gpus())
        failure = _failure(command, answer)
        entry = RecordProcess(
            process=process,
            place=place,
            pair=pair,
            exit_code=answer["exit_code"],
            wall_ns=answer["wall_ns"],
            cpu_ns=answer["cpu_ns"],
            peak_bytes=answer["peak_bytes"],
            failure=failure,
            conditions=conditions,
            flags=flags_of(conditions, settings),
        )
        return _result(command, entry, kept)


def _launch(command: Command, folder: Path) -> dict[str, Any]:
    """Have the launcher run the command, and return its answer.

    Raises:
        UsageError: The command cannot be started.
        InvariantError: The launcher gave no answer.
    """
    output = None if command.inherit_output else str(folder / OUTPUT_FILE)
    task = {
        "argv": list(command.argv),
        "cwd": None if command.cwd is None else str(command.cwd),
        "env": {**os.environ, **command.env, RECORD_VARIABLE: str(folder)},
        "timeout_s": command.timeout_s,
        "stdout": output,
        "stderr": output,
        "watch": watched_files(),
    }
    argv = [sys.executable, "-I", "-S", str(_LAUNCHER)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        launcher.stdin.write(json.dumps(task).encode() + b"\n")
        launcher.stdin.flush()  # stays open: its end tells the launcher that this process has gone
        text = launcher.stdout.read()
    answer: dict[str, Any] = json.loads(text) if text.strip() else {}
    if "error" in answer:
        msg = (
            f"{command.argv[0]}: cannot be started: {answer['error']}. Name a program that is on the path, or its file"
        )
        raise UsageError(msg)
    if not answer:
        msg = f"{command.argv[0]}: the process that starts it ended without an answer, exit code {launcher.returncode}"
        raise InvariantError(msg)
    return answer


def _failure(command: Command, answer: Mapping[str, Any]) -> str:
    """Say in a sentence why a process failed; empty where it did not."""
    if answer["ended_by"] == "timeout":
        return f"ended after {command.timeout_s:g} s, the time that it was given"
    if answer["ended_by"]:
        return "ended because the measurement was interrupted"
    code = answer["exit_code"]
    if code < 0:
        return f"ended by signal {-code}"
    return f"exit code {code}" if code else ""


def _result(command: Command, entry: RecordProcess, folder: Path) -> ProcessResult:
    report = read_step_file(folder / STEP_FILE)
    recorded = _recorded(folder)
    units: list[RecordUnit] = []
    if report.samples:
        units = _step_units(report, recorded, entry.process)
    elif recorded is not None:
        units = units_of_spans(recorded, warmup_units=command.warmup_units, process=entry.process)
    if report.error:
        entry.failure = report.error
    _leave_out_beyond(units, command.units)
    return ProcessResult(
        process=entry,
        units=units or [_whole_process(entry)],
        environment=recorded.header.environment if recorded is not None else {},
        output_tail=_tail(folder / OUTPUT_FILE),
        checks=report.checks,
        facts=report.facts,
    )


def _whole_process(entry: RecordProcess) -> RecordUnit:
    """Return the process as its own only unit: its period is its wall time."""
    failed = bool(entry.failure)
    return RecordUnit(
        period_ns=Unknown(f"the process failed: {entry.failure}") if failed else entry.wall_ns,
        name="process",
        wall_ns=entry.wall_ns,
        left_out=FAILED if failed else "",
        process=entry.process,
        conditions=entry.conditions,
        flags=entry.flags,
    )


def _recorded(folder: Path) -> SpanFile | None:
    """Return the span file that carries units: of the lowest rank where there are several; None without a file."""
    files: list[SpanFile] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            files.append(read_span_file(path))
        except InputError:  # killed before its first flush
            continue
    carrying = [found for found in files if found.units]
    return min(carrying or files, key=lambda found: found.rank or 0, default=None)


def _step_units(report: StepReport, recorded: SpanFile | None, process: int) -> list[RecordUnit]:
    """Return the samples that a step's own process took, with the stages that it recorded inside them."""
    views = SpanViews.of(recorded, recorded.header.main_thread) if recorded is not None else SpanViews()
    return [
        views.unit(
            Window(
                start_ns=sample.start_ns,
                end_ns=sample.start_ns + sample.duration_ns,
                period_ns=max(per_call([sample.duration_ns], sample.calls)[0], 1),
                name=f"sample {place}",
                left_out=sample.left_out,
                conditions=sample.conditions,
                flags=sample.flags,
                calls=sample.calls,
            ),
            process=process,
        )
        for place, sample in enumerate(report.samples)
    ]


def _leave_out_beyond(units: Sequence[RecordUnit], most: int | None) -> None:
    """Leave out the units after so many that count."""
    counted = [unit for unit in units if not unit.left_out and isinstance(unit.period_ns, int)]
    for unit in counted[most:] if most is not None else ():
        unit.left_out = BEYOND


def _tail(path: Path) -> str:
    """Return the last lines of what a process wrote; empty where it was not kept."""
    try:
        with path.open("rb") as file:
            file.seek(-min(_TAIL_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return redact("\n".join(text.splitlines()[-_TAIL_LINES:]))
