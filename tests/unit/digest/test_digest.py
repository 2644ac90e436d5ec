"""From one rank's timeline to its digest: what is selected, and what the digest says of the rank."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from longpole.digest.digest import Selection, digest
from longpole.errors import UsageError
from longpole.settings import Settings
from tests.build import LOADER, OPTIMIZER, VOCABULARY, Script, measure, units

if TYPE_CHECKING:
    from longpole.digest.rank_digest import RankDigest


def _five_steps() -> Script:
    script = Script()
    script.op("aten::linear", -50, -10)
    for number in range(5):
        start = 100 * number
        script.step(10 + number, start, start + 90)
        script.kernel(start + 20, start + 80, script.launch(start + 5, start + 10))
    return script


def _select(script: Script, *, first_unit: int | None = None, last_unit: int | None = None) -> RankDigest:
    selection = Selection(first_unit=first_unit, last_unit=last_unit)
    return digest(script.timeline(), VOCABULARY, Settings(), selection)


def test_a_digest_covers_all_units_unless_asked_for_some() -> None:
    assert [unit.ordinal for unit in units(measure(_five_steps()))] == [10, 11, 12, 13, 14]


def test_a_range_of_units_includes_both_ends() -> None:
    """What lies outside the range is head and tail, and still adds up."""
    measured = _select(_five_steps(), first_unit=11, last_unit=12)

    rows = measured.rows[0].units
    walls = [(unit.start_ns, unit.start_ns + unit.ledger.wall_ns) for unit in rows]
    assert [unit.name for unit in rows] == ["head", "ProfilerStep#11", "ProfilerStep#12", "tail"]
    assert [unit.ledger.wall_ns for unit in rows] == [150_000, 100_000, 100_000, 190_000]
    assert all(before[1] == after[0] for before, after in pairwise(walls))


def test_a_range_may_be_open_at_one_side() -> None:
    assert [unit.ordinal for unit in units(_select(_five_steps(), first_unit=13))] == [13, 14]
    assert [unit.ordinal for unit in units(_select(_five_steps(), last_unit=10))] == [10]


def test_a_range_without_units_says_which_there_are() -> None:
    with pytest.raises(UsageError, match=r"--units 3\.\.7: no such unit of work; the record has 10\.\.14"):
        _select(_five_steps(), first_unit=3, last_unit=7)


def test_a_unit_keeps_its_length_when_it_is_selected_alone() -> None:
    """The last one of a selection still runs to the start of the one behind it."""
    (unit,) = units(_select(_five_steps(), first_unit=12, last_unit=12))

    assert (unit.ledger.wall_ns, unit.between_ns) == (100_000, 10_000)


def test_a_digest_says_who_recorded_what() -> None:
    script = replace(_five_steps(), rank=3, world_size=8, base_ns=7, hostname="node1")

    measured = measure(script)

    assert (measured.rank, measured.world_size, measured.host, measured.base_ns) == (3, 8, "node1", 7)
    assert (measured.start_ns, measured.end_ns) == (-50_000, 490_000)
    assert (measured.path, measured.format, measured.n_events) == ("rank0.json", "kineto", 16)
    assert [row.device for row in measured.rows] == ["cuda:0"]


def test_the_device_span_is_that_of_the_whole_record() -> None:
    """From the first to the last device span, units or not."""
    span = _select(_five_steps(), first_unit=12, last_unit=12).rows[0].device_span

    assert (span.span_ns, span.busy_ns, span.idle_ns) == (460_000, 300_000, 160_000)


@pytest.mark.parametrize(
    ("name", "kind"),
    [(OPTIMIZER, "training"), ("nn.Module: Net_0", "inference"), (LOADER, "unknown")],
)
def test_the_kind_of_job_is_read_from_what_it_did(name: str, kind: str) -> None:
    script = Script()
    script.step(0, 0, 100)
    script.frame(name, 10, 50)

    assert measure(script).kind == kind


def test_a_record_of_device_spans_alone_is_measured_too() -> None:
    """No thread was recorded: nothing tells why the device idled."""
    script = Script()
    script.kernel(0, 40)
    script.kernel(60, 100)

    (unit,) = units(measure(script))

    assert (unit.kind, unit.ledger.device.busy_ns, unit.ledger.idle_ns["unlinked"]) == ("trace", 80_000, 20_000)


def test_a_record_of_empty_spans_has_units_without_time() -> None:
    script = Script()
    script.op("aten::linear", 10, 10)

    assert [unit.ledger.wall_ns for unit in measure(script).rows[0].units] == [0]
