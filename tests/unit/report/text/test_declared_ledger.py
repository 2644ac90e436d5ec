"""The page of a declared ledger."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.pipeline.declared_ledger import declared_ledger
from longpole.report.text.declared_ledger import render_declared_ledger
from longpole.report.text.layout import columns_of
from tests.declared_events import event_values
from tests.ledger_samples import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.declared_ledger import DeclaredLedger


def page(ledger: DeclaredLedger, width: int = 80) -> str:
    return render_declared_ledger(ledger, width=width, color=False)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_is_the_one_that_was_agreed(name: str, root: Path) -> None:
    golden = root / "tests" / "golden" / f"ledger-{name}.txt"

    assert page(SAMPLES[name]()) == golden.read_text(encoding="utf-8"), "run python -m tools.write_generated"


@settings(max_examples=30)
@given(st.lists(event_values(), min_size=1, max_size=10), st.sampled_from([60, 80, 100]))
def test_any_page_keeps_its_width_and_shows_no_control_character(values: list[dict[str, Any]], width: int) -> None:
    ledger = declared_ledger(values, requests_per_unit=3, tokens_per_unit=7, units_per_run=9)

    text = page(ledger, width)

    wide = [line for line in text.splitlines() if columns_of(line) > width]
    assert not wide
    assert all(char == "\n" or char.isprintable() for char in text)


def test_a_column_adds_up_to_what_is_shown_below_it() -> None:
    third = {"bytes": 10**9, "bandwidth_gbps": 3.0}
    ledger = declared_ledger([{**third, "object": name} for name in ("input", "artifact", "state")])

    rows = re.findall(r"^  (?:input|artifact|state|all) .*? ([\d,.]+)$", page(ledger), re.MULTILINE)

    *parts, total = [float(row.replace(",", "")) for row in rows]
    assert sum(parts) == pytest.approx(total, abs=1e-9)


def test_only_the_longest_waits_are_shown() -> None:
    events = [{"object": "input", "bytes": n * 10**6, "bandwidth_gbps": 1.0, "name": f"e{n}"} for n in range(1, 12)]

    text = page(declared_ledger(events))

    assert "e11 " in text
    assert "e3 " not in text
    assert "and 3 more, 6.00 ms together; --json has them all" in text


def test_a_name_is_escaped() -> None:
    text = page(declared_ledger([{"object": "input", "bytes": 1, "bandwidth_gbps": 1.0, "name": "a\x1b[2Jb"}]))

    assert "\x1b" not in text
    assert r"a\x1b[2Jb" in text


def test_what_is_counted_twice_is_said() -> None:
    event = {
        "object": "output",
        "bytes": 10**9,
        "bandwidth_gbps": 1.0,
        "fixed_latency_ms": 0,
        "production_gbps": 4.0,
        "drain_gbps": 1.0,
        "queue_bytes": 10**8,
        "duration_ms": 250.0,
    }

    assert "event 1: the next work waits for a transfer no faster than the queue's drain" in page(
        declared_ledger([event])
    ).replace("\n    ", " ")
    assert "TAKEN AS DECLARED" not in page(declared_ledger([{**event, "bandwidth_gbps": 10.0}]))
