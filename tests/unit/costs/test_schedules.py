"""Simulated pipeline schedules are what their published forms say, and never better than the passes allow."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import re
import statistics
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.costs.layout import SCHEDULES
from longpole.costs.schedule_orders import DUAL, SIMULATED, order_of
from longpole.costs.schedules import (
    BUBBLE_OF_IDEAL,
    BUBBLE_SHARE,
    IN_FLIGHT_1F1B,
    IN_FLIGHT_DUALPIPE,
    IN_FLIGHT_INTERLEAVED,
    Times,
    closed_bubble_s,
    estimate_seconds,
    simulate,
    step_seconds,
)
from longpole.errors import UsageError
from tests.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

ALIKE = Times(forward_s=1, backward_s=2, weight_s=1)
# Of the published rows: our name, chunks.
SIMULATED_ROWS = {
    "GPipe": ("gpipe", 1),
    "1F1B": ("1f1b", 1),
    "Interleaved1F1B": ("interleaved", 3),
    "ZB1P": ("zb1p", 1),
    "ZB2P": ("zb2p", 1),
    "ZBV": ("zbv", 1),
    "DualPipe": ("dualpipe", 1),
    "DualPipeV": ("dualpipev", 1),
}


def _exactly(
    forward: Fraction | int, inputs: Fraction | int, weights: Fraction | int, pair: Fraction | None = None
) -> Times:
    """Return times as fractions: floats would round thirds, and an exact form would be off by 1e-16."""
    parts: Any = [None if one is None else Fraction(one) for one in (forward, inputs + weights, weights, pair)]
    return Times(forward_s=parts[0], backward_s=parts[1], weight_s=parts[2], pair_s=parts[3])


def _published(oracles: Path) -> dict[str, dict[str, str]]:
    lines = [line for line in (oracles / "pipeline_bubbles.csv").read_text().splitlines() if not line.startswith("#")]
    return {row["schedule"]: row for row in csv.DictReader(lines)}


def _evaluate(text: str, **values: Fraction) -> Fraction:
    """Compute a formula as the table prints it: `(p-1)(F+B-2W)`, `m/p`, `(p+1)/p with 2x parameters`."""
    spelled = text.split(" ")[0]
    spelled = re.sub(r"(?<=[\d)])(?=[(A-Za-z])", "*", spelled)
    return Fraction(eval(spelled, {"__builtins__": {}}, dict(values)))


@pytest.mark.parametrize("row", SIMULATED_ROWS)
@pytest.mark.parametrize(("stages", "groups"), [(2, 2), (4, 2), (4, 5), (8, 3), (6, 4)])
def test_the_simulated_bubble_is_the_published_one_exactly(oracles: Path, row: str, stages: int, groups: int) -> None:
    """With F = I = W as the zero-bubble rows assume; DualPipeV's p counts parts of the model, two a device."""
    schedule, chunks = SIMULATED_ROWS[row]
    unit = Fraction(7, 3)
    parts = 2 if schedule in {"zbv", "dualpipev"} else 1
    times = _exactly(unit * parts, unit * parts, unit * parts)
    p = Fraction(stages * (2 if schedule == "dualpipev" else 1))

    found = simulate(schedule, stages, stages * groups, times, chunks)

    published = _evaluate(
        _published(oracles)[row]["bubble_time"],
        p=p, F=unit, B=2 * unit, W=unit, FB=3 * unit, v=Fraction(chunks), m=Fraction(stages * groups),
    )  # fmt: skip
    assert found.idle_s == (published,) * stages


