"""`longpole bench doctor`: look at the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.bench.doctor import LOOP_PROCESSES, DoctorPlan, examine
from longpole.settings import read_settings

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.doctor import Doctor


def bench_doctor(*, watch_s: float = 3.0, loop: bool = True, settings: Path | None = None) -> Doctor:
    """Say what makes this machine noisy.

    Args:
        watch_s: How long it is watched at rest.
        loop: Whether a fixed loop is timed as well.
        settings: A file of thresholds.

    Raises:
        UsageError: The file of thresholds cannot be read.
    """
    plan = DoctorPlan(watch_s=watch_s, loop_processes=LOOP_PROCESSES if loop else 0)
    return examine(plan, read_settings(settings))
