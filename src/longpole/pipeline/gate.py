"""`longpole bench gate`: read two sides or run two commands in pairs, judge, and put the answer into a document."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from longpole.bench.gate.asked import MIN_PAIRS, Asked
from longpole.bench.gate.judge import Judged, judge_records
from longpole.bench.gate.sides import machine_of
from longpole.bench.make_record import Benchmark
from longpole.bench.pairs import PairPlan, PairRun, run_pairs
from longpole.bench.process_run import Command
from longpole.errors import UsageError
from longpole.pipeline.gate_next import next_command
from longpole.pipeline.measurements import benchmark_of, by_benchmark, read_measurements
from longpole.pipeline.version import package_version
from longpole.records.calibration import read_calibration
from longpole.records.credentials import redact_arguments
from longpole.records.gate import GateLook, GateSide
from longpole.records.run_record_file import encode_record
from longpole.report.gate import SCHEMA, Gate
from longpole.settings import read_settings
from longpole.stats.looks import PROMISED, Look, last_look, plan_looks
from longpole.stats.three_way import INCONCLUSIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings

EXIT_CODES: Final = {"same": 0, "improved": 0, "regressed": 1, "inconclusive": 5, "invalid": 6}
INCONCLUSIVE_CODES: Final = {"neutral": 5, "fail": 1, "pass": 0}
RECORD_NAMES: Final = ("a.json", "b.json")
_VARIABLE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How commands are run.

    Attributes:
        pairs: Before the first look.
        max_pairs: At most.
        budget_s: No pair is begun after so long; None for no limit.
        order_seed: Of the random order.
        warmup_units: First units of each process that do not count.
        timeout_s: After so long a process is ended and has failed.
        cwd: Where; here where None.
        records: A folder in which both records are kept, written after every pair; None for none.
    """

    pairs: int = 10
    max_pairs: int = 40
    budget_s: float | None = 600.0
    order_seed: int = 42
    warmup_units: int = 0
    timeout_s: float | None = None
    cwd: Path | None = None
    records: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """What is asked of a gate.

    Attributes:
        asked: Figures, thresholds, what may differ.
        settings: A file of thresholds.
        benchmark: Which of several benchmarks in the files; empty where there is one.
        calibration: A file of `longpole bench calibrate`, whose noise floors raise thresholds.
        inconclusive: What an inconclusive answer counts as.
        run: How commands are run.
    """

    asked: Asked = field(default_factory=Asked)
    settings: Path | None = None
    benchmark: str = ""
    calibration: Path | None = None
    inconclusive: str = "neutral"
    run: Run = field(default_factory=Run)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """Where both sides come from: the paths of records, or the commands that were run."""

    paths: tuple[list[str], list[str]] = ((), ())  # type: ignore[assignment]  # empty for commands
    commands: tuple[str, str] = ("", "")


def gate_records(base: str, new: Sequence[str], options: GateOptions) -> Gate:
    """Judge records that were made before.

    Args:
        base: The baseline: a record, a folder of records, or another program's results.
        new: The same of the other side, one or more: their processes count together.
        options: What is asked.

    Raises:
        UsageError: There is nothing to compare, or more than one benchmark.
        InputError: A file cannot be read.
    """
    settings = read_settings(options.settings)
    read = [[read_measurements(path) for path in paths] for paths in ([base], list(new))]
    paths = [[path for one in side for path in one.paths] for side in read]
    refused = [why for side in read for one in side for why in one.refused]
    sides = _of_one_benchmark([[record for one in side for record in one.records] for side in read], options.benchmark)
    asked, notes = _with_floors(options, sides[0], settings)
    judged = judge_records(sides[0], sides[1], asked, settings)
    given = _Given(paths=(paths[0], paths[1]))
    return _document(judged, sides, given, replace(options, asked=asked), [], [*notes, *refused])


