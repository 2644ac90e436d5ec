"""Sums and means of ledgers (REPORT-JSON: leaves are rounded, all sums derived from them)."""

from __future__ import annotations

import pytest

from longpole.analyses.sums import add_ledgers, empty_ledger, mean_ledger, round_shares
from longpole.errors import InvariantError
from longpole.records.ledger import Ledger, Unknown


def _ledger(**parts: int) -> Ledger:
    """Build a ledger whose idle reasons (with a double underscore for the dot) or busy `compute` take some ns."""
    ledger = empty_ledger()
    for name, time_ns in parts.items():
        ledger.wall_ns += time_ns
        if name == "compute":
            ledger.objects["compute"].exposed_ns += time_ns
            ledger.objects["compute"].service_ns = time_ns
            ledger.device.busy_ns += time_ns
            ledger.device.compute_ns += time_ns
        else:
            reason = name.replace("__", ".")
            ledger.idle_ns[reason] += time_ns
            ledger.device.idle_ns += time_ns
            ledger.objects["host" if reason.startswith("host") else "unknown"].exposed_ns += time_ns
    ledger.check()
    return ledger


def test_a_sum_adds_every_part() -> None:
    total = add_ledgers([_ledger(compute=5, host__gc=2), _ledger(compute=7, unlinked=1)])

    assert total == _ledger(compute=12, host__gc=2, unlinked=1)


def test_a_sum_does_not_change_its_parts() -> None:
    first = _ledger(compute=5)

    add_ledgers([first, _ledger(compute=7)])

    assert first == _ledger(compute=5)


def test_the_sum_and_the_mean_of_nothing_are_empty() -> None:
    assert add_ledgers([]) == empty_ledger()
    assert mean_ledger([]) == empty_ledger()


def test_a_service_that_one_part_does_not_know_is_not_known_in_the_sum() -> None:
    unknown = Unknown("the loader's worker processes are not in the trace", [])
    blind = _ledger(compute=5)
    blind.objects["input"].service_ns = unknown

    for ledgers in ([blind, _ledger(compute=5)], [_ledger(compute=5), blind]):
        assert add_ledgers(ledgers).objects["input"].service_ns == unknown
        assert mean_ledger(ledgers).objects["input"].service_ns == unknown


def test_the_leaves_of_a_mean_add_up_although_each_is_rounded() -> None:
    """Three parts of half a nanosecond are one and a half, rounded up to two."""
    mean = mean_ledger([_ledger(compute=1, host__gc=1, unlinked=1), _ledger()])

    mean.check()
    assert mean.wall_ns == 2


def test_a_ledger_that_does_not_add_up_is_our_own_fault() -> None:
    ledger = _ledger(compute=5)
    ledger.wall_ns = 6

    with pytest.raises(InvariantError, match="objects add up to 5, the wall is 6"):
        ledger.check()


def test_more_exposed_than_served_is_our_own_fault() -> None:
    ledger = _ledger(compute=5)
    ledger.objects["compute"].service_ns = 4

    with pytest.raises(InvariantError, match="compute exceeds its service"):
        ledger.check()


def test_the_largest_remainders_are_rounded_up() -> None:
    assert round_shares([5, 3, 4], 4) == [1, 1, 1]
    assert round_shares([7, 1, 0], 4) == [2, 0, 0]
    assert round_shares([], 4) == []
