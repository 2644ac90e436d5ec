"""What came of a measurement, as the page of `longpole bench run` shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.bench.spread import Spread
    from longpole.records.run_record import RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRunAnswer:
    """What came of a measurement.

    Attributes:
        record: It.
        path: Where the record is.
        spread: What its units took.
        output_tail: What a failed process wrote last.
        warnings: What went wrong beside the measurement.
        earlier: Another record of the same benchmark, the newest; None where there is none.
    """

    record: RunRecord
    path: Path
    spread: Spread
    output_tail: str = ""
    warnings: Sequence[str] = ()
    earlier: Path | None = None