@pytest.mark.parametrize("row", ["GPipe", "1F1B", "Interleaved1F1B", "ZB1P"])
def test_the_simulated_bubble_over_the_work_is_the_published_share(oracles: Path, row: str) -> None:
    schedule, chunks = SIMULATED_ROWS[row]
    p, m = 4, 12
    work_s = m * (ALIKE.forward_s + ALIKE.backward_s)
    times = _exactly(1, 1, 1)

    found = simulate(schedule, p, m, times, chunks)

    values = {"p": Fraction(p), "m": Fraction(m), "v": Fraction(chunks)}
    assert found.bubble_s / work_s == _evaluate(_published(oracles)[row]["fraction_of_ideal"], **values)
    if row != "ZB1P":
        assert found.bubble_share == _evaluate(_published(oracles)[row]["rate"], **values)
        assert float(found.bubble_share) == pytest.approx(BUBBLE_SHARE(p=p, m=m, v=chunks))
        assert float(found.bubble_s / work_s) == pytest.approx(BUBBLE_OF_IDEAL(p=p, m=m, v=chunks))


@pytest.mark.parametrize("row", ["GPipe", "1F1B", "Interleaved1F1B", "ZB1P", "ZBV", "DualPipe"])
def test_activations_in_flight_are_the_published_multiple_of_1f1b(oracles: Path, row: str) -> None:
    schedule, chunks = SIMULATED_ROWS[row]
    p, m = 4, 12

    found = simulate(schedule, p, m, ALIKE, chunks)

    values = {"p": Fraction(p), "m": Fraction(m), "v": Fraction(chunks)}
    published = _evaluate(_published(oracles)[row]["activation_memory_rel_1f1b"], **values)
    assert Fraction(max(found.peak_in_flight)).limit_denominator(1000) == published * p


def test_zb2p_holds_twice_what_1f1b_holds_less_one() -> None:
    """The published 2 is a limit; the schedule itself needs 2p - 1."""
    assert max(simulate("zb2p", 4, 12, ALIKE).peak_in_flight) == 2 * 4 - 1


def test_the_closed_forms_of_activations_are_what_the_orders_hold() -> None:
    p, m = 6, 18
    assert max(simulate("1f1b", p, m, ALIKE).peak_in_flight) == IN_FLIGHT_1F1B(p=p, m=m)
    assert max(simulate("1f1b", p, 3, ALIKE).peak_in_flight) == IN_FLIGHT_1F1B(p=p, m=3)
    assert max(simulate("interleaved", p, m, ALIKE, 3).peak_in_flight) == pytest.approx(IN_FLIGHT_INTERLEAVED(p=p, v=3))
    assert max(simulate("dualpipe", p, m, ALIKE).peak_in_flight) == IN_FLIGHT_DUALPIPE(p=p)


def test_a_heavy_last_stage_holds_all_others_up() -> None:
    """Three micro-batches, stages of 1 and 2 s forward and as much backward, checked by hand.

    device 0  F F . . . B F . . . B . . . . B      second device: 1 + 3 * (2 + 2) = 13 s, then the last backward of 1 s
    """
    times = [Times(forward_s=1, backward_s=1), Times(forward_s=2, backward_s=2)]

    found = simulate("1f1b", 2, 3, times)

    assert found.makespan_s == 14
    assert found.busy_s == (6, 12)
    assert found.bubble_s == 2


def test_transfers_are_paid_on_the_way_in_and_out() -> None:
    """One micro-batch over three stages: 3 forwards, 3 backwards, 4 transfers."""
    assert simulate("1f1b", 3, 1, ALIKE, transfer_s=5).makespan_s == 3 * 1 + 3 * 2 + 4 * 5


def test_chunks_on_the_same_device_pass_their_output_on_without_a_transfer() -> None:
    """A V of two devices: down (one transfer), the turn (none), up (one), and back the same way.

    Beside 4 forwards and 4 backwards of 1 s two W are on the way: the turning device's, and the last.
    """
    times = Times(forward_s=2, backward_s=4, weight_s=2)
    assert simulate("zbv", 2, 1, times, transfer_s=10).makespan_s == 4 + 4 + 4 * 10 + 2


