"""The noise floor, on noise that was put there."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.bench.calibrate import PAIR_COUNTS, calibrate, smallest_effect
from longpole.errors import InputError
from longpole.records.run_record import SCHEMA, RecordProcess, RecordUnit, RunRecord
from longpole.stats.intervals import t_quantile

UNITS = 5


def sides(pairs: int, noise: float, seed: int = 1, wild: float = 0.0) -> tuple[RunRecord, RunRecord]:
    """Return two records of one command: pairs of processes around 100 ms, of which a share meets a slow CPU."""
    rng = np.random.default_rng(seed)
    made = []
    for side in range(2):
        of_process = np.exp(rng.normal(0, noise / 2**0.5, pairs)) * np.where(rng.random(pairs) < wild, 1.8, 1.0)
        units = [
            RecordUnit(period_ns=round(1e8 * of_process[place]), process=place)
            for place in range(pairs)
            for _ in range(UNITS)
        ]
        processes = [
            RecordProcess(place, place=2 * place + side, pair=place, peak_bytes=1 << 30) for place in range(pairs)
        ]
        made.append(RunRecord(schema=SCHEMA, units=units, processes=processes))
    return made[0], made[1]


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2])
def test_planted_noise_is_found(noise: float) -> None:
    """200 pairs: their standard deviation is known within 10 % in 19 of 20 cases."""
    [time, memory] = calibrate(*sides(200, noise), 0.03).figures

    assert time.pair_spread_share == pytest.approx(noise, rel=0.15)
    assert time.floor_share == pytest.approx(np.expm1(t_quantile(9) * time.pair_spread_share / 10**0.5))
    assert abs(time.difference_share) < 3 * noise / 200**0.5
    assert memory.pair_spread_share == 0.0


def test_a_few_wild_processes_are_not_the_noise_floor() -> None:
    """The gate bears them, so a floor that they set would hide what it can see."""
    plain, wild = (calibrate(*sides(100, 0.02, wild=share), 0.03).figures[0] for share in (0.0, 0.08))

    assert wild.pair_spread_share < 2.5 * plain.pair_spread_share


def test_more_pairs_see_smaller_changes_and_none_below_the_threshold() -> None:
    found = calibrate(*sides(40, 0.05), 0.03).figures[0]

    assert [one.pairs for one in found.smallest] == list(PAIR_COUNTS)
    shares = [one.share for one in found.smallest]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == smallest_effect(found.pair_spread_share, PAIR_COUNTS[0], 0.03)
    assert min(shares) >= 0.03


def test_a_machine_that_was_disturbed_says_so_beside_its_floor() -> None:
    a, b = sides(10, 0.02)
    for entry in a.processes:
        entry.flags = ["stolen-time"]

    found = calibrate(a, b, 0.03)

    assert found.flags == {"stolen-time": 10}
    assert any("disturbed" in warning and "stolen-time" in warning for warning in found.warnings)


def test_four_pairs_have_no_floor() -> None:
    with pytest.raises(InputError, match="at least 5 pairs, found 4"):
        calibrate(*sides(4, 0.02), 0.03)


def test_a_process_that_failed_leaves_no_floor() -> None:
    a, b = sides(10, 0.02)
    b.failure = "process 3: exit code 1"

    with pytest.raises(InputError, match="process 3: exit code 1"):
        calibrate(a, b, 0.03)
