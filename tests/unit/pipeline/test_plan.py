"""A plan's document: laws of its parts, what it says, and what every figure can be asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from longpole.costs.flops import flops_per_token
from longpole.costs.utilisation import training_days
from longpole.errors import UsageError
from longpole.pipeline.plan_parts import add_up
from longpole.report.plan import MEMORY_PARTS, Plan, plan_schema
from longpole.report.schema import read_schema
from longpole.report.schema_of import written_type
from tests.plans import PLAN, TABLES, plan_of, planned, tables, write_plan

SERVING = """\
[model]
preset = "llama3-8b"

[hardware]
device = "H100-SXM5-80GB"

[serving]
prompt_tokens = 1024
output_tokens = 128
tp = 2
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_of(tmp_path, figures=True)


def test_the_parts_of_a_step_add_up_to_the_nanosecond(plan: Plan) -> None:
    assert plan.step is not None
    assert sum(part.exposed_ns for part in plan.step.parts) == plan.step.period_ns
    assert plan.step.low_ns < plan.step.period_ns < plan.step.high_ns


def test_the_parts_of_every_stage_add_up_to_its_peak(plan: Plan) -> None:
    assert plan.memory is not None
    assert len(plan.memory.stages) == 2
    for stage in plan.memory.stages:
        assert set(stage.parts_bytes) == set(MEMORY_PARTS)
        assert sum(stage.parts_bytes.values()) == stage.peak_bytes
    assert plan.memory.free_bytes == plan.memory.limit_bytes - plan.memory.peak_bytes - plan.memory.margin_bytes


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1e12), min_size=1, max_size=8))
def test_parts_are_rounded_so_that_they_add_up(parts: dict[str, float]) -> None:
    whole = round(sum(parts.values()))

    rounded = add_up(parts, whole)

    assert sum(rounded.values()) == whole
    assert all(abs(rounded[name] - value) <= 1 for name, value in parts.items())


def test_mfu_is_tokens_times_flops_over_the_peak_under_every_convention(plan: Plan) -> None:
    assert plan.step is not None
    model = planned().model
    for use in plan.utilisation:
        if use.convention == "computed":
            continue
        assert use.flops_per_token == pytest.approx(flops_per_token(model, 8192, use.convention))
        achieved = plan.step.tokens_per_s * use.flops_per_token / 16
        assert use.share == pytest.approx(achieved / (plan.hardware.peak_tflops * 1e12))
    assert [use.convention for use in plan.utilisation if use.asked] == ["mcore"]


def test_an_hfu_that_counts_what_is_not_computed_again_does_not_apply(plan: Plan, tmp_path: Path) -> None:
    recomputed = plan_of(tmp_path, PLAN + '[training]\nrecompute = "full"\n')

    def applying(one: Plan) -> set[str]:
        return {use.convention for use in one.utilisation if use.hardware and use.applies}

    assert applying(plan) == {"computed"}
    assert applying(recomputed) == {"computed", "palm_hw", "sc21_hw"}


def test_every_message_says_where_it_goes_and_from_where_its_time_is(plan: Plan) -> None:
    assert {message.dimension for message in plan.messages} == {"tp", "pp", "dp"}
    assert {message.link for message in plan.messages if message.dimension == "tp"} == {"NVLink4"}
    assert {message.link for message in plan.messages if message.dimension == "pp"} == {"network"}
    assert all(message.source in ("shipped", "nccl_model", "generic") for message in plan.messages)
    assert [link.dimensions for link in plan.hardware.links] == [["tp", "dp"], ["pp"]]


def test_a_plan_that_does_not_fit_says_so_first_and_what_to_try(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, changes=[("batch.micro_batch", 16)])

    assert plan.memory is not None
    assert plan.memory.verdict == "does not fit"
    assert plan.limits[0].name == "memory"
    assert "activations" in plan.limits[0].says
    assert plan.says.index("GB") < plan.says.index("tokens/s")


def test_a_plan_that_fits_without_its_margin_only_is_tight(tmp_path: Path, plan: Plan) -> None:
    assert plan.memory is not None
    limit_gb = (plan.memory.peak_bytes + plan.memory.margin_bytes / 2) / 1e9

    tight = plan_of(tmp_path, changes=[("hardware.memory_limit_gb", limit_gb)]).memory

    assert plan.memory.verdict == "fits"
    assert tight is not None
    assert tight.verdict == "tight"
    assert tight.free_bytes < 0


def test_limits_are_the_largest_parts_first(plan: Plan) -> None:
    shares = [limit.share for limit in plan.limits]

    assert shares == sorted(shares, reverse=True)
    assert plan.limits[0].name == "matmul"


def test_every_figure_has_a_formula_that_gives_it(plan: Plan) -> None:
    by_name = {figure.name.rpartition(": ")[2]: figure for figure in plan.figures}

    assert by_name["devices"].formula == "tp*pp*dp*cp = 4*2*2*1 = 16 devices"
    assert by_name["micro-batches"].value == 16
    for name in ("step", "tokens per second", "MFU (mcore)", "weights", "margin", "step at full rate (mcore)"):
        assert by_name[name].formula, name
        assert by_name[name].source, name


