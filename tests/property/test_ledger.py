"""Laws of units, ledger, idle reasons and completions on drawn records of any time scale (DESIGN 3.1 to 3.4)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from longpole.analyses.sums import add_ledgers, mean_ledger, round_shares
from longpole.settings import Settings
from longpole.timeline.columns import NONE_NS, Kind
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS, charged_to
from tests.build import measure
from tests.examples import examples
from tests.strategies import SMALL_SETTINGS, Shape, device_scripts, scales, scripts

if TYPE_CHECKING:
    from longpole.digest.rank_digest import RankDigest, RowDigest, UnitDigest
    from longpole.records.ledger import Ledger
    from tests.build import DeviceSpan, Script

UNTIED = Shape(with_ties=False)
LAW = examples(30)  # each example measures a record at least once
ABSOLUTE = ("start_ns", "end_ns", "completion_ns")


def _without_places(value: Any) -> Any:
    """Leave out where things stand in a file, which says nothing about how long they took."""
    if isinstance(value, dict):
        return {key: _without_places(item) for key, item in value.items() if key not in ("event", "where", "example")}
    return [_without_places(item) for item in value] if isinstance(value, list) else value


def _relative(value: Any, base_ns: int) -> Any:
    """Count absolute times from a base."""
    if isinstance(value, dict):
        return {
            key: item - base_ns if key in ABSOLUTE else _relative(item, base_ns)
            for key, item in value.items()
            if key != "base_ns"
        }
    return [_relative(item, base_ns) for item in value] if isinstance(value, list) else value


def _figures(measured: RankDigest) -> Any:
    """The digest with times since its own start; the columns of its collectives are bytes, and stand beside it."""
    own = measured.instances
    columns = {name: own.column(name).astype(np.int64) for name in own.columns if len(own)}
    for name in ("start_ns", "end_ns", "issue_ns"):
        if name in columns:
            columns[name] = np.where(columns[name] == NONE_NS, NONE_NS, columns[name] - measured.start_ns)
    plain = msgspec.to_builtins(msgspec.structs.replace(measured, instances=type(own).empty()))
    del plain["instances"]
    return _relative(plain, measured.start_ns), {name: column.tolist() for name, column in columns.items()}


def _walls(row: RowDigest) -> list[tuple[int, int]]:
    return [(unit.start_ns, unit.start_ns + unit.ledger.wall_ns) for unit in row.units]


def _whole(row: RowDigest) -> Ledger:
    return add_ledgers(unit.ledger for unit in row.units)


def _check(unit: UnitDigest) -> None:
    ledger, device = unit.ledger, unit.ledger.device
    idle_of = {name: sum(ledger.idle_ns[r] for r in IDLE_REASONS if charged_to(r) == name) for name in OBJECTS}
    assert sum(time.exposed_ns for time in ledger.objects.values()) == ledger.wall_ns
    assert device.busy_ns + device.idle_ns == ledger.wall_ns
    assert sum(ledger.idle_ns.values()) == device.idle_ns
    assert device.compute_ns + device.collective_exposed_ns + device.copy_exposed_ns == device.busy_ns
    assert all(time_ns >= 0 for time_ns in ledger.idle_ns.values())
    assert sum(time.wall_ns for time in unit.stages.values()) == ledger.wall_ns
    assert sum(time.busy_ns for time in unit.stages.values()) == device.busy_ns
    assert all(0 <= time.busy_ns <= time.wall_ns for time in unit.stages.values())
    for name, time in ledger.objects.items():
        assert time.exposed_ns >= idle_of[name]
        if isinstance(time.service_ns, int) and isinstance(time.hidden_ns, int):
            assert 0 <= time.hidden_ns <= time.service_ns - time.exposed_ns


@LAW
@given(st.one_of(scripts(), scripts(Shape(with_device=False))), scales())
def test_parts_add_up_to_the_whole(script: Script, scale: int) -> None:
    """Objects, busy and idle, idle reasons and stages each add up; exposed and hidden fit into service."""
    measured = measure(script.scaled(scale))

    for row in measured.rows:
        for unit in row.units:
            _check(unit)


@LAW
@given(scripts(), scales())
def test_head_units_and_tail_tile_the_record(script: Script, scale: int) -> None:
    measured = measure(script.scaled(scale))

    for row in measured.rows:
        walls = _walls(row)
        assert walls[0][0] == measured.start_ns
        assert walls[-1][1] == measured.end_ns
        assert all(before[1] == after[0] for before, after in pairwise(walls))


@LAW
@given(device_scripts(), scales())
def test_completions_never_go_back(script: Script, scale: int) -> None:
    """A unit is complete no earlier than the one before it, and no earlier than its host end."""
    for row in measure(script.scaled(scale)).rows:
        inner = [unit for unit in row.units if unit.kind not in ("head", "tail")]
        assert all(unit.completion_ns >= unit.start_ns + unit.ledger.wall_ns for unit in inner)
        assert all(before.completion_ns <= after.completion_ns for before, after in pairwise(inner))


@LAW
@given(device_scripts(), st.integers(0, 60), st.integers(0, 60))
def test_a_synchronisation_row_changes_nothing(script: Script, start: int, length: int) -> None:
    plain = measure(script)

    script.sync_row(start / 1000, (start + length) / 1000)
    with_row = measure(script)

    with_row.n_events = plain.n_events
    assert with_row == plain


@LAW
@given(
    st.one_of(scripts(), scripts(Shape(with_device=False))), st.sampled_from((-(10**9), -7, 1, 1_700_000_000 * 10**9))
)
def test_shifting_all_clocks_changes_nothing_but_times(script: Script, by_ns: int) -> None:
    script.base_ns = 1_700_000_000_000_000_000

    shifted = measure(script.shifted(by_ns), SMALL_SETTINGS)

    assert _figures(shifted) == _figures(measure(script, SMALL_SETTINGS))


@LAW
@given(device_scripts(UNTIED), st.randoms(use_true_random=False))
def test_the_order_of_rows_in_the_file_changes_nothing(script: Script, random: Any) -> None:
    """Given that no two spans look alike, for then the file's order is all that tells them apart."""
    order = [random.random() for _ in range(100)]

    permuted = measure(script.permuted(lambda place: order[place]), SMALL_SETTINGS)

    expected = measure(script, SMALL_SETTINGS)
    assert _without_places(msgspec.to_builtins(permuted)) == _without_places(msgspec.to_builtins(expected))


