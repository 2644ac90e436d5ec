"""Speeds of ranks: told where they did the same work, refused where nothing shows that they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.digest.rank_speeds import RankSpeed, rank_speeds
from longpole.digest.steady import real_units
from longpole.errors import InputError
from longpole.settings import Settings
from tests.build import Script, measure
from tests.scaling_runs import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.digest.rank_digest import RankDigest


def digests(*, extra: dict[int, float] | None = None, shapes: Sequence[str] = (), steps: int = 6) -> list[RankDigest]:
    """Three ranks whose kernel takes 600 µs, or that much more; `shapes` are those of each rank's operator."""
    scripts = Job(ranks=3, compute=600, extra=extra or {}, steps=steps).scripts()
    for script, shape in zip(scripts, shapes, strict=False):
        for number in range(steps):
            begin = number * Job(ranks=3, compute=600, extra=extra or {}).period()
            script.op("aten::mm", begin + 1, begin + 9, shapes=shape)
    return [measure(script) for script in scripts]


def set_items(run: list[RankDigest], items: Sequence[int]) -> list[RankDigest]:
    for digest, count in zip(run, items, strict=True):
        for unit in real_units(digest.rows[0].units):
            unit.items = count
    return run


def test_a_rank_that_takes_longer_for_the_same_work_is_as_much_slower() -> None:
    shapes = ["[[64, 64], [64, 64]]"] * 3

    found = rank_speeds(digests(extra={1: 400}, shapes=shapes), Settings())

    assert [rank.speed for rank in found.ranks] == [1.0, pytest.approx(0.6), 1.0]
    assert [rank.rank for rank in found.ranks] == [0, 1, 2]
    assert found.basis == "input sizes"
    assert found.units == 6


def test_without_shapes_equal_numbers_of_kernels_stand_for_equal_work() -> None:
    found = rank_speeds(digests(extra={2: 200}), Settings())

    assert [rank.speed for rank in found.ranks] == [1.0, 1.0, pytest.approx(0.75)]
    assert found.basis == "kernel counts"


def test_more_work_is_not_taken_for_a_slow_rank() -> None:
    """The longer rank had inputs twice as large: its time tells nothing of its speed."""
    shapes = ["[[64, 64], [64, 64]]", "[[128, 64], [128, 64]]", "[[64, 64], [64, 64]]"]

    with pytest.raises(InputError, match=r"inputs of rank 1 are 2\.00 times as large as those of rank 0"):
        rank_speeds(digests(extra={1: 600}, shapes=shapes), Settings())


def test_more_kernels_are_not_taken_for_a_slow_rank() -> None:
    scripts = Job(ranks=3, compute=600, steps=4).scripts()
    for number in range(4):
        scripts[1].kernel(number * 610 + 100, number * 610 + 120, scripts[1].launch(number * 610, number * 610 + 2))

    with pytest.raises(InputError, match=r"rank 1 runs 2\.00 times as many kernels as rank 0"):
        rank_speeds([measure(script) for script in scripts], Settings())


def test_items_that_the_program_counts_make_unequal_work_comparable() -> None:
    """Rank 1 takes 1.5 times as long for 1.5 times as much: it is as fast."""
    run = set_items(digests(extra={1: 300, 2: 600}), [100, 150, 100])

    found = rank_speeds(run, Settings())

    assert [rank.speed for rank in found.ranks] == [1.0, 1.0, pytest.approx(0.5)]
    assert found.basis == "items"


def test_one_odd_unit_makes_a_slow_rank_no_faster() -> None:
    run = digests(extra={1: 400}, steps=8)
    real_units(run[1].rows[0].units)[3].ledger.device.compute_ns = 100_000

    assert [rank.speed for rank in rank_speeds(run, Settings()).ranks] == [1.0, pytest.approx(0.6), 1.0]


def test_what_the_units_do_not_agree_on_counts_as_equal() -> None:
    assert RankSpeed(rank=0, measured=0.97, low=0.9, high=1.04).speed == 1.0
    assert RankSpeed(rank=0, measured=0.97, low=0.95, high=0.98).speed == 0.97


def test_one_rank_alone_has_no_speed() -> None:
    with pytest.raises(InputError, match="at least two ranks, found 1"):
        rank_speeds(digests()[:1], Settings())


def test_ranks_without_a_common_unit_have_none() -> None:
    first, second = Script(rank=0, world_size=2, base_ns=0), Script(rank=1, world_size=2, base_ns=0)
    first.step(0, 0, 100)
    second.step(7, 0, 100)
    for script in (first, second):
        script.kernel(10, 60, script.launch(0, 5))

    with pytest.raises(InputError, match="no unit of work was recorded in full on all 2 ranks"):
        rank_speeds([measure(first), measure(second)], Settings())