TIMES = st.builds(
    lambda forward, inputs, weights, saved: _exactly(
        forward, inputs, weights, Fraction(max(forward + inputs + weights - saved, forward, inputs + weights))
    ),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 4),
)


@st.composite
def schedules(draw: st.DrawFn) -> tuple[str, int, int, int]:
    """A schedule with counts for which it exists."""
    schedule = draw(st.sampled_from(SIMULATED))
    stages = draw(st.integers(1, 6))
    micro_batches = draw(st.integers(1, 20))
    if schedule in DUAL:
        stages = 2 * draw(st.integers(1, 3))
        micro_batches = 2 * stages + 2 * draw(st.integers(0, 5))
    return schedule, stages, micro_batches, draw(st.integers(1, 3)) if schedule == "interleaved" else 1


@given(which=schedules(), times=TIMES, even=st.booleans())
@examples(80)
def test_wherever_a_closed_form_is_given_the_simulation_is_it(
    which: tuple[str, int, int, int], times: Times, *, even: bool
) -> None:
    schedule, stages, micro_batches, chunks = which
    if even:
        saved = times.forward_s + times.backward_s - (times.pair_s or 0)
        unit = times.forward_s * 6
        times = Times(forward_s=unit, backward_s=2 * unit, weight_s=unit, pair_s=3 * unit - min(saved, unit))

    closed = closed_bubble_s(schedule, stages, micro_batches, times, chunks)

    found = simulate(schedule, stages, micro_batches, times, chunks)
    if closed is not None:
        assert closed == pytest.approx(float(max(found.idle_s)), rel=1e-12)
    assert step_seconds(schedule, stages, micro_batches, times, chunks) == pytest.approx(float(found.period_s))


@given(which=schedules(), data=st.data(), transfer=st.sampled_from([0, 1, 5]))
@examples(80)
def test_every_pass_runs_once_after_its_inputs_and_alone_on_its_device(
    which: tuple[str, int, int, int], data: st.DataObject, transfer: int
) -> None:
    """The laws that any schedule keeps, with times of its own for every part of the model."""
    schedule, stages, micro_batches, chunks = which
    held = 2 if schedule in {"zbv", "dualpipev"} else chunks
    times = data.draw(st.lists(TIMES, min_size=stages * held, max_size=stages * held))

    found = simulate(schedule, stages, micro_batches, times, chunks, transfer)

    ends: dict[tuple[str, int, int], Any] = {}
    for one in found.passes:
        assert ends.setdefault(("B" if one.kind == "I" else one.kind, one.part, one.micro_batch), one) is one
    last = len(times) - 1
    assert {key for key in ends if key[0] != "W"} == {
        (kind, part, i) for kind in "FB" for part in range(last + 1) for i in range(micro_batches)
    }
    for (kind, part, i), one in ends.items():
        before = {"F": ("F", part - 1, i), "B": ("B", part + 1, i), "W": ("B", part, i)}[kind]
        inputs = [ends[key] for key in (before, ("F", part, i)) if key in ends and ends[key] is not one]
        for other in inputs:
            moved = transfer if other.device != one.device else 0
            assert one.start_s >= other.end_s + moved
    for device in range(stages):
        row = sorted({(one.start_s, one.end_s) for one in found.passes if one.device == device})
        assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(row))
        assert sum(end - start for start, end in row) == found.busy_s[device]
        assert found.busy_s[device] + found.idle_s[device] == found.period_s
    assert found.period_s == max(found.busy_s) + found.bubble_s
    assert found.bubble_s >= 0
    assert step_seconds(schedule, stages, micro_batches, times, chunks, transfer) == pytest.approx(
        float(found.period_s), rel=1e-9
    )


