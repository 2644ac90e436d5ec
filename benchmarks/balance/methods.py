"""How far from the bound each method of dividing sequences ends, and what it takes.

    python benchmarks/balance/methods.py

Lengths are drawn: chat data (log-normal, a long tail), documents that are cut at a limit, and uniform ones. Small
batches are compared with their optimum. Prints one row for each case, and the medians of how far the greedy method and
the best of all are off.
"""

from __future__ import annotations

import statistics
import sys
import time
from random import Random

from longpole.costs.balance.batch import Batch, in_turn
from longpole.costs.balance.choose import balance
from longpole.costs.balance.exact import optimum
from longpole.costs.balance.sequence_cost import BY_SQUARE, BY_TOKENS


def draw_lengths(kind: str, count: int, draw: Random) -> list[int]:
    """Return drawn lengths of one kind of data."""
    if kind == "uniform":
        return [draw.randint(1, 4096) for _ in range(count)]
    if kind == "cut":
        return [min(int(draw.lognormvariate(7.5, 1.0)) + 1, 4096) for _ in range(count)]
    return [min(int(draw.lognormvariate(6.4, 1.1)) + 8, 16384) for _ in range(count)]


def measure(
    kind: str, count: int, speeds: list[float], cost: object, trials: int, *, equal: bool = False
) -> list[float]:
    """Return medians over trials: in turn, greedy and best over the bound, and milliseconds of the best."""
    rows = []
    for trial in range(trials):
        lengths = draw_lengths(kind, count, Random(f"{kind}/{count}/{trial}"))
        batch = Batch(cost.of_all(lengths), speeds, equal)  # type: ignore[attr-defined]
        began = time.perf_counter()
        best = balance(batch)
        took_ms = (time.perf_counter() - began) * 1e3
        greedy = best.by_method["longest_first"]
        rows.append(
            [batch.longest_load(in_turn(batch)) / best.bound, greedy / best.bound, best.load / best.bound, took_ms]
        )
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def against_optimum(count: int, ranks: int, trials: int) -> tuple[float, float, int, int]:
    """Return mean excess of the greedy method and of the best over the optimum, and how often the best is it."""
    greedy, best_of_all, hits, known = [], [], 0, 0
    for trial in range(trials):
        batch = Batch(BY_TOKENS.of_all(draw_lengths("chat", count, Random(f"{count}/{ranks}/{trial}"))), [1.0] * ranks)
        best = balance(batch)
        searched = optimum(batch, best.parts, best.bound)
        if searched.parts is None:
            continue
        load = batch.longest_load(searched.parts)
        known += 1
        greedy.append(best.by_method["longest_first"] / load - 1)
        best_of_all.append(best.load / load - 1)
        hits += best.load <= load * (1 + 1e-9)
    return statistics.mean(greedy), statistics.mean(best_of_all), hits, known


def main() -> int:
    """Print the tables."""
    even, slow = [1.0] * 8, [1.0, 1.0, 0.9, 0.6]
    print(f"{'':32}{'over the bound':>24}")
    print(f"{'data':8}{'n':>6}{'ranks':>6} {'cost':8}{'equal':>6}{'in turn':>10}{'greedy':>10}{'best':>10}{'ms':>8}")
    for kind in ("chat", "cut", "uniform"):
        for count, speeds in ((64, even), (256, even), (256, slow), (512, [1.0] * 64)):
            for name, cost in (("tokens", BY_TOKENS), ("square", BY_SQUARE)):
                for equal in (False, True):
                    dealt, greedy, best, took_ms = measure(kind, count, speeds, cost, 21, equal=equal)
                    row = f"{kind:8}{count:6}{len(speeds):6} {name:8}{equal!s:>6}"
                    print(f"{row}{dealt - 1:10.1%}{greedy - 1:10.3%}{best - 1:10.4%}{took_ms:8.1f}")
    print("\nagainst the optimum (chat, tokens): mean excess of greedy and best, and how often the best is the optimum")
    for count, ranks in ((8, 2), (12, 3), (16, 4), (20, 4)):
        greedy, best, hits, known = against_optimum(count, ranks, 100)
        print(f"{count:3} sequences on {ranks} ranks: {greedy:7.2%} {best:7.2%}   {hits} of {known} known of 100")
    return 0


if __name__ == "__main__":
    sys.exit(main())
