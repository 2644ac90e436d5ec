"""Published tables of figures, as `tests/oracles` keeps them: comment lines that say the source, then CSV."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_table(oracles: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of a table; a table without rows is no oracle."""
    lines = (oracles / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# source:"), f"{name}.csv does not say where it comes from"
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert rows, f"{name}.csv is empty"
    return rows
