"""Gate a real command against itself many times, and against one that is 5 % slower; keep what came of it.

    python -m benchmarks.gate.real --aa 60 --slower 20

Every gate is the one that `longpole bench gate --a … --b …` makes, with its own seed, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.gate.asked import Asked
from longpole.pipeline.gate import GateOptions, Run, gate_commands

if TYPE_CHECKING:
    from longpole.records.gate import GateFigure

HERE: Final = Path(__file__).resolve().parent
RESULTS: Final = HERE / "results" / "real.json"
_SLOWER: Final = 1.05
_STEPS: Final = 30
_WARMUP: Final = 5


def main() -> int:
    """Run the gates, and write what came of them after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aa", type=int, default=60, help="gates of the command against itself")
    parser.add_argument("--slower", type=int, default=20, help="gates against the command that is 5 %% slower")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--max-pairs", type=int, default=40)
    parser.add_argument("--budget-s", type=float, default=60.0, help="of one gate")
    parser.add_argument("--stop-after-s", type=float, default=900.0, help="begin no gate after so long")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    begun_s = time.monotonic()
    run = Run(pairs=given.pairs, max_pairs=given.max_pairs, budget_s=given.budget_s, warmup_units=_WARMUP)
    gates: list[dict[str, Any]] = []
    # One slower gate after every few of the others, so that both meet the same weather.
    plan = _plan(given.aa, given.slower)
    for place, factor in enumerate(plan):
        if time.monotonic() - begun_s > given.stop_after_s:
            break
        gates.append(_gate(factor, replace(run, order_seed=1000 + place)))
        given.out.parent.mkdir(exist_ok=True)
        given.out.write_text(json.dumps(_document(gates, given), indent=1) + "\n")
        print(place, gates[-1], flush=True)
    return 0


def _plan(same: int, slower: int) -> list[float]:
    places = [(at / max(same, 1), 1.0) for at in range(same)] + [(at / max(slower, 1), _SLOWER) for at in range(slower)]
    return [factor for _, factor in sorted(places)]


def _gate(factor: float, run: Run) -> dict[str, Any]:
    program = f"{sys.executable} -I -S {HERE / 'workload.py'}"
    begun_s = time.monotonic()
    load = os.getloadavg()[0]
    gate = gate_commands(f"{program} 1.0 {_STEPS}", f"{program} {factor} {_STEPS}", GateOptions(asked=Asked(), run=run))
    figure: GateFigure = gate.figures[0]
    return {
        "factor": factor,
        "verdict": gate.verdict,
        "reason": gate.reason,
        "pairs": figure.n,
        "change": figure.change_share if isinstance(figure.change_share, float) else None,
        "pair_spread": figure.spread_share if isinstance(figure.spread_share, float) else None,
        "naive_ratio": figure.new / figure.base
        if isinstance(figure.new, float) and isinstance(figure.base, float)
        else None,
        "load": load,
        "took_s": round(time.monotonic() - begun_s, 1),
        "says": gate.says if gate.verdict == "invalid" else "",
    }


def _document(gates: list[dict[str, Any]], given: argparse.Namespace) -> dict[str, Any]:
    return {
        "conditions": {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "threshold": 0.03,
            "steps": _STEPS,
            "warmup": _WARMUP,
            "pairs": given.pairs,
            "max_pairs": given.max_pairs,
            "load_median": median(gate["load"] for gate in gates),
            "load_most": max(gate["load"] for gate in gates),
        },
        "same": dict(Counter(gate["verdict"] for gate in gates if gate["factor"] == 1.0)),
        "slower": dict(Counter(gate["verdict"] for gate in gates if gate["factor"] != 1.0)),
        "gates": gates,
    }


if __name__ == "__main__":
    sys.exit(main())
