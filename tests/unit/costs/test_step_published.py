"""Steps as they were published and measured: how far off the shipped constants are, and constants that were fitted."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import pytest

from longpole.costs.calibration import Calibration, shipped_error_share
from longpole.costs.calibration_fit import fit_calibration
from longpole.costs.collective_bytes import layer_messages
from longpole.costs.layout import Layout, Work
from longpole.costs.operators import layer_operators, shard_of, time_of
from longpole.costs.step_traffic import MEGATRON_2021, Prices, stage_traffic
from longpole.hardware.devices import find_device
from tests.published_steps import (
    A100,
    Case,
    bridge,
    gpt,
    korthikanti,
    mean_error,
    mpt,
    read_rows,
    sc21,
    simumax,
    torchtitan,
    vtrain,
    whole_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longpole.costs.layout import Recompute


@pytest.mark.parametrize(("read", "mean", "most"), [(sc21, 0.05, 0.08), (korthikanti, 0.04, 0.06)])
def test_published_steps_of_megatron_come_out_with_the_shipped_constants(
    oracles: Path, read: Callable[[Path], list[Case]], mean: float, most: float
) -> None:
    """SC21 table 1 within 4.0 % in the mean (6.6 % at most), Korthikanti table 5 within 2.9 % (4.9 %)."""
    cases = read(oracles)

    assert mean_error(cases) < mean
    assert max(abs(case.error()) for case in cases) < most


def test_the_time_of_a_layer_is_that_of_korthikanti_table_4(oracles: Path) -> None:
    """A layer of 22B on 8 A100, forward and backward, within 10 %; recomputation costs what it is said to."""
    published = {row["experiment"]: row for row in read_rows(oracles / "korthikanti_table4_layer_times.csv")}
    ways: dict[str, tuple[Recompute, bool]] = {
        "baseline_no_recompute": ("none", False),
        "sequence_parallelism": ("none", True),
        "baseline_full_recompute": ("full", False),
        "selective_recompute": ("selective", False),
        "selective_plus_sequence": ("selective", True),
    }

    found_ms = {name: _layer_ms(*way) for name, way in ways.items()}

    for name, row in published.items():
        assert sum(found_ms[name]) == pytest.approx(float(row["combined_ms"]), rel=0.10), name
        assert found_ms[name][0] == pytest.approx(float(row["forward_ms"]), rel=0.03), name
    plain = sum(found_ms["baseline_no_recompute"])
    assert sum(found_ms["baseline_full_recompute"]) / plain == pytest.approx(1.39, abs=0.03)
    assert sum(found_ms["selective_recompute"]) / plain == pytest.approx(1.07, abs=0.03)
    assert sum(found_ms["sequence_parallelism"]) < plain


def _layer_ms(recompute: Recompute, sp: bool) -> tuple[float, float]:
    layout = Layout(tp=8, sp=sp)
    work = Work(
        sequence=2048,
        micro_batch=4,
        global_batch=4,
        recompute=recompute,
        dtype="fp16",
        flash=False,
        dropout=True,
    )
    model = gpt(6144, 48, 64, 2048)
    calibration = Calibration()
    rates = calibration.rates(A100.cluster.device, "fp16", flash=False)
    passes = time_of(layer_operators(model, shard_of(layout, work), experts=False), rates, recompute)
    traffic = stage_traffic(
        layer_messages(model, layout, work, 0), Prices(A100, layout, calibration), MEGATRON_2021, passes, 1
    )
    backward_s = passes.backward_s + passes.recompute_s + traffic.backward_s
    return (passes.forward_s + traffic.forward_s) * 1e3, backward_s * 1e3


def test_steps_that_the_constants_were_not_set_by_come_out_too(oracles: Path) -> None:
    """109 steps of several nodes of A100 within 9 % in the mean; MPT under FSDP within 7 % (A100) and 10 % (H100).

    Every other MPT row was looked at when the constants were set; these are the others.
    """
    several = vtrain(oracles, "multi")

    assert len(several) == 109
    assert mean_error(several) < 0.10
    assert mean_error(mpt(oracles, "a100")[1::2]) < 0.08
    assert mean_error(mpt(oracles, "h100")[1::2]) < 0.12


def test_the_shipped_constants_are_fast_by_an_eighth_on_b200(oracles: Path) -> None:
    """What decision 0034 says of a machine that the constants were not fitted to: dense 12 %, experts 23 %."""
    cases = simumax(oracles)
    dense = [case for case in cases if case.step.model.experts is None]
    mixtures = [case for case in cases if case.step.model.experts is not None]

    assert mean_error(dense) < 0.15
    assert mean_error(mixtures) < 0.27
    assert median(case.error() for case in cases) < 0


def test_runs_that_papers_describe_whole_are_within_what_is_promised() -> None:
    """Nothing was set by them. The stacks of 2021 and 2022 took up to a third longer than Megatron-LM's own tables."""
    errors = {case.step.name: case.error() for case in whole_runs()}

    assert len(errors) == 5
    assert all(-0.25 < error < 0.11 for error in errors.values()), errors
    assert errors["BLOOM, 384 devices"] == pytest.approx(-0.12, abs=0.02)
    assert shipped_error_share(find_device("A100")) == shipped_error_share(find_device("H100")) == 0.25


def test_the_stacks_of_newer_devices_lie_on_both_sides_within_what_is_promised(oracles: Path) -> None:
    """torchtitan's H100 of 500 W are a fifth slower than planned, Megatron-Bridge's H100 and GB200 a seventh faster."""
    slower, faster = torchtitan(oracles), bridge(oracles)

    assert all(case.error() < 0 for case in slower)
    assert all(case.error() > -0.05 for case in faster)
    assert mean_error(slower) < shipped_error_share(find_device("H100"))
    assert mean_error(faster) < shipped_error_share(find_device("GB200"))


def test_split_products_gain_what_torchtitan_measured(oracles: Path) -> None:
    """Asynchronous tensor parallelism: 1.09 times faster for 70B and 1.10 for 8B, in BF16."""
    rows = {case.step.name: case for case in torchtitan(oracles) if "2025-06" in case.step.name}
    for model in ("8B", "70B"):
        plain, split = (rows[f"2025-06 llama3.1-{model} TP8 async {way}"] for way in ("no", "yes"))

        measured = plain.step.step_s / split.step.step_s
        predicted = plain.predict().total_s / split.predict().total_s
        assert predicted == pytest.approx(measured, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("which", "every", "promised"), [("single", 24, 0.09), ("multi", 5, 0.105)])
def test_fitted_constants_hold_on_steps_that_they_were_not_fitted_to(
    oracles: Path, which: str, every: int, promised: float
) -> None:
    """60 of 1,440 steps of one node leave 7 % on the others, 22 of 109 of several 9 %; vTrain claims 8.4 and 14.7."""
    cases = vtrain(oracles, which)
    fitted = cases[::every]

    found = fit_calibration([case.step for case in fitted], cases[0].costs, MEGATRON_2021)

    others = [case for case in cases if case not in fitted]
    assert mean_error(others, found.calibration) < promised


@pytest.mark.slow
def test_a_few_steps_of_a_machine_are_enough_to_calibrate_to_it(oracles: Path) -> None:
    """15 of SimuMax's 43 steps on B200, dense and with experts, leave 6 % on the 28 others."""
    cases = simumax(oracles)
    fitted = cases[::3]

    found = fit_calibration([case.step for case in fitted], cases[0].costs, cases[0].software)

    assert mean_error([case for case in cases if case not in fitted], found.calibration) < 0.07
