"""Which units of several ranks are steady, and what their common periods are (DESIGN 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.digest.steady import Steady, find_steady
from longpole.settings import Settings
from tests.build import Script, measure

if TYPE_CHECKING:
    from collections.abc import Sequence

EPOCH_NS = 1_700_000_000_000_000_000


def _rank(
    rank: int,
    steps: Sequence[tuple[float, float]] = ((0, 100), (100, 200), (200, 300), (300, 400)),
    *,
    base_us: float | None = 0,
    first: int = 0,
    lags: Sequence[float] = (0, 0, 0, 0),
) -> Script:
    """Write a rank down: its steps, and by how much its device lags behind the end of each."""
    script = Script(rank=rank, path=f"rank{rank}.json")
    script.base_ns = None if base_us is None else EPOCH_NS + round(base_us * 1000)
    for number, ((start, end), lag) in enumerate(zip(steps, lags, strict=False)):
        script.step(first + number, start, end)
        script.kernel(start + 20, end + lag, script.launch(start + 5, start + 10), stream=number)
    return script


def _steady(*scripts: Script) -> Steady:
    return find_steady([measure(script) for script in scripts], Settings())


def _codes(steady: Steady) -> dict[str, str]:
    return {finding.code: finding.severity for finding in steady.findings}


def _names(*numbers: int) -> list[str]:
    return [f"ProfilerStep#{number}" for number in numbers]


# --- periods ------------------------------------------------------------------------------------------------------


def test_a_period_lasts_from_one_completion_to_the_next() -> None:
    """Lags of 10, 30, 20 and 0 µs. The first unit has no period."""
    steady = _steady(_rank(0, lags=(10, 30, 20, 0)))

    assert steady.periods == dict(zip(_names(1, 2, 3), (120_000, 90_000, 80_000), strict=True))


def test_a_run_of_one_unit_takes_from_its_start_to_its_completion() -> None:
    steady = _steady(_rank(0, [(50, 100)], lags=(30,)))

    assert steady.periods == {"ProfilerStep#0": 80_000}


def test_units_of_one_name_have_each_their_period() -> None:
    """An engine's iterations are often all called alike."""
    script = Script()
    for number in range(4):
        script.span("step[DECODE bs=32]", 100 * number, 100 * number + 90)

    assert list(_steady(script).periods.values()) == [100_000, 100_000, 90_000]


def test_a_unit_that_adds_nothing_is_not_separable() -> None:
    """The first unit's kernel outlasts the second unit and all that it launched."""
    steady = _steady(_rank(0, lags=(250, 0, 0, 0)))

    assert steady.left_out[:2] == [("ProfilerStep#1", "not_separable", None), ("ProfilerStep#2", "not_separable", None)]
    assert steady.periods == {"ProfilerStep#3": 50_000}


def test_a_unit_of_the_run_is_complete_when_its_last_rank_is() -> None:
    steady = _steady(_rank(0, lags=(10, 30, 20, 0)), _rank(1, lags=(40, 0, 50, 0)))

    assert [steady.completion[name] for name in _names(0, 1, 2, 3)] == [140_000, 230_000, 350_000, 400_000]
    assert steady.periods == dict(zip(_names(1, 2, 3), (90_000, 120_000, 50_000), strict=True))


def test_ranks_that_count_from_other_base_times_are_brought_together() -> None:
    """Case B025: rank 1 counts from 1000 µs later, and its times are that much smaller."""
    later = _rank(1, [(start - 1000, start - 900) for start in (0, 100, 200, 300)], base_us=1000)

    steady = _steady(_rank(0), later)

    assert steady.offset_ns == {0: 0, 1: 1_000_000}
    assert steady.aligned
    assert steady.moved == []
    assert steady.periods == dict.fromkeys(_names(1, 2, 3), 100_000)


# --- clocks -------------------------------------------------------------------------------------------------------


def test_ranks_that_do_not_say_what_they_count_from_cannot_be_compared() -> None:
    """No common completion, so the first rank's own stands in."""
    steady = _steady(_rank(0, base_us=None), _rank(1, lags=(90, 90, 90, 90), base_us=None))

    assert not steady.aligned
    assert _codes(steady) == {"clock.not_aligned": "warn"}
    assert steady.periods == dict.fromkeys(_names(1, 2, 3), 100_000)


def test_one_rank_is_always_aligned_with_itself() -> None:
    assert _steady(_rank(0, base_us=None)).aligned