def gate_commands(
    a: str,
    b: str,
    options: GateOptions,
    on_look: Callable[[Look, Judged], None] | None = None,
) -> Gate:
    """Run two commands as pairs of fresh processes until the answer is settled or the budget ends, and judge.

    Args:
        a: The command of the baseline.
        b: The command of the other side.
        options: What is asked, and how they are run.
        on_look: Hears each look and its answer.

    Raises:
        UsageError: A command cannot be started, or an option is wrong.
    """
    settings = read_settings(options.settings)
    run = options.run
    if run.max_pairs < MIN_PAIRS:
        msg = f"--max-pairs: expected at least {MIN_PAIRS} pairs, which a verdict needs; found {run.max_pairs}"
        raise UsageError(msg)
    sides = parse_command("--a", a, run), parse_command("--b", b, run)
    asked, notes = _with_floors(options, [], settings)
    looking = _Looking(asked, settings, plan_looks(max(min(run.pairs, run.max_pairs), MIN_PAIRS), run.max_pairs))
    plan = PairPlan(pairs=run.max_pairs, order_seed=run.order_seed, budget_s=run.budget_s)

    def on_pair(done: int, pairs: PairRun) -> bool:
        if run.records is not None:
            keep_records(run.records, pairs.records())
        look = looking.due(done)
        if look is None:
            return True
        judged = looking.look(pairs.records(), look)
        if on_look is not None:
            on_look(look, judged)
        return judged.verdict == INCONCLUSIVE

    records = run_pairs(
        Benchmark(command=sides[0], label="a"),
        Benchmark(command=sides[1], label="b"),
        plan,
        settings,
        on_pair,
    )
    if run.records is not None:
        keep_records(run.records, records)
    judged = looking.end(records)
    kept = tuple([str(run.records / name)] if run.records is not None else [] for name in RECORD_NAMES)
    given = _Given(paths=(kept[0], kept[1]), commands=(_shown(a), _shown(b)))
    return _document(judged, ([records[0]], [records[1]]), given, replace(options, asked=asked), looking.looks, notes)


class _Looking:
    """The looks at pairs in the making, each with its part of the probability of a false alarm."""

    def __init__(self, asked: Asked, settings: Settings, plan: tuple[Look, ...]) -> None:
        self._asked = asked
        self._settings = settings
        self._plan = {look.pairs: look for look in plan}
        self._spent = 0.0
        self._last: tuple[int, Judged] | None = None
        self.looks: list[GateLook] = []

    def due(self, pairs: int) -> Look | None:
        """Return the look that is planned at so many pairs."""
        return self._plan.get(pairs)

    def look(self, records: tuple[RunRecord, RunRecord], look: Look) -> Judged:
        """Judge what there is."""
        judged = judge_records([records[0]], [records[1]], self._asked, self._settings, alpha=look.tail)
        self._spent += look.tail
        self._last = look.pairs, judged
        self.looks.append(GateLook(look.pairs, look.tail, judged.verdict))
        return judged

    def end(self, records: tuple[RunRecord, RunRecord]) -> Judged:
        """Return the last answer; where time ran out between two looks, look once more with what is left to spend."""
        pairs = len({entry.pair for entry in records[0].processes if entry.pair is not None})
        if self._last is not None and self._last[0] == pairs and not any(record.failure for record in records):
            return self._last[1]
        return self.look(records, last_look(pairs, self._spent))


def parse_command(option: str, text: str, run: Run) -> Command:
    """Read a command line; no shell reads it, but variables may stand before the program.

    >>> parse_command("--a", "OMP_NUM_THREADS=1 python -c 'pass'", Run()).argv
    ['python', '-c', 'pass']

    Raises:
        UsageError: It is empty, or a quote is not closed.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        msg = f"{option} {text!r}: expected a command line; found {error}"
        raise UsageError(msg) from None
    variables = {}
    while words and (match := _VARIABLE.fullmatch(words[0])):
        variables[match[1]] = match[2]
        words = words[1:]
    if not words:
        msg = f"{option} {text!r}: expected a command such as 'python train.py'; found none"
        raise UsageError(msg)
    return Command(argv=words, cwd=run.cwd, env=variables, timeout_s=run.timeout_s, warmup_units=run.warmup_units)


def _shown(command: str) -> str:
    """Return a command line as it may be shown again: without credentials."""
    return shlex.join(redact_arguments(shlex.split(command)))


def keep_records(folder: Path, records: tuple[RunRecord, RunRecord]) -> None:
    """Write both records, each whole or not at all.

    Raises:
        UsageError: The folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, record in zip(RECORD_NAMES, records, strict=True):
            part = folder / f".{name}.part"
            part.write_bytes(encode_record(record))
            part.replace(folder / name)
    except OSError as error:
        msg = f"--records {folder}: cannot be written: {error.strerror or error}; name another folder"
        raise UsageError(msg) from None


