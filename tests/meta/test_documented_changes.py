"""What removing a known cause buys: the documented table of changes and cases holds."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.whatif import what_if
from longpole.whatif.change import parse_option

if TYPE_CHECKING:
    from longpole.whatif.change import Change

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "concepts" / "replay.md"
CASES: Final = ROOT / "tests" / "cases"
_ROW: Final = re.compile(
    r"^\| (?P<case>B\d+) \| [^|]+ \| `(?P<changes>--[^`]+)` \| [^|]+ \| (?P<saving>[\d.]+) ms \|$", re.MULTILINE
)
_SHARE: Final = 0.02
_FLOOR_NS: Final = 50_000
_SHOWN_NS: Final = 500  # half of the last digit of the table


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    case: str
    changes: str
    shown_ns: int

    def values(self) -> dict[str, Any]:
        text = (CASES / self.case / "expected.json").read_text(encoding="utf-8")
        values: dict[str, Any] = json.loads(text)["values"]
        return values

    def parsed(self) -> list[Change]:
        """The changes as a shell would hand them over: options, each but for flags with its value."""
        words = shlex.split(self.changes)
        options = [place for place, word in enumerate(words) if word.startswith("--")]
        ends = [*options[1:], len(words)]
        return [parse_option(words[at], " ".join(words[at + 1 : end])) for at, end in zip(options, ends, strict=True)]


ROWS: Final = [
    Row(match["case"], match["changes"], round(float(match["saving"]) * 1e6))
    for match in _ROW.finditer(PAGE.read_text(encoding="utf-8"))
]


def test_the_table_has_the_cases_whose_cost_a_replay_should_reach() -> None:
    wanted = {"B059", "B062", "B065", "B069", "B070", "B073", "B074", "B078", "B081", "B082"}

    assert wanted <= {row.case for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.case)
def test_the_change_buys_what_removing_the_cause_would(row: Row) -> None:
    values = row.values()
    paths = [str(path) for path in sorted((CASES / row.case).iterdir()) if not path.name.startswith("expected")]

    found = what_if(paths, row.parsed(), ReportOptions(use_cache=False, processes=1))

    is_mean = values["cost_statistic"] == "mean"
    saving_ns = found.mean_saving_ns if is_mean else found.saving_ns
    assert isinstance(saving_ns, int), found.refused
    assert abs(saving_ns - row.shown_ns) <= _SHOWN_NS
    if "cost_us_per_unit_between" in values:
        low, high = values["cost_us_per_unit_between"]
        assert low * 1000 <= saving_ns <= high * 1000
    else:
        want_ns = values["cost_mean_us_per_unit" if is_mean else "cost_us_per_unit"] * 1000
        assert abs(saving_ns - want_ns) <= max(_SHARE * want_ns, _FLOOR_NS)
