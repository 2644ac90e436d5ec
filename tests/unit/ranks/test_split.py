"""What of a collective is waiting, what is moving bytes, and who arrived last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.ranks.clocks import Clock
from longpole.ranks.matching import Matched, match
from longpole.ranks.split import NOT_SPLIT, How, Split, WhyNot, split, why_not_split, withdraw
from longpole.settings import Settings
from tests.collective_rows import UNITS, Op, exact_clocks, receive, send, table, world

if TYPE_CHECKING:
    from longpole.records.instances import Instances


def _tables(*spans: tuple[float, float], kind: str = "all_reduce") -> dict[int, Instances]:
    """One operation; each rank's span in µs."""
    return {
        rank: table(Op(start, end, kind, sequence=1), groups=world(len(spans)))
        for rank, (start, end) in enumerate(spans)
    }


def _split(
    tables: dict[int, Instances], clocks: dict[int, Clock] | None = None, world_size: int | None = None
) -> tuple[Matched, Split]:
    matched, _ = match(tables, unit_names=dict.fromkeys(tables, UNITS), world_size=world_size)
    return matched, split(matched, tables, clocks or exact_clocks(list(tables)), Settings())


def test_on_aligned_clocks_the_last_arrival_divides() -> None:
    """
    rank 0  ├──── 60 ────┼─ 20 ─┤
    rank 1       ├─ 40 ──┼── 25 ──┤
    rank 2               ├─ 22 ─┤
    """
    _, found = _split(_tables((0, 80), (20, 85), (60, 82)))

    assert found.how.tolist() == [How.ALIGNED]
    assert found.skew_ns.tolist() == [60_000, 40_000, 0]
    assert found.transfer_ns.tolist() == [20_000, 25_000, 22_000]
    assert found.culprit.tolist() == [2]
    assert found.lateness_ns.tolist() == [60_000]


@pytest.mark.parametrize(("uncertainty_us", "culprit"), [(9, 2), (10, -1)])
def test_a_lateness_within_the_clocks_uncertainty_names_nobody(uncertainty_us: int, culprit: int) -> None:
    """Rank 2 is 20 µs behind rank 1, and each clock may be off by that much."""
    _, found = _split(_tables((0, 80), (40, 80), (60, 80)), exact_clocks([0, 1, 2], uncertainty_us * 1000))

    assert found.how.tolist() == [How.ALIGNED]
    assert found.culprit.tolist() == [culprit]


def test_without_a_measured_clock_the_shortest_member_is_the_transfer() -> None:
    _, found = _split(_tables((0, 80), (20, 81), (60, 82)), exact_clocks([0, 1, 2], None))

    assert found.how.tolist() == [How.SHORTEST]
    assert found.transfer_ns.tolist() == [22_000] * 3
    assert found.skew_ns.tolist() == [58_000, 39_000, 0]
    assert found.culprit.tolist() == [2]


@pytest.mark.parametrize("uncertainty", [None, 100])
def test_ends_far_apart_are_not_split(uncertainty: int | None) -> None:
    """Rank 0 ends before rank 1 begins: no collective that waits for all can do that."""
    matched, found = _split(_tables((0, 30), (50, 90)), exact_clocks([0, 1], uncertainty))

    assert found.how.tolist() == [How.UNKNOWN]
    assert found.why_not.tolist() == [WhyNot.ENDS]
    assert found.skew_ns.tolist() == found.transfer_ns.tolist() == [-1, -1]
    assert found.culprit.tolist() == [-1]
    assert why_not_split(matched, found, np.array([0])).startswith(NOT_SPLIT)


def test_a_clock_that_cannot_be_aligned_splits_nothing() -> None:
    clocks = {0: Clock(0, 0, uncertainty_ns=0, method="base_time"), 1: Clock(1, 0)}

    _, found = _split(_tables((0, 80), (60, 80)), clocks)

    assert found.why_not.tolist() == [WhyNot.CLOCKS]


def test_an_incomplete_operation_splits_nothing_and_accuses_nobody() -> None:
    tables = _tables((0, 80), (60, 80), (70, 80))
    del tables[2]

    matched, found = _split(tables, world_size=3)

    assert found.why_not.tolist() == [WhyNot.INCOMPLETE]
    assert found.culprit.tolist() == [-1]
    assert why_not_split(matched, found, np.array([0])).endswith("not every member of the group has a trace")


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "gather", "scatter", ""])
def test_kinds_that_do_not_wait_for_all_are_not_split(kind: str) -> None:
    _, found = _split(_tables((0, 80), (60, 80), kind=kind))

    assert found.why_not.tolist() == [WhyNot.DOES_NOT_WAIT]


def test_offsets_of_the_clocks_count() -> None:
    """Rank 1's clock is 100 µs ahead, so it arrived at 60 and not at 160."""
    clocks = exact_clocks([0])
    clocks[1] = Clock(1, -100_000, -100_000, uncertainty_ns=0, method="matched_ends")

    _, found = _split(_tables((0, 80), (160, 180)), clocks)

    assert found.skew_ns.tolist() == [60_000, 0]


def test_a_send_waits_for_the_receive_and_the_other_way_round() -> None:
    early_send = {0: table(send(0, 80, 1)), 1: table(receive(60, 80, 0))}
    early_receive = {0: table(send(60, 80, 1)), 1: table(receive(0, 80, 0))}

    assert _split(early_send)[1].skew_ns.tolist() == [60_000, 0]
    assert _split(early_send)[1].culprit.tolist() == [1]
    assert _split(early_receive)[1].skew_ns.tolist() == [0, 60_000]
    assert _split(early_receive)[1].culprit.tolist() == [0]


def test_a_buffered_send_waited_for_nobody() -> None:
    _, found = _split({0: table(send(0, 20, 1)), 1: table(receive(60, 80, 0))})

    assert found.skew_ns.tolist() == [0, 0]
    assert found.transfer_ns.tolist() == [20_000, 20_000]
    assert found.culprit.tolist() == [-1]


def test_what_was_withdrawn_is_not_known() -> None:
    matched, found = _split(_tables((0, 80), (60, 80)))

    withdraw(found, matched, np.array([0]))

    assert found.how.tolist() == [How.UNKNOWN]
    assert found.skew_ns.tolist() == [-1, -1]
    assert found.culprit.tolist() == [-1]
    assert "profiler" in why_not_split(matched, found, np.array([0]))


def test_nothing_splits_into_nothing() -> None:
    _, found = _split({0: table(), 1: table()})

    assert len(found.how) == len(found.skew_ns) == 0