# --- the spread of the starts -------------------------------------------------------------------------------------


def test_leading_units_that_overlap_the_spread_of_the_starts_move_into_the_head() -> None:
    """rank 0  ├──── 0 ────┼──── 1 ────┼──── 2 ────┼──── 3 ────┤

    rank 1        ├─ 0 ────┼──── 1 ────┼── …
    rank 2               ├0┼──── 1 ────┼── …
    spread  ├────────────┤
    """
    scripts = [
        _rank(0),
        _rank(1, [(40, 100), (100, 200), (200, 300), (300, 400)]),
        _rank(2, [(85, 100), (100, 200), (200, 300), (300, 400)]),
    ]
    scripts[2].device[0].start_ns = 90_000
    assert scripts[2].device[0].call is not None
    scripts[2].device[0].call.end_ns = 91_000

    steady = _steady(*scripts)

    assert steady.moved == _names(0)
    assert steady.left_out == [("ProfilerStep#0", "profiler_start_skew", None)]
    assert _codes(steady) == {"rank.start_spread": "note"}
    assert steady.periods == dict.fromkeys(_names(1, 2, 3), 100_000)


def test_the_message_says_how_far_apart_and_which_rank_came_last() -> None:
    steady = _steady(_rank(0), _rank(1, [(40, 100), (100, 200), (200, 300), (300, 400)]), _rank(2))

    assert "40.0 µs apart (rank 1 last)" in steady.findings[0].message
    assert "takes in 1 leading unit, which" in steady.findings[0].message
    assert steady.findings[0].example.file == "rank1.json"


def test_a_spread_of_less_than_a_hundredth_of_a_unit_moves_nothing() -> None:
    """1 % of 100 µs is 1 µs."""
    steps = [(100, 200), (200, 300), (300, 400)]

    just = _steady(_rank(0), _rank(1, [(1, 100), *steps]))
    over = _steady(_rank(0), _rank(1, [(1.001, 100), *steps]))

    assert just.moved == []
    assert over.moved == _names(0)


def test_a_rank_that_starts_a_whole_unit_late_moves_two_units() -> None:
    steady = _steady(_rank(0), _rank(1, [(150, 200), (200, 300), (300, 400)], first=1))

    assert steady.moved == _names(0, 1)
    assert steady.periods == dict.fromkeys(_names(2, 3), 100_000)


def test_where_no_unit_would_remain_all_are_kept_and_cross_rank_figures_are_void() -> None:
    steady = _steady(_rank(0), _rank(1, [(350, 450), (450, 550)], first=0))

    assert steady.moved == []
    assert _codes(steady)["rank.start_spread"] == "void"
    assert "/collectives" in next(f for f in steady.findings if f.code == "rank.start_spread").voids


def test_ranks_without_a_common_clock_have_no_spread() -> None:
    steady = _steady(_rank(0, base_us=None), _rank(1, [(350, 450), (450, 550)], base_us=None))

    assert "rank.start_spread" not in _codes(steady)


# --- marked units -------------------------------------------------------------------------------------------------


def test_a_marked_unit_of_one_rank_is_left_out_of_the_runs_periods() -> None:
    """It stays in the rank's sums; the mark names the rank."""
    marked = _rank(1)
    marked.call("cudaGraphInstantiateWithFlags", 120, 150)

    steady = _steady(_rank(0), marked)

    assert steady.left_out == [("ProfilerStep#1", "compilation", 1)]
    assert set(steady.periods) == set(_names(2, 3))


def test_a_unit_that_all_ranks_mark_is_listed_once() -> None:
    scripts = [_rank(0), _rank(1)]
    for script in scripts:
        script.call("cudaGraphInstantiateWithFlags", 120, 150)

    assert _steady(*scripts).left_out == [("ProfilerStep#1", "compilation", None)]


def test_a_unit_that_misses_device_spans_is_left_out() -> None:
    script = _rank(0)
    script.launch(110, 112).correlation = 10_000

    assert _steady(script).left_out == [("ProfilerStep#1", "device_spans_missing", None)]


def test_ranks_that_recorded_other_units_are_named() -> None:
    steady = _steady(_rank(0), _rank(1, [(0, 100), (100, 200), (200, 300)]))

    assert _codes(steady) == {"rank.units_differ": "warn"}
    assert set(steady.periods) == set(_names(1, 2))
