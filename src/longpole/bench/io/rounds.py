"""Take the samples: every round each case once, in random order, so that no drift of the machine becomes a difference.

A case whose bytes are wrong, or whose samples are not what its path says, takes no more samples; the others go on.
Whatever ends a run early, the samples until then are kept.
"""

from __future__ import annotations

import gc
import resource
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.bench.conditions import conditions_between, flags_of, read_now, watched_files
from longpole.bench.io.case import Checked
from longpole.settings import Settings
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.bench.io.case import Case, Prepared, Timing
    from longpole.bench.io.plan import PlannedCase, Workload
    from longpole.bench.io.workbench import Sweep

KEPT_CONDITIONS: Final = (
    "psi_cpu_share",
    "psi_io_share",
    "psi_memory_share",
    "steal_share",
    "throttled_share",
    "other_cpus",
)

_OWN_DOING: Final = "io-pressure"  # who waits for the device is the sample itself


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a case.

    Attributes:
        round_number: When it was taken.
        timing: How long it took; None where it could not be taken.
        prepared: How things stood before.
        checked: What a look at the result found.
        conditions: What the machine was like.
        flags: Which of them make it suspect.
    """

    round_number: int
    timing: Timing | None
    prepared: Prepared
    checked: Checked | None
    conditions: Mapping[str, float]
    flags: Sequence[str]

    def wrong(self) -> str:
        """Say why no further sample of its case is worth taking; nothing where nothing is wrong."""
        found = self.checked.failed or self.checked.invalid if self.checked else ""
        return self.prepared.invalid or found


@dataclass
class CaseSamples:
    """A case, with its samples in the order in which they were taken."""

    plan: PlannedCase
    case: Case
    samples: list[Sample] = field(default_factory=list)

    def goes_on(self) -> bool:
        """Tell whether nothing was wrong so far."""
        return not self.samples or not self.samples[-1].wrong()


@dataclass
class Rounds:
    """All samples of a run.

    Attributes:
        cases: Each with its samples.
        taken: Rounds that came to their end.
    """

    cases: list[CaseSamples]
    taken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOptions:
    """How rounds are taken.

    Attributes:
        clock_ns: A monotonic clock.
        sweep: What empties the CPU's caches.
        budget_s: After this time no round begins; None for no end. At least one round that counts is taken.
        tell: Told how far the run is: (label, samples taken, samples planned).
        settings: Which conditions make a sample suspect.
    """

    clock_ns: Callable[[], int]
    sweep: Sweep
    budget_s: float | None = None
    tell: Callable[[str, int, int], None] = lambda *_: None
    settings: Settings = field(default_factory=Settings)


def take_rounds(rounds: Rounds, workload: Workload, options: RoundOptions) -> None:
    """Take the samples, into `rounds`, where they are also found when an error ends this early."""
    rng = np.random.default_rng(workload.seed)
    watched = watched_files()
    began_s = time.monotonic()
    planned, done = sum(one.plan.samples for one in rounds.cases), 0
    for one in rounds.cases:
        one.case.set_up()
    gc_was_on = gc.isenabled()
    gc.disable()
    try:
        for number in range(workload.rounds):
            spent_s = time.monotonic() - began_s
            if options.budget_s is not None and spent_s > options.budget_s and number > workload.warmups:
                break
            due = [one for one in rounds.cases if one.goes_on() and _is_due(one.plan.samples, number, workload.rounds)]
            for place in rng.permutation(len(due)):
                one = due[place]
                options.tell(f"{one.plan.row.name} {one.plan.size_bytes}", done, planned)
                one.samples.append(_take(one, number, watched, options))
                done += 1
            gc.collect(1)  # what the rounds themselves left; a full one takes longer than many samples
            rounds.taken = number + 1
    finally:
        if gc_was_on:
            gc.enable()
        for one in rounds.cases:
            one.case.clean_up()


def _is_due(samples: int, number: int, rounds: int) -> bool:
    """Tell whether a case of so many samples has one in this round; they are spread evenly, the last in the last."""
    return (number + 1) * samples // rounds > number * samples // rounds


def _take(one: CaseSamples, number: int, watched: Sequence[str], options: RoundOptions) -> Sample:
    prepared = one.case.prepare()
    if prepared.invalid:
        return Sample(number, None, prepared, None, {}, ())
    if one.plan.row.operation != "save" and one.plan.size_bytes * one.plan.objects <= options.sweep.size_bytes:
        options.sweep.run()
        one.case.prime()
    used, before = resource.getrusage(resource.RUSAGE_SELF), read_now(watched)
    try:
        timing = one.case.run(options.clock_ns)
    except OSError as error:
        if one.plan.row.operation != "load":
            raise
        return Sample(number, None, prepared, Checked(failed=f"cannot be loaded: {error}"), {}, ())
    after, spent = read_now(watched), resource.getrusage(resource.RUSAGE_SELF)
    cpu_ns = round((spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime) * NS_PER_S)
    found = conditions_between(before, after, cpu_ns=cpu_ns, involuntary=spent.ru_nivcsw - used.ru_nivcsw)
    checked = one.case.check()
    kept: dict[str, float] = {name: found[name] for name in KEPT_CONDITIONS if name in found}
    flags = [flag for flag in flags_of(found, options.settings) if flag != _OWN_DOING]
    return Sample(number, timing, prepared, checked, kept, flags)
