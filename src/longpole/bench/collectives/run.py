"""Carry a plan out: fresh processes for every setting and round, and what they measured brought together."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.collectives.plan import Facts, setting_name
from longpole.bench.collectives.points import Where, measured_point
from longpole.bench.collectives.world import Rank, WorldFailedError, run_world
from longpole.errors import MissingExtraError, UsageError
from longpole.records.bench_collectives import CollectivesRound, NotRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.bench.collectives.plan import Cell, Plan
    from longpole.records.bench_collectives import CollectivesPoint, CollectivesSetting

_WORKER: Final = "longpole.bench.collectives.worker"
_PROBE_S: Final = 120
_LOOPBACK: Final = Path("/sys/class/net/lo")
_CLOCK: Final = "longest rank's time from leaving the barrier to holding the result"
TIMED: Final = f"{_CLOCK}; how unevenly the ranks leave the barrier is part of it (skew_ns)"


@dataclass(slots=True)
class Measured:
    """What came out.

    Attributes:
        facts: On what it ran.
        settings: All of the plan, with what became of them.
        points: Of the settings that were measured.
        not_run: Kinds that the backend does not have, and settings that it does not read.
    """

    facts: Facts
    settings: list[CollectivesSetting]
    points: list[CollectivesPoint]
    not_run: list[NotRun] = field(default_factory=list)


@dataclass(slots=True)
class _Samples:
    """What the rounds measured so far: (setting, kind, size asked for) -> rounds, and what else is known of it."""

    rounds: dict[tuple[str, str, int], list[CollectivesRound]] = field(default_factory=dict)
    size_bytes: dict[tuple[str, str, int], int] = field(default_factory=dict)
    wrong: dict[tuple[str, str, int], int] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)


def worker_command() -> list[str]:
    """Return how a worker is started; `-P` keeps files of the current folder from being taken for modules."""
    return [sys.executable, "-P", "-m", _WORKER]


def probe(plan: Plan, command: Sequence[str] | None = None) -> Facts:
    """Ask a process of its own what there is, so that this one loads neither torch nor a driver.

    Args:
        plan: Its backend and world are asked about.
        command: How a worker is started.

    Raises:
        MissingExtraError: torch is not installed.
        UsageError: The backend is not there, or cannot be asked.
    """
    try:
        done = subprocess.run(
            [*(command or worker_command()), "--probe", plan.backend, str(plan.world)],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_PROBE_S,
            env=child_environment({}),
        )
        said = json.loads(done.stdout.splitlines()[-1])
        facts = Facts(said["backend"], said.get("device", "cpu"), said.get("versions", {}), said.get("problem", ""))
    except (OSError, ValueError, KeyError, IndexError, subprocess.TimeoutExpired):
        msg = "bench collectives: torch could not be asked what it can use; does `python -c 'import torch'` work?"
        raise UsageError(msg) from None
    if facts.problem == "torch is not installed":
        msg = "bench collectives: torch is not installed. Install it with: pip install 'longpole[torch]'"
        raise MissingExtraError(msg)
    if facts.problem:
        msg = f"bench collectives: {facts.problem}; choose another --backend or --world"
        raise UsageError(msg)
    return facts


def child_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a worker: ours, with a setting's variables; ours itself is left as it is.

    gloo looks the host's name up for an address, which fails on many machines; all ranks are on this one, so the
    loopback device serves, unless one is chosen.
    """
    environment = dict(os.environ)
    if "GLOO_SOCKET_IFNAME" not in environment and _LOOPBACK.exists():
        environment["GLOO_SOCKET_IFNAME"] = _LOOPBACK.name
    return environment | dict(variables)


def measure(
    plan: Plan,
    facts: Facts,
    progress: Callable[[str, int, int], None] | None = None,
    command: Sequence[str] | None = None,
) -> Measured:
    """Measure all points of a plan.

    Args:
        plan: What to measure.
        facts: On what, as `probe` returns them.
        progress: Hears (what runs, sets of processes done, in all) now and then.
        command: How a worker is started.
    """
    settings = plan.settings()
    unread = _unread(plan, facts.backend)
    not_run = _mark_unread(plan, settings, unread, facts.backend)
    schedule = [(number, place) for number, place in plan.schedule() if place not in unread]
    samples = _Samples()
    for done, (number, place) in enumerate(schedule):
        if progress is not None:
            progress(setting_name(plan.variables[place], None), done, len(schedule))
        if place in samples.failures:
            continue
        try:
            _one_world(plan, facts, (number, place), samples, command or worker_command())
        except WorldFailedError as error:
            samples.failures[place] = str(error)
    for place, failure in samples.failures.items():
        for setting in _settings_of(plan, settings, place):
            setting.status, setting.failure = "failed", failure
    not_run += [NotRun(kind, f"{facts.backend}: {why}") for kind, why in samples.unsupported.items()]
    return Measured(facts, settings, _points(plan, samples), not_run)