def _cut(script: Script, span: DeviceSpan, at_ns: int) -> Script:
    others = [other for other in script.device if other is not span]
    halves = [replace(span, end_ns=at_ns), replace(span, start_ns=at_ns)]
    return replace(script, device=[*others, *halves])


@LAW
@given(device_scripts(), st.data())
def test_cutting_a_kernel_into_two_touching_ones_changes_no_time(script: Script, data: st.DataObject) -> None:
    """The stage may differ: of kernels that run at once the first one decides it, and a half starts later."""
    long = [s for s in script.device if s.kind == Kind.KERNEL and s.linked and s.end_ns - s.start_ns > 1]
    assume(long)
    span = data.draw(st.sampled_from(long))
    at_ns = data.draw(st.integers(span.start_ns + 1, span.end_ns - 1))

    halved = measure(_cut(script, span, at_ns), SMALL_SETTINGS)

    whole = measure(script, SMALL_SETTINGS)
    for row, expected in zip(halved.rows, whole.rows, strict=True):
        assert [unit.ledger for unit in row.units] == [unit.ledger for unit in expected.units]
        assert [unit.completion_ns for unit in row.units] == [unit.completion_ns for unit in expected.units]


def _copies(script: Script, count: int) -> Script:
    first_ns, last_ns = script.extent_ns()
    result = script
    for number in range(1, count):
        result = result.then(script.shifted(number * (last_ns - first_ns)))
    return result


@LAW
@given(device_scripts())
def test_a_record_written_down_several_times_costs_as_many_times_as_much(script: Script) -> None:
    """What runs on the device counts K times; reasons too, but for the seams, of which there are K - 1."""
    first_ns, last_ns = script.extent_ns()
    assume(last_ns - first_ns > 10)
    # The usual gap of a device depends on how many there are, so it is fixed here.
    fixed = replace(SMALL_SETTINGS, p95_min_count=10**6)

    measured = [measure(_copies(script, count), fixed) for count in (1, 2, 3, 4)]

    for place in range(len(measured[0].rows)):
        once, twice, thrice, four = (_whole(digest.rows[place]) for digest in measured)
        for field in msgspec.structs.fields(type(once.device)):
            assert getattr(thrice.device, field.name) == 3 * getattr(once.device, field.name)
        assert thrice.wall_ns == 3 * once.wall_ns
        for reason in IDLE_REASONS:
            more = thrice.idle_ns[reason] - twice.idle_ns[reason]
            assert four.idle_ns[reason] - thrice.idle_ns[reason] == more
        for name in OBJECTS:
            more = thrice.objects[name].exposed_ns - twice.objects[name].exposed_ns
            assert four.objects[name].exposed_ns - thrice.objects[name].exposed_ns == more


@LAW
@given(device_scripts(), scales())
def test_the_laws_hold_in_the_mean(script: Script, scale: int) -> None:
    """The mean over units adds up as each of them does, and lies within a nanosecond of the exact mean."""
    ledgers = [unit.ledger for unit in measure(script.scaled(scale)).rows[0].units]

    mean = mean_ledger(ledgers)

    mean.check()
    assert abs(len(ledgers) * mean.wall_ns - sum(ledger.wall_ns for ledger in ledgers)) <= len(ledgers)
    for reason in IDLE_REASONS:
        exact_ns = sum(ledger.idle_ns[reason] for ledger in ledgers)
        assert abs(len(ledgers) * mean.idle_ns[reason] - exact_ns) < len(ledgers)


@LAW
@given(device_scripts(), st.integers(1, 7))
def test_the_mean_of_equal_ledgers_is_each_of_them(script: Script, count: int) -> None:
    ledger = measure(script).rows[0].units[0].ledger

    assert mean_ledger([ledger] * count) == ledger


@given(st.lists(st.integers(0, 10**18), min_size=1, max_size=30), st.integers(1, 100))
def test_rounded_shares_add_up_to_the_rounded_quotient(parts: list[int], n: int) -> None:
    """Each share is its quotient rounded up or down, and their sum is the sum's quotient, half upwards."""
    shares = round_shares(parts, n)

    assert sum(shares) == (2 * sum(parts) + n) // (2 * n)
    assert all(part // n <= share <= part // n + 1 for part, share in zip(parts, shares, strict=True))
    assert all(share == part // n for part, share in zip(parts, shares, strict=True) if part % n == 0)


@LAW
@given(device_scripts(), scales())
def test_thresholds_of_zero_keep_the_laws(script: Script, scale: int) -> None:
    """Every threshold may be set to 0 without a law falling."""
    none = Settings(
        readout_max_bytes=0,
        blocking_copy_min_ns=0,
        lost_lead_after_ns=0,
        kernel_gap_max_ns=0,
        kernel_gap_default_ns=0,
        launch_latency_max_ns=0,
        one_off_min_share=0.0,
        one_off_factor=0.0,
        one_off_min_ns=0,
        p95_min_count=0,
    )

    measured = measure(script.scaled(scale), none)

    for row in measured.rows:
        for unit in row.units:
            _check(unit)
