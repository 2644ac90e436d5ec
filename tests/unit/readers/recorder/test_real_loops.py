"""Real programs under the real recorder: the ledger against what the programs' own time stamps say, within 3 %.

The programs are those of examples/recorded-loops. Nothing is said about how long anything takes: only that the ledger
and the stamps, which were taken beside each other, agree.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.span_scripts import report_of

if TYPE_CHECKING:
    from longpole.report.document import Report

PROGRAMS = Path(__file__).parents[4] / "examples" / "recorded-loops"
TOLERANCE = 0.03

Span = tuple[int, int]


@dataclass(frozen=True)
class Told:
    """What a program's stamps say, and what the report does."""

    stamps: dict[str, list[Span]]
    report: Report

    def total_ns(self, what: str) -> int:
        return sum(end - start for start, end in union(self.stamps[what]))

    def common_ns(self, one: str, other: str) -> int:
        return sum(
            max(min(end, other_end) - max(start, other_start), 0)
            for start, end in union(self.stamps[one])
            for other_start, other_end in union(self.stamps[other])
        )

    def exposed_ns(self, name: str) -> int:
        return self.report.ranks[0].ledger.objects[name].exposed_ns

    def hidden_ns(self, name: str) -> int:
        hidden = self.report.ranks[0].ledger.objects[name].hidden_ns
        assert isinstance(hidden, int)
        return hidden

    def long_pole(self) -> str:
        return next(found.cause for found in self.report.findings if found.id == self.report.long_pole)


def union(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def run(folder: Path, program: str, *arguments: str, torch: bool = True) -> Told:
    """Run a program in a process of its own, and report on what it recorded."""
    if torch and find_spec("torch") is None:
        pytest.skip("needs PyTorch")
    subprocess.run([sys.executable, str(PROGRAMS / f"{program}.py"), str(folder), *arguments], check=True)
    stamps: dict[str, list[Span]] = {}
    for line in (folder / "stamps.txt").read_text().splitlines():
        _, what, start, end = line.split()
        stamps.setdefault(what, []).append((int(start), int(end)))
    told = Told(stamps, report_of(folder))
    ledger = told.report.ranks[0].ledger
    assert sum(time.exposed_ns for time in ledger.objects.values()) == ledger.wall_ns
    assert told.report.unit.count == len(stamps["unit"])
    return told


def about(truth_ns: int) -> object:
    return pytest.approx(truth_ns, rel=TOLERANCE)


@pytest.mark.slow
def test_a_loop_that_loads_its_own_batches(tmp_path: Path) -> None:
    told = run(tmp_path, "loader_bound", "0")

    assert told.exposed_ns("input") == about(told.total_ns("next"))
    assert told.exposed_ns("compute") == about(told.total_ns("compute"))
    assert told.long_pole() == "data_loader"
    assert told.report.unit.items.per_unit == 2


def test_a_loop_that_waits_for_two_workers(tmp_path: Path) -> None:
    """What the workers load while the step computes is hidden service of input: their files say so."""
    told = run(tmp_path, "loader_bound", "2")

    assert told.exposed_ns("input") == about(told.total_ns("next"))
    assert told.exposed_ns("compute") == about(told.total_ns("compute"))
    assert told.hidden_ns("input") == about(told.common_ns("load", "compute"))
    assert len(told.report.run.sources) == 3
    assert told.long_pole() in ("data_loader", "data_loader_periodic")


def test_a_loop_that_stands_still_while_it_saves(tmp_path: Path) -> None:
    told = run(tmp_path, "checkpointing")

    assert told.exposed_ns("output") == about(told.total_ns("save"))
    assert told.exposed_ns("compute") == about(told.total_ns("compute"))
    assert told.long_pole() == "checkpoint_blocking"


def test_a_loop_whose_writer_falls_behind(tmp_path: Path) -> None:
    """The queue of two fills, and the loop waits: back-pressure; what is written under compute stays hidden."""
    told = run(tmp_path, "async_checkpoint", "16")

    assert told.exposed_ns("output") == about(told.total_ns("put"))
    assert told.exposed_ns("compute") == about(told.total_ns("compute"))
    assert told.hidden_ns("output") == about(told.common_ns("write", "compute"))
    assert told.long_pole() == "backpressure"
    (queue,) = told.report.ranks[0].queues
    assert (queue.max_depth, queue.capacity) == (2, 2)
    assert queue.full_ns > 0


@pytest.mark.slow
def test_a_loop_whose_writer_keeps_up(tmp_path: Path) -> None:
    told = run(tmp_path, "async_checkpoint", "2")

    assert told.hidden_ns("output") == about(told.common_ns("write", "compute"))
    assert "backpressure" not in [found.cause for found in told.report.findings]


def test_a_program_without_a_framework(tmp_path: Path) -> None:
    told = run(tmp_path, "plain_python", torch=False)

    for name, what in (("input", "read"), ("compute", "work"), ("output", "answer")):
        assert told.exposed_ns(name) == about(told.total_ns(what))
    assert (told.report.unit.kind, told.report.unit.items.kind) == ("request", "request")
    assert told.long_pole() == "data_loader"


def test_a_loop_whose_stages_only_have_names(tmp_path: Path) -> None:
    told = run(tmp_path, "names_only", torch=False)

    for name, what in (("input", "batch"), ("compute", "train"), ("output", "save")):
        assert told.exposed_ns(name) == about(told.total_ns(what))
    assert {"data_loader", "checkpoint_blocking"} <= {found.cause for found in told.report.findings}
