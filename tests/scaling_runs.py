"""Runs of one job in several sizes whose truth is known: every step of every rank is written down here.

    rank 0  | load | launch |  compute  |..waits..|  moves  |      all ranks begin and end a step together
    rank 1  | load | launch |  compute, longer    |  moves  |

Times are microseconds, as in `tests.build`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longpole.digest.jobs import Run
from longpole.records.critical_path import PathAnswer
from longpole.records.ledger import Unknown
from longpole.report.build import build_report
from longpole.report.compare_runs import ItemsGiven, compare_runs
from longpole.report.document import SelectionEntry
from longpole.settings import Settings
from tests.build import LOADER, Script, measure
from tests.trace_text import annotation, call, kernel, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from longpole.report.document import Report
    from longpole.report.scaling import Scaling

LAUNCH = 10
NOT_SPLIT = Unknown("members are missing", ["traces of all ranks of the group"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run.

    Attributes:
        ranks: How many ranks it has.
        load: Time in the loader, per step.
        compute: Time in its one kernel, per step.
        extra: Rank -> compute beyond that.
        transfer: Time that the collective moves bytes; 0 for no collective.
        kernel: The kernel's name.
        marked: Whether steps are annotated.
    """

    ranks: int = 1
    steps: int = 4
    load: float = 0
    compute: float = 1000
    extra: Mapping[int, float] = field(default_factory=dict)
    transfer: float = 0
    kernel: str = "gemm_kernel"
    kind: str = "all_reduce"
    marked: bool = True

    def longest(self) -> float:
        return self.compute + max(self.extra.values(), default=0)

    def period(self) -> float:
        return self.load + LAUNCH + self.longest() + self.transfer

    def scripts(self) -> list[Script]:
        """One record a rank."""
        return [self._script(rank) for rank in range(self.ranks)]

    def _script(self, rank: int) -> Script:
        script = Script(rank=rank, world_size=self.ranks, base_ns=0, path=f"rank{rank}.json")
        for number in range(self.steps):
            start = number * self.period()
            end = start + self.period()
            if self.marked:
                script.step(number, start, end)
            if self.load:
                script.span(LOADER, start, start + self.load)
            begin = start + self.load
            launch = script.launch(begin, begin + LAUNCH)
            own_end = begin + LAUNCH + self.compute + self.extra.get(rank, 0)
            script.kernel(begin + LAUNCH, own_end, launch, name=self.kernel)
            if self.transfer:
                join = script.launch(begin + LAUNCH, begin + LAUNCH + 1)
                script.collective(own_end, end, join)
            script.sync(begin + LAUNCH + 2, end)
        return script

    def report(self, *, split: bool = True) -> Report:
        """The report of the run; `split` False as if its collectives could not be split."""
        digests = [measure(script) for script in self.scripts()]
        report = build_report(Run(digests, []), [], SelectionEntry(), "0.1.0", Settings(), PathAnswer(0))
        for entry in report.collectives:
            entry.kind = self.kind
            if not split:
                entry.split, entry.skew_ns, entry.transfer_ns = "unknown", NOT_SPLIT, NOT_SPLIT
        return report


def compare(*jobs: Job, items: ItemsGiven | None = None, split: bool = True) -> Scaling:
    """How runs scale that are called n1, n2, … by their number of ranks."""
    reports = [(f"n{job.ranks}", job.report(split=split)) for job in jobs]
    return compare_runs(reports, items or ItemsGiven(per_rank={}), Settings(), version="0.1.0")


def typical() -> Scaling:
    """Communication grows, and one of eight ranks computes longer."""
    return compare(
        Job(ranks=1, load=50),
        Job(ranks=2, load=50, transfer=90),
        Job(ranks=8, load=120, transfer=210, extra={5: 300}),
        items=ItemsGiven(per_rank={"n1": 32, "n2": 32, "n8": 32}),
    )


def not_split() -> Scaling:
    """The same, where ranks are missing; and half the compute, which the assumption does not explain."""
    return compare(
        Job(ranks=1),
        Job(ranks=2, compute=520, transfer=90),
        Job(ranks=8, transfer=210, extra={5: 300}),
        split=False,
    )


def other_job() -> Scaling:
    """Two jobs that have nothing in common."""
    return compare(Job(ranks=1), Job(ranks=2, kernel="conv_kernel<\x1b[2J>"))


SAMPLES: dict[str, Callable[[], Scaling]] = {"typical": typical, "not-split": not_split, "other-job": other_job}


def write_run(folder: Path, ranks: int, *, busy_us: float = 80, idle_us: float = 20, name: str = "gemm") -> Path:
    """Write a run: steps of one kernel, then idle time in Python."""
    period_us = 10 + busy_us + idle_us
    for rank in range(ranks):
        events: list[dict[str, Any]] = []
        for k in range(4):
            at = k * period_us
            events.append(annotation(at, period_us, f"ProfilerStep#{k}"))
            events.append(call(at, 10, correlation=k + 1))
            events.append(kernel(at + 10, busy_us, name, correlation=k + 1))
        write(folder / f"rank{rank}.json", events, rank=rank, world_size=ranks)
    return folder
