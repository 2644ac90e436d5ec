"""How ranks' clocks are brought together, and how far that is trusted."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.ranks.clocks import Clock, RankTimes, estimate_clocks
from longpole.ranks.matching import match
from longpole.records.instances import Group, Instances
from longpole.settings import Settings
from tests.collective_rows import UNITS, Op, moved, table, times_of, world

MS = 1_000_000
NOISE_US = (0.4, -0.7, 0.2, 0.9, -0.3, 0.5, -0.8, 0.1, 0.6, -0.5)


def _rank(shift: int, n: int = 24, *, kind: str = "all_reduce", groups: list[Group] | None = None) -> Instances:
    """A rank whose n collectives end at 100, 200, … µs, give or take a microsecond."""
    ends = [100 * (i + 1) + NOISE_US[(i + shift) % len(NOISE_US)] for i in range(n)]
    ops = (Op(end - 20 - shift, end, kind, sequence=i) for i, end in enumerate(ends))
    return table(*ops, groups=groups if groups is not None else world(2))


def _estimate(
    tables: dict[int, Instances], times: dict[int, RankTimes], settings: Settings | None = None
) -> dict[int, Clock]:
    matched, _ = match(tables, unit_names=dict.fromkeys(tables, UNITS))
    return estimate_clocks(matched, tables, times, settings or Settings())


def _apart_ns(clocks: dict[int, Clock], tables: dict[int, Instances], truth: Instances) -> int:
    """How far rank 1's ends lie from where they truly are, at most, in ns."""
    found = clocks[1].to_run_ns(tables[1].end_ns) - clocks[0].to_run_ns(np.zeros(1, np.int64))
    return int(np.abs(found - truth.end_ns).max())


# --- base times ---------------------------------------------------------------------------------------------------


def test_base_times_stand_where_ends_agree_with_them() -> None:
    tables = {0: _rank(0), 1: _rank(3)}

    clocks = _estimate(tables, times_of(tables))

    assert [clock.method for clock in clocks.values()] == ["base_time", "base_time"]
    assert clocks[1].correction_ns == 0
    assert 0 < (clocks[1].uncertainty_ns or 0) < 10_000


def test_base_times_stand_between_ranks_of_one_host_and_ends_say_how_good_they_are() -> None:
    """The ends are 40 µs apart, always: two devices whose times were converted differently."""
    tables = {0: _rank(0), 1: moved(_rank(3), 40_000)}

    clocks = _estimate(tables, times_of(tables, hosts={0: "a", 1: "a"}))

    assert clocks[1].method == "base_time"
    assert clocks[1].correction_ns == 0
    assert (clocks[1].uncertainty_ns or 0) >= 39_000


def test_ends_correct_base_times_between_hosts() -> None:
    truth = _rank(3)
    tables = {0: _rank(0), 1: moved(truth, 40_000)}

    clocks = _estimate(tables, times_of(tables, hosts={0: "a", 1: "b"}))

    assert clocks[1].method == "matched_ends"
    assert _apart_ns(clocks, tables, truth) <= (clocks[1].uncertainty_ns or 0)
    assert abs(clocks[1].correction_ns + 40_000) < 2_000


def test_one_common_end_confirms_base_times_and_is_no_clock_of_its_own() -> None:
    tables = {0: _rank(0, 1), 1: _rank(3, 1)}

    with_base, without = _estimate(tables, times_of(tables)), _estimate(tables, times_of(tables, base_ns=None))

    assert with_base[1].method == "base_time"
    assert with_base[1].uncertainty_ns is not None
    assert [clock.method for clock in without.values()] == ["none", "none"]


def test_members_end_together_although_others_have_no_trace() -> None:
    whole = {0: _rank(0, groups=world(16)), 1: moved(_rank(3, groups=world(16)), 40_000)}

    clocks = _estimate(whole, times_of(whole))

    assert clocks[1].method == "matched_ends"
    assert abs(clocks[1].correction_ns + 40_000) < 2_000


