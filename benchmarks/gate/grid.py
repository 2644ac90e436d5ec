"""What is simulated, and where results and tables are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "how-good-is-the-gate.md"
SIMULATED: Final = Path(__file__).resolve().parent / "results" / "simulated.json"
REAL: Final = tuple(
    SIMULATED.with_name(name) for name in ("real.json", "real-more-pairs.json", "real-quieter.json", "real-ranks.json")
)

NOISES: Final = (0.01, 0.02, 0.03, 0.05, 0.10)
CHANGES: Final = (0.0, 0.03, 0.05, 0.10)
COUNTS: Final = (5, 10, 20, 50)
SEQUENTIAL: Final = 0
