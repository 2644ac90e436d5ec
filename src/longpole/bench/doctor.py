"""What makes this machine noisy: how it is set up, what else runs on it, and how far a fixed loop varies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Final

from longpole.bench.conditions import conditions_between, read_now, watched_files
from longpole.bench.doctor_checks import CHECKS, Seen
from longpole.bench.environment import Surroundings, collect_environment
from longpole.bench.gpu import gpu_facts, read_gpus
from longpole.bench.spread import variation
from longpole.records.doctor import ORDER, SCHEMA, Doctor, DoctorLoop
from longpole.stats import median_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.records.doctor import DoctorCheck
    from longpole.settings import Settings

NOISY_CV: Final = 0.05
"""A loop that varies by more than this between processes hides a change of 3 % (bench-io A3: at 5 % and ten samples a
plain threshold is wrong in 13 of 100 comparisons of equals)."""

LOOP_PROCESSES: Final = 5
LOOP_ROUNDS: Final = 30
_LOOP_TIMEOUT_S: Final = 60.0
_LOOP: Final = """
import json, sys, time
def work():
    total = 0
    for number in range(60000):
        total += number * number
    return total
work(); work()
taken = []
for _ in range(int(sys.argv[1])):
    start = time.perf_counter_ns(); work(); taken.append(time.perf_counter_ns() - start)
print(json.dumps(taken))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorPlan:
    """How the machine is looked at.

    Attributes:
        watch_s: How long it is watched at rest.
        loop_processes: How many processes run the fixed loop; 0 for none.
        surroundings: Where facts are looked up.
        sleep: Waits so many seconds.
    """

    watch_s: float = 3.0
    loop_processes: int = LOOP_PROCESSES
    surroundings: Surroundings = field(default_factory=Surroundings)
    sleep: Callable[[float], None] = time.sleep


def examine(plan: DoctorPlan, settings: Settings) -> Doctor:
    """Look at the machine for a few seconds, and say what disturbs measurements on it.

    Args:
        plan: How.
        settings: From where on pressure, stolen time and throttling disturb.
    """
    machine = plan.surroundings.machine
    watched = watched_files(machine)
    before, cpu_before = read_now(watched), time.process_time_ns()
    plan.sleep(plan.watch_s)
    after = read_now(watched)
    conditions = conditions_between(before, after, cpu_ns=time.process_time_ns() - cpu_before)
    loop = run_loop(plan.loop_processes) if plan.loop_processes else None
    seen = Seen(
        machine=machine,
        conditions=conditions,
        gpus=gpu_facts() if plan.surroundings.gpus else [],
        gpu_readings=read_gpus() if plan.surroundings.gpus else [],
        settings=settings,
        variables=plan.surroundings.variables,
    )
    checks = [found for check in CHECKS if (found := check(seen)) is not None]
    checks.sort(key=lambda check: ORDER.index(check.status))
    noisy = any(check.status == "noisy" for check in checks) or _is_noisy(loop)
    return Doctor(
        schema=SCHEMA,
        longpole=metadata.version("longpole"),
        noisy=noisy,
        says=_verdict(checks, loop, noisy=noisy),
        checks=checks,
        loop=loop,
        watched_s=plan.watch_s,
        conditions=conditions,
        environment=collect_environment(surroundings=plan.surroundings),
    )


def run_loop(processes: int, rounds: int = LOOP_ROUNDS) -> DoctorLoop | None:
    """Time a fixed loop in fresh processes; None where they do not answer."""
    taken = [durations for durations in (_run_once(rounds) for _ in range(processes)) if durations]
    return summarise_loop(taken) if len(taken) > 1 else None


def summarise_loop(taken: Sequence[Sequence[int]]) -> DoctorLoop:
    """Return the spread of rounds, in ns, of at least two processes with at least two rounds each."""
    medians = [median_ns(durations) for durations in taken]
    within = sorted(variation(durations) or 0.0 for durations in taken)
    typical = median_ns(medians)
    return DoctorLoop(
        processes=len(taken),
        rounds=min(map(len, taken)),
        median_ns=typical,
        within_cv_share=(within[(len(within) - 1) // 2] + within[len(within) // 2]) / 2,
        between_cv_share=variation(medians) or 0.0,
        slowest_share=max(map(max, taken)) / typical - 1,
    )


def _run_once(rounds: int) -> list[int]:
    argv = [sys.executable, "-I", "-S", "-c", _LOOP, str(rounds)]
    try:
        answer = subprocess.run(
            argv, capture_output=True, text=True, timeout=_LOOP_TIMEOUT_S, check=False, env=dict(os.environ)
        )
        found = json.loads(answer.stdout) if answer.returncode == 0 else []
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    return [int(taken) for taken in found]


def _is_noisy(loop: DoctorLoop | None) -> bool:
    return loop is not None and max(loop.between_cv_share, loop.within_cv_share) > NOISY_CV


def _verdict(checks: Sequence[DoctorCheck], loop: DoctorLoop | None, *, noisy: bool) -> str:
    causes = [check.name for check in checks if check.status == "noisy"]
    if causes:
        return f"noisy now: {', '.join(causes)}"
    if noisy and loop is not None:
        return "noisy now: a fixed loop does not take the same time twice, and nothing that was looked at explains it"
    if loop is None:
        return "nothing that was looked at disturbs measurements now"
    varies = max(loop.between_cv_share, loop.within_cv_share)
    return f"quiet now: a fixed loop varies by {100 * varies:.1f} %"
