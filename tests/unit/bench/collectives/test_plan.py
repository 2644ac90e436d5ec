"""What is measured, under which settings, and in which order."""

from __future__ import annotations

import pytest

from longpole.bench.collectives.plan import Plan, parse_buckets, parse_settings, parse_sizes
from longpole.errors import UsageError


def test_every_setting_runs_once_in_every_round() -> None:
    plan = Plan(sizes=(1024,), variables=parse_settings(["NCCL_ALGO=Ring,Tree"]), rounds=4)

    schedule = plan.schedule()

    assert sorted(schedule) == [(number, place) for number in range(4) for place in range(3)]
    assert [number for number, _ in schedule] == sorted(number for number, _ in schedule)
    assert len({tuple(place for number, place in schedule if number == one) for one in range(4)}) > 1


def test_the_order_is_drawn_from_the_seed_and_nothing_else() -> None:
    first, same, other = (Plan(sizes=parse_sizes("1KiB..1MiB"), seed=seed) for seed in (1, 1, 2))

    assert first.order(0, 0) == same.order(0, 0) != other.order(0, 0)
    assert first.order(0, 0) != first.order(0, 1)
    assert set(first.order(0, 0)) == set(first.cells())


def test_a_bucket_as_large_as_the_buffer_is_the_whole_buffer() -> None:
    plan = Plan(kinds=("all_reduce",), sizes=(1 << 20, 4 << 20), buckets=parse_buckets("1MiB"))

    assert [(cell.size_bytes, cell.bucket_bytes) for cell in plan.cells()] == [
        (1 << 20, None),
        (4 << 20, None),
        (4 << 20, 1 << 20),
    ]


def test_the_first_setting_is_always_the_default() -> None:
    assert parse_settings(["NCCL_PROTO=LL,Simple"])[0] == {}
    assert Plan(sizes=(8,), variables=parse_settings(["NCCL_PROTO=LL"])).settings()[0].name == "default"


@pytest.mark.parametrize("text", ["", "x", "1KiB..", "4KiB..1KiB", "1KiB..1MiBx1", "0B", "1B..1GBx1000x2"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--sizes"):
        parse_sizes(text)


def test_a_range_of_too_many_sizes_is_refused_before_it_is_made() -> None:
    with pytest.raises(UsageError, match="at most 64"):
        parse_sizes(",".join(f"{size}B" for size in range(1, 99)))


@pytest.mark.parametrize(
    "texts", [["NCCL_ALGO"], ["NCCL_ALGO="], ["=Ring"], ["nccl_algo=Ring"], ["NCCL_ALGO=Ring", "NCCL_ALGO=Tree"]]
)
def test_what_is_no_setting_is_refused(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--set"):
        parse_settings(texts)


@pytest.mark.parametrize("text", ["LD_PRELOAD=/x.so", "HF_TOKEN=abc", "NCCL_AUTH_TOKEN=abc", "PATH=/x"])
def test_only_variables_that_change_performance_may_be_set(text: str) -> None:
    with pytest.raises(UsageError, match="only variables that change performance"):
        parse_settings([text])


def test_too_many_combinations_are_refused() -> None:
    values = ",".join(str(number) for number in range(9))

    with pytest.raises(UsageError, match="at most 64"):
        parse_settings([f"NCCL_A={values}", f"NCCL_B={values}"])


@pytest.mark.parametrize("text", ["", "x", "0B", "1MiB,"])
def test_what_is_no_bucket_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--bucket"):
        parse_buckets(text)