def test_base_times_that_nothing_confirms_have_no_uncertainty() -> None:
    tables = {0: _rank(0, groups=[Group("0", "", [0], 1)]), 1: _rank(3, groups=[Group("1", "", [1], 1)])}

    clocks = _estimate(tables, times_of(tables))

    assert clocks[1].method == "base_time"
    assert clocks[1].uncertainty_ns is None


# --- no base times ------------------------------------------------------------------------------------------------


def test_ends_alone_align_clocks() -> None:
    truth = _rank(3)
    tables = {0: _rank(0), 1: moved(truth, -3_600_000 * MS)}

    clocks = _estimate(tables, times_of(tables, base_ns=None))

    assert clocks[1].method == "matched_ends"
    assert _apart_ns(clocks, tables, truth) <= (clocks[1].uncertainty_ns or 0)


def test_clocks_that_share_no_collective_cannot_be_aligned() -> None:
    tables = {0: _rank(0, groups=[Group("0", "", [0], 1)]), 1: _rank(3, groups=[Group("1", "", [1], 1)])}

    clocks = _estimate(tables, times_of(tables, base_ns=None))

    assert [clock.method for clock in clocks.values()] == ["none", "none"]
    assert [clock.at(int(tables[rank].start_ns[0])) for rank, clock in clocks.items()] == [0, 0]


def test_ranks_are_aligned_through_others() -> None:
    """Ranks 0 and 3 share no group: 0-1 and 2-3 are one kind of groups, 0-2 and 1-3 the other."""
    low, high = Group("1", "", [0, 1], 2), Group("1", "", [2, 3], 2)
    even, odd = Group("2", "", [0, 2], 2), Group("2", "", [1, 3], 2)
    tables = {}
    for rank in range(4):
        groups = [low if rank < 2 else high, odd if rank % 2 else even]
        ops = [Op(100 * i - 20, 100 * i + NOISE_US[i % 10] / 10, group=i % 2, sequence=i) for i in range(1, 25)]
        tables[rank] = moved(table(*ops, groups=groups), rank * 7 * MS)

    clocks = _estimate(tables, times_of(tables, base_ns=None))

    assert [clock.method for clock in clocks.values()] == ["matched_ends"] * 4
    for rank in range(4):
        assert abs(clocks[rank].at(rank * 7 * MS) - clocks[0].at(0)) <= (clocks[rank].uncertainty_ns or 0) + 1


# --- drift --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drift", [80e-6, -150e-6])
def test_a_clock_that_runs_at_another_speed(drift: float) -> None:
    """Over 100 ms the clocks part by 8 and 15 µs."""
    n = 1000
    truth = _rank(3, n)
    tables = {0: _rank(0, n), 1: moved(truth, 2 * MS, drift)}

    clocks = _estimate(tables, times_of(tables, hosts={0: "a", 1: "b"}))

    assert clocks[1].drift == pytest.approx(-drift, rel=0.1)
    assert _apart_ns(clocks, tables, truth) <= (clocks[1].uncertainty_ns or 0)


def test_noise_is_no_drift() -> None:
    tables = {0: _rank(0), 1: moved(_rank(3), 2 * MS)}

    assert _estimate(tables, times_of(tables))[1].drift == 0.0


# --- what is no evidence ------------------------------------------------------------------------------------------


def test_ends_that_scatter_say_nothing() -> None:
    scattered = [Op(1e5 * i, 1e5 * i + 5000 * (1 + i % 7), sequence=i) for i in range(24)]
    tables = {0: table(*scattered, groups=world(2)), 1: table(*scattered[::-1], groups=world(2))}
    tables[1] = table(
        *(Op(1e5 * i, 1e5 * i + 5000 * (1 + (i * 3) % 5), sequence=i) for i in range(24)), groups=world(2)
    )

    clocks = _estimate(tables, times_of(tables))

    assert clocks[1].method == "base_time"
    assert clocks[1].uncertainty_ns is None


