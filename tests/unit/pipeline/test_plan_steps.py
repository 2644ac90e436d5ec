"""A plan that names measured steps: its constants are fitted to them, and the page says how well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from longpole.costs.calibration import Calibration
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.step import step_time
from longpole.errors import UsageError
from longpole.pipeline.plan import PlanOptions, build_plan
from longpole.pipeline.plan_config import read_planned
from longpole.readers.plan_file.read import read_plan_file

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.pipeline.plan_config import Planned

PLAN = """\
convention = "mcore"

[model]
preset = "llama-3-8b"
layers = 4

[hardware]
device = "H100-SXM5-80GB"

[layout]
tp = 1

[batch]
sequence = 2048
micro_batch = 1
global_batch = 16
"""
CALIBRATION = """
[calibration]
steps = "steps.csv"
attention_of_matmul = 0.4
memory_share = 0.8
launch_us = 4
network = 1
"""
REAL = Calibration(matmul_of_ceiling=0.5, scale_up=2.0)
ROWS = [(tp, dp, sequence) for tp in (1, 2, 8) for dp in (1, 8 // tp) for sequence in (1024, 4096) if tp * dp <= 8]


def planned(folder: Path, *changes: tuple[str, Any]) -> Planned:
    """The plan of a folder."""
    return read_planned(read_plan_file(str(folder / "plan.toml"), changes))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan, and steps of 12 layouts that take what the model says with other constants than the shipped ones."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    lines = ["step_ms,tp,dp,sequence"]
    for tp, dp, sequence in ROWS:
        one = planned(folder, ("layout.tp", tp), ("layout.dp", dp), ("batch.sequence", sequence))
        took_s = step_time(one.model, CollectiveCosts(one.cluster), one.layout, one.work, REAL).total_s
        lines.append(f"{took_s * 1e3!r},{tp},{dp},{sequence}")
    (folder / "steps.csv").write_text("\n".join(lines), encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN + CALIBRATION, encoding="utf-8")
    return folder


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    for name in ("plan.toml", "steps.csv"):
        (tmp_path / name).write_bytes((measured / name).read_bytes())
    return tmp_path


def test_constants_are_fitted_and_the_page_says_how_well(folder: Path) -> None:
    plan = build_plan(str(folder / "plan.toml"), PlanOptions())

    note = next(note for note in plan.notes if "calibrated to 12 steps of steps.csv" in note)
    assert "on those held out" in note
    assert plan.step is not None
    assert plan.step.high_ns / plan.step.period_ns == pytest.approx(1.03, abs=0.02)


def test_what_the_plan_states_itself_is_not_fitted(folder: Path) -> None:
    found = planned(folder).calibration

    assert found.matmul_of_ceiling == pytest.approx(0.5, rel=0.1)
    assert found.scale_up == pytest.approx(2.0, rel=0.1)
    assert (found.attention_of_matmul, found.memory_share, found.launch_s, found.network) == (0.4, 0.8, 4e-6, 1.0)
    assert found.source == "fitted to 12 steps"


def test_a_step_that_does_not_divide_is_left_out_and_named(folder: Path) -> None:
    path = folder / "steps.csv"
    path.write_text(path.read_text(encoding="utf-8") + "\n100,3,1,1024\nslow,1,1,1024\n", encoding="utf-8")

    notes = planned(folder).told.notes

    note = next(note for note in notes if "left out" in note)
    assert "line 15: step_ms" in note
    assert "line 14: tp=3 does not divide 32 heads" in note


def test_too_few_steps_are_refused(folder: Path) -> None:
    (folder / "steps.csv").write_text("step_ms,tp\n10,1\n", encoding="utf-8")

    with pytest.raises(UsageError, match="1 steps can be used; expected at least 3"):
        planned(folder)
