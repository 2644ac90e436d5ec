"""Real programs under the real recorder: the ledger against what the programs' own time stamps say, within 3 %.

The programs are those of examples/recorded-loops. They stamp the time outside and inside of each span of the recorder:
the ledger lies between the two, however busy the machine is. Where only one side can be stamped (the inside of the
recorder's own writer and of its workers), 3 % is of the units' time.
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

# On a machine with other work, a few units stall longer than the rest: both causes then name the same wait.
WAITS_FOR_INPUT = {"data_loader", "data_loader_periodic"}

Span = tuple[int, int]


@dataclass(frozen=True)
class Told:
    """What a program's stamps say, and what the report does.

    Attributes:
        inner, outer: Spans by what was stamped, inside and outside of the recorder's.
        report: The report on its files.
    """

    inner: dict[str, list[Span]]
    outer: dict[str, list[Span]]
    report: Report

    def assert_exposed(self, name: str, inside: str, outside: str = "") -> None:
        """Assert that the ledger charges an object with what was stamped."""
        low_ns, high_ns = total_ns(self.inner[inside]), total_ns(self.outer[outside or inside])
        assert low_ns * (1 - TOLERANCE) <= self.exposed_ns(name) <= high_ns * (1 + TOLERANCE), name

    def assert_near(self, found_ns: int, truth_ns: int) -> None:
        """Assert that a figure is what was stamped, but for 3 % of the units' time."""
        assert abs(found_ns - truth_ns) <= TOLERANCE * total_ns(self.outer["unit"])

    def common_ns(self, one: str, other: str) -> int:
        """Return for how long two things went on at once."""
        return sum(
            max(min(end, other_end) - max(start, other_start), 0)
            for start, end in union(self.inner[one])
            for other_start, other_end in union(self.inner[other])
        )

    def exposed_ns(self, name: str) -> int:
        return self.report.ranks[0].ledger.objects[name].exposed_ns

    def hidden_ns(self, name: str) -> int:
        hidden = self.report.ranks[0].ledger.objects[name].hidden_ns
        assert isinstance(hidden, int)
        return hidden

    def costliest(self) -> str:
        """Return the first finding's cause.

        On a noisy machine a stall of every fourth step may move the median too little to be called the long pole.
        """
        return self.report.findings[0].cause


def total_ns(spans: list[Span]) -> int:
    return sum(end - start for start, end in union(spans))


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
    told = Told({}, {}, report_of(folder))
    for line in (folder / "stamps.txt").read_text().splitlines():
        what, outer_start, start, end, outer_end = line.split()
        told.inner.setdefault(what, []).append((int(start), int(end)))
        told.outer.setdefault(what, []).append((int(outer_start), int(outer_end)))
    ledger = told.report.ranks[0].ledger
    assert sum(time.exposed_ns for time in ledger.objects.values()) == ledger.wall_ns
    assert told.report.unit.count == len(told.inner["unit"])
    return told


@pytest.mark.slow
def test_a_loop_that_loads_its_own_batches(tmp_path: Path) -> None:
    told = run(tmp_path, "loader_bound", "0")

    told.assert_exposed("input", "asked", "next")
    told.assert_exposed("compute", "compute")
    assert told.costliest() in WAITS_FOR_INPUT
    assert told.report.unit.items.per_unit == 2


def test_a_loop_that_waits_for_two_workers(tmp_path: Path) -> None:
    """What the workers load while the step computes is hidden service of input: their files say so."""
    told = run(tmp_path, "loader_bound", "2")

    told.assert_exposed("input", "asked", "next")
    told.assert_exposed("compute", "compute")
    told.assert_near(told.hidden_ns("input"), told.common_ns("load", "compute"))
    assert told.hidden_ns("input") > 0
    assert len(told.report.run.sources) == 3
    assert told.costliest() in WAITS_FOR_INPUT


@pytest.mark.slow
def test_a_loop_that_stands_still_while_it_saves(tmp_path: Path) -> None:
    told = run(tmp_path, "checkpointing")

    told.assert_exposed("output", "save")
    told.assert_exposed("compute", "compute")
    assert told.costliest() == "checkpoint_blocking"


def test_a_loop_whose_writer_falls_behind(tmp_path: Path) -> None:
    """The queue of two fills, and the loop waits: back-pressure; what is written under compute stays hidden."""
    told = run(tmp_path, "async_checkpoint", "16")

    told.assert_near(told.exposed_ns("output"), total_ns(told.outer["put"]))
    told.assert_exposed("compute", "compute")
    told.assert_near(told.hidden_ns("output"), told.common_ns("write", "compute"))
    assert told.costliest() == "backpressure"
    (queue,) = told.report.ranks[0].queues
    assert (queue.max_depth, queue.capacity) == (2, 2)
    assert queue.full_ns > 0


@pytest.mark.slow
def test_a_loop_whose_writer_keeps_up(tmp_path: Path) -> None:
    told = run(tmp_path, "async_checkpoint", "2")

    told.assert_near(told.hidden_ns("output"), told.common_ns("write", "compute"))
    told.assert_exposed("compute", "compute")
    assert told.hidden_ns("output") > told.exposed_ns("output")


def test_a_program_without_a_framework(tmp_path: Path) -> None:
    told = run(tmp_path, "plain_python", torch=False)

    for name, what in (("input", "read"), ("compute", "work"), ("output", "answer")):
        told.assert_exposed(name, what)
    assert (told.report.unit.kind, told.report.unit.items.kind) == ("request", "request")
    assert told.costliest() in WAITS_FOR_INPUT


def test_a_loop_whose_stages_only_have_names(tmp_path: Path) -> None:
    told = run(tmp_path, "names_only", torch=False)

    for name, what in (("input", "batch"), ("compute", "train"), ("output", "save")):
        told.assert_exposed(name, what)
    causes = {found.cause for found in told.report.findings}
    assert causes & WAITS_FOR_INPUT
    assert "checkpoint_blocking" in causes