def _unread(plan: Plan, backend: str) -> set[int]:
    """Return the settings of which gloo would read no variable: they would measure the default again."""
    if backend != "gloo":
        return set()
    foreign = ("NCCL_", "RCCL_", "TORCH_NCCL_", "CUDA_", "PYTORCH_CUDA_")
    return {
        place
        for place, variables in enumerate(plan.variables)
        if variables and all(name.startswith(foreign) for name in variables)
    }


def _mark_unread(plan: Plan, settings: list[CollectivesSetting], unread: set[int], backend: str) -> list[NotRun]:
    why = f"{backend} reads none of these variables"
    found = []
    for place in sorted(unread):
        for setting in _settings_of(plan, settings, place):
            setting.status, setting.failure = "not_run", why
            found.append(NotRun(setting.name, why))
    return found


def _settings_of(plan: Plan, settings: list[CollectivesSetting], place: int) -> list[CollectivesSetting]:
    width = len(plan.buckets)
    return settings[place * width : (place + 1) * width]


def _one_world(plan: Plan, facts: Facts, turn: tuple[int, int], samples: _Samples, command: Sequence[str]) -> None:
    """Run one set of processes, and keep what it measured even where it then failed.

    Raises:
        WorldFailedError: A process died, or all hung.
    """
    number, place = turn
    cells = plan.order(place, number)
    with tempfile.TemporaryDirectory(prefix="longpole-collectives-") as name:
        folder = Path(name)
        config = {
            "backend": facts.backend,
            "world": plan.world,
            "store": str(folder / "store"),
            "out": str(folder / "rank{rank}.jsonl"),
            "cells": [(cell.kind, cell.size_bytes, cell.bucket_bytes) for cell in cells],
            "dtype": plan.dtype,
            "repeats": plan.repeats,
            "warmup": plan.warmup,
            "timeout_s": plan.timeout_s,
        }
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        ranks = [
            Rank(
                [*command, str(folder / "config.json"), str(rank)],
                folder / f"rank{rank}.jsonl",
                folder / f"rank{rank}.err",
            )
            for rank in range(plan.world)
        ]
        try:
            run_world(ranks, child_environment(plan.variables[place]), plan.timeout_s)
        finally:
            _take(cells, [_lines(rank.out) for rank in ranks], plan.variables[place], number, samples)


def _lines(path: Path) -> dict[int, dict[str, Any]]:
    """Return what a rank wrote of each point; a line that was not finished is left out."""
    found = {}
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    for text in texts:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if "cell" in line:
            found[line["cell"]] = line
    return found


def _take(
    cells: list[Cell],
    by_rank: list[dict[int, dict[str, Any]]],
    variables: Mapping[str, str],
    number: int,
    samples: _Samples,
) -> None:
    """Join what the ranks measured: the time of a repeat is the longest of the ranks' (as MPI's own benchmarks do)."""
    for place, cell in enumerate(cells):
        lines = [lines[place] for lines in by_rank if place in lines]
        if len(lines) < len(by_rank):
            continue
        if any("unsupported" in line for line in lines):
            samples.unsupported[cell.kind] = next(line["unsupported"] for line in lines if "unsupported" in line)
            continue
        key = (setting_name(variables, cell.bucket_bytes), cell.kind, cell.size_bytes)
        durations = [max(times) for times in zip(*(line["durations_ns"] for line in lines), strict=True)]
        skews = sorted(max(starts) - min(starts) for starts in zip(*(line["starts_ns"] for line in lines), strict=True))
        skew_ns = skews[len(skews) // 2] if skews else None
        samples.rounds.setdefault(key, []).append(CollectivesRound(number, durations, skew_ns))
        samples.size_bytes[key] = lines[0]["bytes"]
        samples.wrong[key] = samples.wrong.get(key, 0) + sum(line["wrong"] for line in lines)


def _points(plan: Plan, samples: _Samples) -> list[CollectivesPoint]:
    """Return the points in the order of the plan."""
    cells = itertools.product(plan.variables, plan.buckets, plan.kinds, plan.sizes)
    keys = [(setting_name(variables, bucket), kind, size) for variables, bucket, kind, size in cells]
    return [_measured(plan, key, samples) for key in keys if key in samples.rounds]


def _measured(plan: Plan, key: tuple[str, str, int], samples: _Samples) -> CollectivesPoint:
    setting, kind, _ = key
    where = Where(
        kind=kind,
        ranks=plan.world,
        dtype=plan.dtype,
        setting=setting,
        placement="in_place" if kind in ("all_reduce", "broadcast") else "out_of_place",
        size_bytes=samples.size_bytes[key],
    )
    return measured_point(where, sorted(samples.rounds[key], key=lambda one: one.round), samples.wrong[key])