def _of_one_benchmark(sides: list[list[RunRecord]], wanted: str) -> tuple[list[RunRecord], list[RunRecord]]:
    """Choose the records of one benchmark: sides that hold several are several gates.

    Raises:
        UsageError: None or several match.
    """
    named = [by_benchmark(side) for side in sides]
    names = list(dict.fromkeys([*named[0], *named[1]]))
    if wanted:
        found = [[record for name, own in side.items() if wanted == name for record in own] for side in named]
        if not all(found):
            known = ", ".join(repr(name) for name in names)
            msg = f"--benchmark {wanted!r}: expected the name of a benchmark on both sides; found {known}"
            raise UsageError(msg)
        return found[0], found[1]
    several = [side for side in named if len(side) > 1]
    if several:
        known = ", ".join(repr(name) for name in several[0])
        msg = f"bench gate: expected one benchmark a side; found {len(several[0])}. Choose with --benchmark: {known}"
        raise UsageError(msg)
    return sides[0], sides[1]


def _with_floors(options: GateOptions, base: Sequence[RunRecord], settings: Settings) -> tuple[Asked, list[str]]:
    """Add what is known of the noise: the spread between runs of the settings, and a calibration's floors."""
    asked = replace(options.asked, run_spread=settings.run_spread_share)
    if options.calibration is None:
        return asked, []
    calibration = read_calibration(options.calibration)
    time = next((figure for figure in calibration.figures if figure.metric == "time"), None)
    if time is not None:
        asked = replace(asked, run_spread=max(1.6449 * time.pair_spread_share, time.floor_share))
    notes = [f"noise floors of a calibration of {calibration.benchmark or 'a benchmark'}, {calibration.pairs} pairs"]
    where = calibration.environment.informational.get("host")
    here = {machine_of(record) for record in base} - {""}
    if where and here and str(where) not in here:
        notes.append(f"the calibration is from another machine ({where})")
    return replace(asked, floors=calibration.floors), notes


def _document(
    judged: Judged,
    sides: tuple[Sequence[RunRecord], Sequence[RunRecord]],
    given: _Given,
    options: GateOptions,
    looks: list[GateLook],
    notes: list[str],
) -> Gate:
    entries = [_side(judged, sides, given, place) for place in (0, 1)]
    code = EXIT_CODES[judged.verdict]
    if judged.verdict == INCONCLUSIVE:
        code = INCONCLUSIVE_CODES[options.inconclusive]
    gate = Gate(
        schema=SCHEMA,
        longpole=package_version(),
        verdict=judged.verdict,  # type: ignore[arg-type]  # one of the five, as the rule returns them
        reason=judged.reason,
        says=judged.says,
        next="",
        exit_code=code,
        benchmark=benchmark_of(sides[0][0]),
        unit_kind=judged.gated.comparison.before.runs[0].unit_kind,
        design=judged.gated.design,
        fail_when="proven" if options.asked.proven else "likely",
        inconclusive=options.inconclusive,
        false_alarm_share=PROMISED,
        figures=judged.figures,
        stages=judged.localised.stages,
        explains=judged.localised.explains,
        explanation=judged.localised.says,
        reasons=judged.reasons,
        differences=judged.gated.differences,
        invalid=judged.gated.invalid,
        looks=looks,
        base=entries[0],
        new=entries[1],
        notes=[*notes, *_flag_notes(judged)],
    )
    gate.next = next_command(gate, given.commands, options.run.max_pairs)
    return gate


def _side(
    judged: Judged, sides: tuple[Sequence[RunRecord], Sequence[RunRecord]], given: _Given, place: int
) -> GateSide:
    records = sides[place]
    processes = judged.gated.processes[place]
    first = records[0]
    command = first.configuration.get("command")
    text = shlex.join(map(str, command)) if isinstance(command, list) else ""
    return GateSide(
        name=", ".join(dict.fromkeys(record.label or record.run_id for record in records)),
        paths=list(given.paths[place]),
        run_ids=[record.run_id for record in records],
        command=text,
        processes=len(processes),
        left_out=judged.gated.left_out[place],
        units=sum(len(process.run.counted()) for process in processes),
        machine=machine_of(first),
    )


def _flag_notes(judged: Judged) -> list[str]:
    """Say how many processes ran under conditions that make them suspect: pairs bear that, and it widens intervals."""
    entries = [process.entry for side in judged.gated.processes for process in side]
    counts: dict[str, int] = {}
    for entry in entries:
        for flag in entry.flags:
            counts[flag] = counts.get(flag, 0) + 1
    if not counts:
        return []
    parts = ", ".join(f"{flag} {count}" for flag, count in sorted(counts.items(), key=lambda pair: -pair[1]))
    return [f"suspect conditions, in processes of {len(entries)}: {parts}"]
