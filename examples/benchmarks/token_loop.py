"""A loop to be measured: units with two stages, each a known amount of arithmetic, and one of them can be made slower.

longpole bench run --label before -- python token_loop.py
longpole bench run --label after -- python token_loop.py --input-work 1.25
"""

from __future__ import annotations

import argparse

from longpole import record

UNITS = 15
TOKENS = 4096
WORK = 20_000


def _count(work: float) -> int:
    """Do some arithmetic that no compiler takes away."""
    total = 0
    for value in range(int(WORK * work)):
        total += value & 7
    return total


def main() -> None:
    """Run the units; the recorder is on where `longpole bench run` has set LONGPOLE_RECORD."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--input-work", type=float, default=1.0)
    parser.add_argument("--forward-work", type=float, default=3.0)
    asked = parser.parse_args()
    for step in range(UNITS):
        with record.unit(step, items=TOKENS):
            with record.stage("input", object="input"):
                _count(asked.input_work)
            with record.stage("forward", object="compute"):
                _count(asked.forward_work)


if __name__ == "__main__":
    main()
