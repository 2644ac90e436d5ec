"""What an operation of another size would take: the first cost model that exists (DESIGN 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.digest.across import Across
from longpole.digest.transfer_costs import transfer_costs
from longpole.ranks.cost_model import Model, RecordedModels
from longpole.ranks.matching import match
from longpole.ranks.split import split
from longpole.settings import Settings
from tests.collective_rows import UNITS, Op, exact_clocks, table, world

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES = [1 << exponent for exponent in range(10, 24, 2)]
RECORD = RecordedModels({("all_reduce", 2): Model(1000.0, 0.0, 1000.0, "record")}, "", None, "record.json")


def _across(sizes: Sequence[int], recorded: RecordedModels | None) -> Across:
    """All-reduces of two ranks, of 20 µs and 100 bytes a nanosecond, that nobody waits for."""
    ops, start = [], 0.0
    for number, size in enumerate(sizes):
        ops.append(Op(start, start + 20 + size / 1e5, sequence=number, bytes=size))
        start += 1000
    tables = {rank: table(*ops, groups=world(2)) for rank in range(2)}
    clocks = exact_clocks([0, 1])
    matched, _ = match(tables, unit_names=dict.fromkeys(tables, UNITS), world_size=2)
    return Across(matched, clocks, split(matched, tables, clocks, Settings()), tables, 2, [], recorded)


@pytest.mark.parametrize(
    ("sizes", "recorded", "device", "source", "cost_ns"),
    [
        (SIZES, RECORD, "NVIDIA H200", "fit", 20_000 + 10_486),
        (SIZES[:1], RECORD, "NVIDIA H200", "record", 1000 + 1049),
        (SIZES[:1], None, "NVIDIA H200", "shipped", None),
    ],
)
def test_the_first_model_that_exists_prices(
    sizes: Sequence[int], recorded: RecordedModels | None, device: str, source: str, cost_ns: int | None
) -> None:
    costs = transfer_costs(_across(sizes, recorded), dict.fromkeys((0, 1), device), Settings())

    found_ns = costs(0, 1 << 20)

    assert found_ns is not None
    assert cost_ns is None or found_ns == pytest.approx(cost_ns, rel=0.02)
    assert [(kind, ranks, model.source) for kind, ranks, model in costs.used()] == [("all_reduce", 2, source)]


def test_without_any_model_there_is_no_price() -> None:
    costs = transfer_costs(_across(SIZES[:1], None), {0: "a", 1: "a"}, Settings())

    assert costs(0, 1 << 20) is None
    assert costs.used() == []
    assert transfer_costs(None, {}, Settings())(0, 8) is None
