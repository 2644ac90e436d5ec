"""Whatever stands in a plan, there is a plan whose laws hold, or a sentence that says what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.errors import InputError, UsageError
from longpole.pipeline.plan import PlanOptions, build_plan
from longpole.readers.plan_file.keys import SECTIONS
from tests.examples import examples
from tests.plans import PLAN, write_plan

KEYS = [f"{section}.{key.name}".removeprefix(".") for section, keys in SECTIONS.items() for key in keys]
PLAUSIBLE = st.one_of(
    st.integers(1, 64),
    st.sampled_from([1, 2, 4, 8, 16, 128, 4096, 1 << 20, 10**9]),
    st.booleans(),
    st.floats(0.01, 100),
    st.sampled_from(["none", "full", "fit", "gpipe", "interleaved", "zbv", "dualpipe", "fp8", "fp16", "adam", "H200"]),
)
ANYTHING = st.one_of(
    PLAUSIBLE,
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-1, 9), max_size=3),
    st.dictionaries(st.sampled_from(["full", "none", "bf16", "x"]), st.one_of(st.text(max_size=3), st.integers())),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_plan(tmp_path_factory.mktemp("plans"), PLAN)


@examples(120)
@given(changes=st.lists(st.tuples(st.sampled_from(KEYS), ANYTHING), min_size=1, max_size=3))
def test_anything_in_a_key_is_planned_or_refused(path: str, changes: list[tuple[str, Any]]) -> None:
    try:
        plan = build_plan(path, PlanOptions(changes=changes, figures=True))
    except (UsageError, InputError):
        return

    assert plan.check() == []


@examples(120)
@given(
    changes=st.lists(
        st.tuples(
            st.sampled_from([key for key in KEYS if key.startswith(("layout.", "batch.", "training."))]), PLAUSIBLE
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_layout_is_planned_or_refused(path: str, changes: list[tuple[str, Any]]) -> None:
    free = [("hardware.devices", 4096), *changes]
    try:
        plan = build_plan(path, PlanOptions(changes=free))
    except (UsageError, InputError):
        return

    assert plan.check() == []
    assert plan.step is not None
    assert plan.memory is not None
    assert plan.step.period_ns > 0
    assert all(part.exposed_ns >= 0 and part.hidden_ns >= 0 for part in plan.step.parts)
    assert all(size >= 0 for stage in plan.memory.stages for size in stage.parts_bytes.values())
    assert all(use.share > 0 for use in plan.utilisation)