def test_a_figure_is_found_by_part_of_its_name(tmp_path: Path) -> None:
    names = [figure.name for figure in plan_of(tmp_path, explain="mfu").figures]

    assert names
    assert all("MFU" in name for name in names)
    with pytest.raises(UsageError, match="no figure has that in its name; there are devices, micro-batches"):
        plan_of(tmp_path, explain="speed of light")


def test_no_figures_are_computed_that_nobody_asked_for(tmp_path: Path) -> None:
    assert plan_of(tmp_path).figures == []


def test_the_document_is_as_its_schema_says(plan: Plan) -> None:
    assert plan_schema() == read_schema("plan")
    assert isinstance(msgspec.json.decode(msgspec.json.encode(plan), type=written_type(Plan)), msgspec.Struct)


def test_the_same_plan_is_the_same_document(tmp_path: Path) -> None:
    text = PLAN + "[search]\ntp = [2, 4]\npp = [1, 2]\n"

    one, other = (msgspec.json.encode(plan_of(tmp_path, text, search=True, free_memory=True)) for _ in range(2))

    assert one == other


def test_serving_needs_no_batch_and_no_convention(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SERVING)

    assert plan.step is None
    assert plan.memory is None
    assert plan.serving is not None
    assert plan.serving.devices == 2
    assert plan.serving.fits
    assert sum(plan.serving.decode.parts_ns.values()) == plan.serving.decode.dur_ns
    assert plan.serving.tokens_per_s_low <= plan.serving.tokens_per_s <= plan.serving.tokens_per_s_high
    assert "[serving] weight_bytes" in {default.key for default in plan.defaults}


def test_a_limit_of_memory_leaves_less_room_for_caches(tmp_path: Path) -> None:
    free, limited = (
        plan_of(tmp_path, SERVING, changes=changes).serving for changes in ([], [("hardware.memory_limit_gb", 40)])
    )

    assert free is not None
    assert limited is not None
    assert limited.limit_bytes == 40e9
    assert limited.most_requests < free.most_requests


def test_a_plan_can_train_and_serve(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, PLAN + SERVING[SERVING.index("[serving]") :])

    assert plan.step is not None
    assert plan.serving is not None


def test_questions_about_a_step_need_a_batch(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--search, --free-memory is about a training step"):
        plan_of(tmp_path, SERVING, search=True, free_memory=True)


def test_serving_explains_its_figures(tmp_path: Path) -> None:
    (figure,) = plan_of(tmp_path, SERVING, explain="critical").figures

    assert figure.formula.startswith("peak_flops*weight_bytes/(2*memory_bytes_per_s) = ")


def test_a_faster_network_never_makes_a_step_longer(tmp_path: Path) -> None:
    periods = [
        plan_of(tmp_path, changes=[("hardware.network_gb_per_s", rate), ("layout.tp", 1), ("layout.pp", 2)]).step
        for rate in (5, 25, 50, 100)
    ]

    found = [step.period_ns for step in periods if step is not None]
    assert found == sorted(found, reverse=True)


def test_a_law_that_is_broken_is_told(plan: Plan) -> None:
    assert plan.step is not None
    assert plan.check() == []

    plan.step.parts[0].exposed_ns += 1

    assert plan.check() == ["the parts of a step do not add up to it"]


def test_a_whole_training_takes_as_many_periods_as_it_has_steps(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, changes=[("training.tokens", 1e12)])

    assert plan.training is not None
    assert plan.step is not None
    assert plan.training.steps == 3_814_698  # 10^12 over 262,144, rounded up
    assert plan.training.days == pytest.approx(3_814_698 * plan.step.period_ns / 86_400e9)
    assert plan.training.device_hours == pytest.approx(plan.training.days * 24 * 16)


def test_days_follow_from_mfu_too(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, changes=[("training.tokens", 1e12)])
    (asked,) = [use for use in plan.utilisation if use.asked]

    days = training_days(
        tokens=1e12, flops_per_token=asked.flops_per_token, devices=16, peak_flops=989.4e12, mfu=asked.share
    )

    assert plan.training is not None
    assert plan.training.days == pytest.approx(days, rel=1e-6)


def test_the_library_plans_a_file_and_tables_alike(tmp_path: Path) -> None:
    path = Path(write_plan(tmp_path))

    of_file = longpole.plan(path, changes={"layout.tp": 8})
    of_tables = longpole.plan(tables(layout={"tp": 8}))

    assert of_file.step == of_tables.step
    assert of_file.figures
    with pytest.raises(UsageError, match=r"^plan: \[layout\] tp: expected"):
        longpole.plan(TABLES, changes={"layout.tp": 0})


def test_planning_leaves_what_was_planned_alone() -> None:
    before = planned()

    changed = replace(before, layout=replace(before.layout, tp=8, dp=1))

    assert before.layout.tp == 4
    assert changed.layout.world == before.layout.world
