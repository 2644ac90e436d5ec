"""The numbers of worked examples in the documentation follow from the pictures beside them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

CELL_US = 2  # said above the picture
PICTURE_ROW = re.compile(r"^(\w[\w ,]*?) +([.#]{50})$", re.MULTILINE)
LEDGER_ROW = re.compile(r"^\| `(\w+)` \| (\d+) \| (\d+|–) \| (\d+|–) \| (\d+|–) \|$", re.MULTILINE)
INTERVAL_ROW = re.compile(r"^\| (\d+)–(\d+) \| .* \| `([\w.]+)` \| `(\w+)` \| (\d+) \|$", re.MULTILINE)

Cells = frozenset[int]


class LedgerRow(NamedTuple):
    exposed_us: int
    hidden_us: int | None
    elsewhere_us: int | None
    service_us: int | None


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs/concepts/ledger.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def picture(page: str) -> dict[str, Cells]:
    return {name: frozenset(i for i, mark in enumerate(row) if mark == "#") for name, row in PICTURE_ROW.findall(page)}


@pytest.fixture(scope="module")
def ledger(page: str) -> dict[str, LedgerRow]:
    rows = LEDGER_ROW.findall(page)
    return {
        name: LedgerRow(int(exposed), *(None if figure == "–" else int(figure) for figure in rest))
        for name, exposed, *rest in rows
    }


@pytest.fixture(scope="module")
def idle(page: str) -> dict[str, Cells]:
    """The idle cells by the object that the page charges them to."""
    charged: dict[str, Cells] = {}
    for start, end, _, charged_to, _ in INTERVAL_ROW.findall(page):
        charged[charged_to] = charged.get(charged_to, frozenset()) | _to_cells(int(start), int(end))
    return charged


def test_exposed_times_add_up_to_the_unit(ledger: dict[str, LedgerRow]) -> None:
    assert sum(row.exposed_us for row in ledger.values()) == 100


def test_every_row_of_the_ledger_adds_up(ledger: dict[str, LedgerRow]) -> None:
    split = [row for row in ledger.values() if row.service_us is not None]

    assert len(split) == 4
    assert all(row.exposed_us + (row.hidden_us or 0) + (row.elsewhere_us or 0) == row.service_us for row in split)


def test_idle_intervals_have_the_lengths_that_they_claim(page: str) -> None:
    rows = INTERVAL_ROW.findall(page)

    assert sum(int(length) for *_, length in rows) == 32
    assert all(int(end) - int(start) == int(length) for start, end, _, _, length in rows)


def test_idle_intervals_tile_what_the_device_rows_leave(picture: dict[str, Cells], idle: dict[str, Cells]) -> None:
    busy = picture["kernels"] | picture["collective"] | picture["copy, input"] | picture["copy, output"]

    assert frozenset().union(*idle.values()) == frozenset(range(50)) - busy
    assert sum(len(cells) for cells in idle.values()) == 50 - len(busy)


def test_the_ledger_follows_from_the_rungs(
    picture: dict[str, Cells], idle: dict[str, Cells], ledger: dict[str, LedgerRow]
) -> None:
    kernels, collective = picture["kernels"], picture["collective"]
    rungs = {
        "compute": (kernels, frozenset[int]()),
        "collective": (collective, kernels),
        "input": (picture["copy, input"], kernels | collective),
        "output": (picture["copy, output"], kernels | collective),
    }
    on_host = {"input": picture["loader"], "output": picture["save"] | picture["log writer"]}

    for name, row in ledger.items():
        spans, higher = rungs.get(name, (frozenset(), frozenset()))
        charged = (spans - higher) | idle.get(name, frozenset())
        assert row.exposed_us == len(charged) * CELL_US
        if row.service_us is not None:
            service = spans | on_host.get(name, frozenset())
            assert row.service_us == len(service) * CELL_US
            busy = kernels | collective | picture["copy, input"] | picture["copy, output"]
            assert row.hidden_us == len((service - charged) & busy) * CELL_US
            assert row.elsewhere_us == len(service - charged - busy) * CELL_US


def _to_cells(start_us: int, end_us: int) -> Cells:
    return frozenset(range(start_us // CELL_US, end_us // CELL_US))
