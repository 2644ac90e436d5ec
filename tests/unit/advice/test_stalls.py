"""Whether something strikes in every unit or now and then, on all ranks alike or on some."""

from __future__ import annotations

import pytest

from longpole.advice.stalls import find_stalls, find_uneven, meets, ordinal, stalls_of
from longpole.timeline.intervals import Intervals
from tests.scenes import loading_job, scene_of

SCENE = scene_of(loading_job(300, 300, 300, 300))
MS = 1_000_000


def _stalls(*values_ms: float) -> tuple[list[str], bool, str]:
    found = stalls_of(SCENE, {f"u{place}": round(value * MS) for place, value in enumerate(values_ms)})
    return found.units, found.sporadic, found.rhythm


def test_what_takes_as_long_in_every_unit_is_no_stall() -> None:
    assert _stalls(5, 5, 6, 5, 4, 5) == ([], False, "")


def test_one_long_unit_is_sporadic() -> None:
    assert _stalls(1, 1, 50, 1, 1, 1) == (["u2"], True, "")


def test_equal_distances_are_a_rhythm() -> None:
    assert _stalls(1, 50, 1, 1, 1, 50, 1, 1, 1, 50) == (["u1", "u5", "u9"], True, ", every 4th")
    assert _stalls(1, 50, 1, 1, 50, 1, 1, 1, 1, 50) == (["u1", "u4", "u9"], True, "")


def test_a_stall_in_every_second_unit_is_still_sporadic() -> None:
    assert _stalls(1, 50, 1, 50, 1, 50) == (["u1", "u3", "u5"], True, ", every 2nd")


def test_what_takes_long_in_most_units_is_the_rule() -> None:
    assert not stalls_of(SCENE, dict.fromkeys("abcd", 50 * MS) | {"e": MS}).sporadic


def test_two_units_tell_nothing() -> None:
    assert not stalls_of(SCENE, {"a": 1, "b": 50 * MS}).sporadic
    assert _stalls() == ([], False, "")
    assert _stalls(0, 0, 0) == ([], False, "")


def test_a_stall_of_one_rank_counts() -> None:
    """The longest of all ranks decides; units without a period, such as the first one, do not count."""
    scene = scene_of(loading_job(0, 0, 0, 400, 0, 0))
    view = scene.views[0]

    found = find_stalls(scene, [view], [view.activity_time("data_loader")])

    assert (found.units, found.sporadic) == (["ProfilerStep#3"], True)


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (22, "22nd")]
)
def test_ordinals(number: int, text: str) -> None:
    assert ordinal(number) == text


@pytest.mark.parametrize(
    ("per_unit_ms", "slow", "usual_ms"),
    [
        ({0: 1, 1: 50}, [1], 1),
        ({0: 50, 1: 1}, [0], 1),
        ({0: 1, 1: 1, 2: 50, 3: 40}, [2, 3], 1),
        ({0: 10, 1: 10, 2: 10, 3: 90}, [3], 10),
    ],
)
def test_ranks_that_take_much_longer_than_the_others(
    per_unit_ms: dict[int, int], slow: list[int], usual_ms: int
) -> None:
    found = find_uneven(SCENE, {place: ms * MS for place, ms in per_unit_ms.items()}, least_ns=MS)

    assert found is not None
    assert (sorted(found.places), found.usual_ns) == (slow, usual_ms * MS)


@pytest.mark.parametrize(
    ("per_unit_ms", "why"),
    [
        ({0: 50}, "one rank alone"),
        ({0: 50, 1: 50}, "alike"),
        ({0: 30, 1: 50}, "less than twice as long"),
        ({0: 0.1, 1: 0.9}, "too small a difference to matter"),
        ({0: 50, 1: 50, 2: 50, 3: 1}, "most take long: that is the usual"),
    ],
)
def test_other_differences_are_none(per_unit_ms: dict[int, float], why: str) -> None:
    del why

    assert find_uneven(SCENE, {place: round(ms * MS) for place, ms in per_unit_ms.items()}, least_ns=MS) is None


def test_sets_of_time_meet_where_they_have_time_in_common() -> None:
    assert meets(Intervals.single(0, 10), Intervals.single(9, 20))
    assert not meets(Intervals.single(0, 10), Intervals.single(10, 20))
    assert not meets(Intervals.none(), Intervals.single(0, 1))
