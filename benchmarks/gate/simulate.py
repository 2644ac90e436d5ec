"""How often the gate is right, by simulation with its own rule, beside the plain rule of medians and a threshold.

    python -m benchmarks.gate.simulate          # writes results/simulated.json and the tables of the page, a minute
    python -m benchmarks.gate.simulate --check  # only says whether the page is what it would write

A side of a pair is a process of `UNITS` units: log-normal noise of the given coefficient of variation within a process,
the same again between processes, and what both halves of a pair share (10 %) on top. What a gate takes of a process is
the median of its units. The plain rule takes the medians of all units of either side, and flags a ratio above 1 + 3 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.gate.grid import CHANGES, COUNTS, NOISES, PAGE, SEQUENTIAL, SIMULATED
from benchmarks.gate.page import render_page
from longpole.stats.looks import plan_looks, run_looks
from longpole.stats.three_way import IMPROVED, INCONCLUSIVE, REGRESSED, SAME, Bounds

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]

THRESHOLD: Final = 0.03
FIRST, MOST = 10, 40
UNITS: Final = 10
SHARED: Final = 0.10
SEED: Final = 2026
TRIALS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of gate, simulated many times.

    Attributes:
        noise: Coefficient of variation within and between processes.
        change: True change.
        pairs: Fixed number of pairs; `SEQUENTIAL` for looks at 10, 20 and 40.
        regressed, same, improved, inconclusive: Shares of the trials.
        mean_pairs: Pairs that were made, on average.
        plain: Share that the plain rule flags, with as many processes a side (40 for looks).
    """

    noise: float
    change: float
    pairs: int
    regressed: float
    same: float
    improved: float
    inconclusive: float
    mean_pairs: float
    plain: float


def simulate(noise: float, change: float, pairs: int, trials: int, seed: int = SEED) -> Cell:
    """Simulate gates of one kind."""
    rng = np.random.default_rng([seed, round(1e4 * noise), round(1e4 * change), pairs])
    most = pairs or MOST
    looks = plan_looks(FIRST, MOST) if pairs == SEQUENTIAL else plan_looks(pairs, pairs)
    answers, made, plain = [], [], []
    for part in _parts(trials, most):
        units = draw_units(rng, noise, change, (part, most))
        processes = np.median(units, axis=3)
        found, used = run_looks(processes[1] - processes[0], Bounds.of_share(THRESHOLD), looks)
        answers.append(found)
        made.append(used)
        pooled = np.median(units.reshape(2, part, -1), axis=2)
        plain.append(pooled[1] - pooled[0] > np.log1p(THRESHOLD))
    verdicts = np.concatenate(answers)
    return Cell(
        noise=noise,
        change=change,
        pairs=pairs,
        regressed=float(np.mean(verdicts == REGRESSED)),
        same=float(np.mean(verdicts == SAME)),
        improved=float(np.mean(verdicts == IMPROVED)),
        inconclusive=float(np.mean(verdicts == INCONCLUSIVE)),
        mean_pairs=float(np.mean(np.concatenate(made))),
        plain=float(np.mean(np.concatenate(plain))),
    )


def draw_units(rng: np.random.Generator, noise: float, change: float, shape: tuple[int, int]) -> Values:
    """Return logarithms of the times of units: (side, trial, pair, unit)."""
    sigma = float(np.sqrt(np.log1p(noise**2)))
    gates, pairs = shape
    shared = rng.normal(0, np.sqrt(np.log1p(SHARED**2)), (1, gates, pairs, 1))
    between = rng.normal(0, sigma, (2, gates, pairs, 1))
    within = rng.normal(0, sigma, (2, gates, pairs, UNITS))
    true = np.array([0.0, np.log1p(change)]).reshape(2, 1, 1, 1)
    units: Values = shared + between + within + true
    return units


def _parts(trials: int, pairs: int) -> Iterable[int]:
    """Split trials so that a part takes some 100 MB."""
    size = max(5_000_000 // (2 * pairs * UNITS), 1)
    for start in range(0, trials, size):
        yield min(size, trials - start)


def simulate_all(trials: int = TRIALS) -> list[Cell]:
    """Simulate every kind of gate."""
    kinds = [(noise, change, pairs) for noise in NOISES for pairs in (*COUNTS, SEQUENTIAL) for change in CHANGES]
    return [simulate(noise, change, pairs, trials) for noise, change, pairs in kinds]


def complaints(cells: Iterable[Cell], trials: int) -> list[str]:
    """Return which of the promises do not hold; of few trials a rate may exceed 5 % by what chance does to 4 %."""
    chance = max(2.6 * (0.04 * 0.96 / trials) ** 0.5 - 0.01, 0.0)
    found = []
    for cell in cells:
        where = (
            f"{100 * cell.noise:g} % noise, {cell.pairs or 'looks at 10, 20, 40'} pairs, true {100 * cell.change:g} %"
        )
        if cell.change == 0 and cell.regressed > 0.05 + chance:
            found.append(f"{where}: {100 * cell.regressed:.1f} % false alarms")
        if cell.noise == 0.02 and cell.pairs == 20:
            least = {0.0: ("same", 0.90), 0.05: ("regressed", 0.60), 0.10: ("regressed", 0.95)}.get(cell.change)
            if least is not None and getattr(cell, least[0]) < least[1]:
                found.append(f"{where}: {least[0]} in {100 * getattr(cell, least[0]):.1f} %")
    return found


def main() -> int:
    """Simulate, keep the cells, and write the page's tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--check", action="store_true", help="only compare the page with the kept results")
    given = parser.parse_args()
    if not given.check:
        cells = simulate_all(given.trials)
        SIMULATED.parent.mkdir(exist_ok=True)
        kept = {"trials": given.trials, "seed": SEED, "cells": [asdict(cell) for cell in cells]}
        SIMULATED.write_text(json.dumps(kept, indent=1) + "\n")
        for complaint in complaints(cells, given.trials):
            print(complaint)
    before = PAGE.read_text(encoding="utf-8")
    after = render_page(before)
    if given.check:
        return int(before != after)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