@given(
    schedule=st.sampled_from(["gpipe", "1f1b"]),
    times=st.lists(TIMES, min_size=1, max_size=6),
    micro_batches=st.integers(1, 120),
    transfer=st.sampled_from([0, 1, 2, 9]),
)
@examples(100)
def test_the_recursion_that_stops_early_ends_when_the_simulation_does(
    schedule: str, times: list[Times], micro_batches: int, transfer: int
) -> None:
    found = simulate(schedule, len(times), micro_batches, times, transfer_s=transfer)

    assert step_seconds(schedule, len(times), micro_batches, times, 1, transfer) == pytest.approx(float(found.period_s))


@given(
    schedule=st.sampled_from(["interleaved", "zb1p", "zb2p", "zbv"]),
    stages=st.integers(2, 4),
    groups=st.integers(8, 13),
    odd=st.integers(0, 3),
    times=st.lists(TIMES, min_size=12, max_size=12),
    transfer=st.sampled_from([0, 1, 2, 9]),
)
@examples(60)
def test_many_micro_batches_take_what_running_all_of_them_does(
    schedule: str, stages: int, groups: int, odd: int, times: list[Times], transfer: int
) -> None:
    """`step_seconds` runs few and goes on once they have settled; this runs all."""
    chunks = {"interleaved": 3, "zbv": 2}.get(schedule, 1)
    counts = (schedule, stages, stages * groups + odd, times[: stages * chunks], chunks, transfer)

    assert step_seconds(*counts) == pytest.approx(float(simulate(*counts).period_s), rel=1e-9)


def test_a_pipeline_that_transfers_slow_down_is_carried_on_at_their_pace() -> None:
    """A real find: 18 unequal parts of 6 devices, whose busiest device is not what paces them."""
    forwards = [1, 1.84, 1, 1.01, 1, 1, 1, 1.02, 1, 1.6, 1.32, 1, 1, 1.09, 1, 1.04, 1.1, 1.08]
    backwards = [3.32, 2.34, 2, 3.22, 2.08, 3.29, 2, 2, 2, 2.38, 3.06, 2.04, 2.84, 2.16, 2.11, 2.18, 2, 2.19]
    times = [Times(forward_s=f, backward_s=b) for f, b in zip(forwards, backwards, strict=True)]

    for count in (50, 62, 74, 80):
        exact = simulate("interleaved", 6, count, times, 3, 0.3).period_s
        assert step_seconds("interleaved", 6, count, times, 3, 0.3) == pytest.approx(exact, rel=1e-9)


@given(
    schedule=st.sampled_from(["gpipe", "1f1b", "interleaved"]),
    stages=st.integers(1, 6),
    groups=st.integers(1, 6),
    chunks=st.integers(1, 3),
    head=st.integers(0, 9),
)
@examples(40)
def test_the_estimate_is_exact_where_only_the_last_stage_is_heavier(
    schedule: str, stages: int, groups: int, chunks: int, head: int
) -> None:
    """A vocabulary's head beside equal layers: what real models look like. Transfers of no time."""
    held = chunks if schedule == "interleaved" else 1
    times = [Times(forward_s=5.0, backward_s=10.0)] * (stages * held - 1)
    times.append(Times(forward_s=5.0 + head, backward_s=10.0 + 2 * head))

    estimate = estimate_seconds(schedule, stages, stages * groups, times, held)

    exact = float(simulate(schedule, stages, stages * groups, times, held).period_s)
    assert estimate == pytest.approx(exact, rel=1e-9 if held == 1 else 0.04)


@given(which=schedules(), times=TIMES)
@examples(40)
def test_faster_passes_never_make_a_longer_step(which: tuple[str, int, int, int], times: Times) -> None:
    schedule, stages, micro_batches, chunks = which
    if schedule in {"zb2p", "zbv"}:
        return  # their period is the longest of the devices' spans, and a start may move as well as an end
    faster = Times(
        forward_s=times.forward_s / 2, backward_s=times.backward_s - times.weight_s / 2,
        weight_s=times.weight_s / 2, pair_s=None if times.pair_s is None else times.pair_s * Fraction(3, 4),
    )  # fmt: skip

    slow = simulate(schedule, stages, micro_batches, times, chunks).makespan_s

    assert simulate(schedule, stages, micro_batches, faster, chunks).makespan_s <= slow