def test_sends_and_receives_say_how_good_base_times_are_and_never_set_a_clock() -> None:
    """The stages of a bare pipeline share nothing else; a buffered send ends on its own, by any distance."""
    tables = {0: _rank(0, kind="send_recv"), 1: moved(_rank(3, kind="send_recv"), 40_000)}

    clock = _estimate(tables, times_of(tables))[1]

    assert (clock.method, clock.correction_ns) == ("base_time", 0)
    assert 40_000 <= (clock.uncertainty_ns or 0) < 80_000
    assert _estimate(tables, times_of(tables, base_ns=None))[1].method == "none"


def test_what_waits_for_all_measures_before_sends_and_receives_do() -> None:
    def mixed(shift: int) -> Instances:
        ends = [100 * (i + 1) + NOISE_US[(i + shift) % len(NOISE_US)] for i in range(24)]
        late = 40 if shift else 0
        pairs = (Op(end - 20 + late, end + late, "send_recv", sequence=i) for i, end in enumerate(ends))
        return table(
            *pairs, *(Op(end + 40, end + 60, "all_reduce", sequence=i) for i, end in enumerate(ends)), groups=world(2)
        )

    tables = {0: mixed(0), 1: mixed(3)}

    assert 0 < (_estimate(tables, times_of(tables))[1].uncertainty_ns or 0) < 10_000


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "gather", "scatter"])
def test_kinds_that_do_not_wait_for_all_say_nothing(kind: str) -> None:
    tables = {0: _rank(0, kind=kind), 1: moved(_rank(3, kind=kind), 40_000)}

    assert _estimate(tables, times_of(tables))[1].correction_ns == 0
    assert _estimate(tables, times_of(tables))[1].uncertainty_ns is None


def test_a_backend_on_the_host_is_never_asked() -> None:
    def gloo(shift: float) -> Instances:
        return table(*(Op(100 * i, 100 * i + 50 + shift, group=-1, on_device=False) for i in range(24)))

    tables = {0: gloo(0), 1: moved(gloo(1), 40_000)}

    between_hosts = _estimate(tables, times_of(tables))
    on_one = _estimate(tables, times_of(tables, hosts={0: "a", 1: "a"}))

    assert between_hosts[1].uncertainty_ns is None
    assert on_one[1].uncertainty_ns == 1000


def test_exchanges_alone_leave_more_doubt() -> None:
    strict = {0: _rank(0), 1: _rank(3)}
    exchange = {0: _rank(0, kind="all_to_all"), 1: _rank(3, kind="all_to_all")}

    doubt = [_estimate(tables, times_of(tables))[1].uncertainty_ns or 0 for tables in (strict, exchange)]

    assert doubt[1] - doubt[0] == Settings().clock_exchange_ns


# --- laws ---------------------------------------------------------------------------------------------------------


def test_shifting_all_clocks_changes_nothing() -> None:
    tables = {0: _rank(0), 1: moved(_rank(3), 40_000)}
    later = {rank: moved(mine, 5 * MS) for rank, mine in tables.items()}

    before, after = _estimate(tables, times_of(tables)), _estimate(later, times_of(later))

    for rank in tables:
        assert (
            before[rank].to_run_ns(tables[rank].end_ns).tolist() == after[rank].to_run_ns(later[rank].end_ns).tolist()
        )
        assert before[rank].uncertainty_ns == after[rank].uncertainty_ns


def test_one_time_and_many_become_the_same() -> None:
    clock = Clock(1, 5_000, drift=1e-4, reference_ns=7_000_000, uncertainty_ns=1, method="matched_ends")
    times = np.array([0, 123_456, 9_999_999_999], np.int64)

    assert clock.to_run_ns(times).tolist() == [clock.at(int(time)) for time in times]