def test_every_schedule_of_a_layout_is_simulated() -> None:
    assert set(SCHEDULES) <= set(SIMULATED)


def test_whole_groups_of_the_interleaved_schedule_are_cut_where_micro_batches_end() -> None:
    """Five micro-batches on four devices: Megatron refuses them; here the second group has one."""
    order = order_of("interleaved", 4, 5, 2)

    assert all(len(row) == 2 * 2 * 5 for row in order.devices)
    assert simulate("interleaved", 4, 5, ALIKE, 2).bubble_s > simulate("interleaved", 4, 4, ALIKE, 2).bubble_s


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        (("1f1c", 4, 8, 1), "expected one of gpipe, 1f1b"),
        (("1f1b", 0, 8, 1), "positive whole number of stages, found 0"),
        (("1f1b", 4, True, 1), "positive whole number of micro-batches, found True"),
        (("1f1b", 4, 8, 2), "several are for interleaved"),
        (("zbv", 4, 8, 3), "two chunks on every device, not 3"),
        (("dualpipe", 3, 8, 1), "even numbers of stages"),
        (("dualpipe", 4, 6, 1), "8, found 6"),
    ],
)
def test_counts_for_which_a_schedule_does_not_exist_are_refused(counts: tuple[str, int, int, int], says: str) -> None:
    schedule, stages, micro_batches, chunks = counts
    with pytest.raises(UsageError, match=says):
        simulate(schedule, stages, micro_batches, ALIKE, chunks)


def test_times_for_some_stages_only_are_refused() -> None:
    with pytest.raises(ValueError, match="expected times of 4 parts"):
        simulate("1f1b", 4, 8, [ALIKE] * 3)


@pytest.mark.parametrize(("folder", "chunks"), [("pp8", 1), ("pp8_vpp2", 2)])
def test_a_real_pipeline_takes_what_its_own_passes_simulate(shared: Path, folder: str, chunks: int) -> None:
    """Eight real stages, 16 micro-batches, unequal passes, 17 steps: within 3 %, and never longer than it took.

    What is simulated has no transfers and no passes that are longer than the median one, and so is 2 % short.
    """
    ranks = [
        json.loads(
            gzip.decompress((shared / f"corpus/AMD-AGI-Primus/pp_data/{folder}/pp_rank_{r}.json.gz").read_bytes())
        )
        for r in range(8)
    ]
    errors = []
    for step in map(str, range(3, 20)):
        times = _measured([rank[step] for rank in ranks], chunks)
        schedule = "1f1b" if chunks == 1 else "interleaved"
        took_ms = max(rank[step]["bwd_end"][-1] for rank in ranks) - min(rank[step]["fwd_start"][0] for rank in ranks)
        errors.append(simulate(schedule, 8, 16, times, chunks).period_s / took_ms - 1)

    assert -0.03 < statistics.median(errors) < 0


def _measured(ranks: list[dict[str, list[float]]], chunks: int) -> list[Times]:
    """Return the median times of every part; groups of eight micro-batches take one chunk after the other."""
    found: dict[int, Times] = {}
    for device, rank in enumerate(ranks):
        for chunk in range(chunks):
            medians = []
            for kind, turn in (("fwd", chunk), ("bwd", chunks - 1 - chunk)):
                spans = zip(rank[f"{kind}_start"], rank[f"{kind}_end"], strict=True)
                mine = [end - start for place, (start, end) in enumerate(spans) if place // 8 % chunks == turn]
                medians.append(statistics.median(mine))
            found[device + 8 * chunk] = Times(forward_s=medians[0], backward_s=medians[1])
    return [found[part] for part in range(8 * chunks)]
