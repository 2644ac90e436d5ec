"""Where a unit of work begins and ends (DESIGN 3.2)."""

from __future__ import annotations

import re

import pytest

from longpole.errors import UsageError
from longpole.timeline.boundaries import Unit, find_units, marker_rows
from longpole.timeline.columns import Kind
from tests.build import LOADER, OPTIMIZER, VOCABULARY, Script


def _units(script: Script, pattern: str | None = None) -> list[Unit]:
    return find_units(script.timeline(), VOCABULARY, pattern)


def _walls(script: Script, pattern: str | None = None) -> list[tuple[str, float, float]]:
    return [(unit.name, unit.start_ns / 1000, unit.end_ns / 1000) for unit in _units(script, pattern)]


def test_a_unit_runs_from_its_start_to_the_start_of_the_next_one() -> None:
    """0         100       200       300

    ├ step 3 ─┤  ├ step 4 ┤ ├ step 5 ─┤
    ├── 3 ───────┼── 4 ─────┼── 5 ────┤
    """
    script = Script()
    script.step(3, 0, 100)
    script.step(4, 130, 220)
    script.step(5, 240, 340)

    assert _walls(script) == [("ProfilerStep#3", 0, 130), ("ProfilerStep#4", 130, 240), ("ProfilerStep#5", 240, 340)]


def test_what_lies_between_two_annotations_is_part_of_the_first_one() -> None:
    script = Script()
    script.step(3, 0, 100)
    script.step(4, 130, 220)

    assert [unit.between_ns for unit in _units(script)] == [30_000, 0]


def test_a_unit_has_the_number_in_its_name() -> None:
    script = Script()
    script.step(12, 0, 100)
    script.step(13, 100, 200)

    units = _units(script)

    assert [(unit.ordinal, unit.kind) for unit in units] == [(12, "step"), (13, "step")]


def test_units_of_two_rounds_in_one_file_are_numbered_through() -> None:
    """A range of numbers must be one stretch of time."""
    script = Script()
    for place, number in enumerate((3, 4, 3, 4)):
        script.step(number, 100 * place, 100 * place + 100)

    assert [(unit.name, unit.ordinal) for unit in _units(script)] == [
        ("ProfilerStep#3 #0", 0),
        ("ProfilerStep#4 #1", 1),
        ("ProfilerStep#3 #2", 2),
        ("ProfilerStep#4 #3", 3),
    ]


def test_the_profilers_steps_win_over_everything_else() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    for number in range(4):
        script.span(f"iter_{number}", 50 * number, 50 * number + 40)
        script.span(OPTIMIZER, 50 * number + 20, 50 * number + 30)

    assert [unit.name for unit in _units(script)] == ["ProfilerStep#0", "ProfilerStep#1"]


def test_markers_of_an_engine_win_over_the_optimizer() -> None:
    script = Script()
    for number in range(3):
        script.span("step[DECODE bs=32]", 100 * number, 100 * number + 90)
        script.span(OPTIMIZER, 100 * number + 20, 100 * number + 30)

    assert _walls(script) == [
        ("step[DECODE bs=32] #0", 0, 100),
        ("step[DECODE bs=32] #1", 100, 200),
        ("step[DECODE bs=32] #2", 200, 290),
    ]
    assert {unit.kind for unit in _units(script)} == {"step"}


def test_numbered_annotations_mark_iterations() -> None:
    script = Script()
    script.span("iter_7", 0, 90)
    script.span("iter_8", 100, 190)

    assert [(unit.name, unit.kind, unit.ordinal) for unit in _units(script)] == [
        ("iter_7", "iteration", 7),
        ("iter_8", "iteration", 8),
    ]


def test_one_annotation_of_an_engine_is_no_series() -> None:
    script = Script()
    script.span("iter_7", 0, 90)

    assert [unit.kind for unit in _units(script)] == ["trace"]


def test_the_optimizers_steps_part_units_at_their_ends() -> None:
    """0         100       200       300

    ┌ head ──────┬──── 1 ─────┬──── 2 ────┐
            ├ opt ┤     ├ opt ┤    ├ opt ┤
    """
    script = Script()
    script.op("aten::mul", 0, 50)
    for end in (120, 220, 320):
        script.span(OPTIMIZER, end - 30, end)

    assert _walls(script) == [(f"{OPTIMIZER} 1", 120, 220), (f"{OPTIMIZER} 2", 220, 320)]


def test_of_several_optimizers_the_last_of_the_most_frequent_ones_marks() -> None:
    """A GAN steps its discriminator, then its generator."""
    script = Script()
    for number in range(3):
        script.span("Optimizer.step#SGD.step", 100 * number + 20, 100 * number + 30)
        script.span(OPTIMIZER, 100 * number + 70, 100 * number + 80)

    assert _walls(script) == [(f"{OPTIMIZER} 1", 80, 180), (f"{OPTIMIZER} 2", 180, 280)]


def test_a_single_optimizer_step_parts_nothing() -> None:
    script = Script()
    script.op("aten::mul", 0, 50)
    script.span(OPTIMIZER, 60, 80)

    assert _walls(script) == [("trace", 0, 80)]


def test_a_record_without_markers_is_one_unit() -> None:
    script = Script()
    script.op("aten::mul", 10, 50)
    script.kernel(40, 90, script.launch(20, 22))

    units = _units(script)

    assert _walls(script) == [("trace", 10, 90)]
    assert marker_rows(units).tolist() == []


def test_markers_of_one_name_are_told_apart() -> None:
    """Units are found on other ranks by their names, and an engine's iterations of one size are all called alike."""
    script = Script()
    for number, size in enumerate((1, 32, 32)):
        script.span(f"step[DECODE bs={size}]", 100 * number, 100 * number + 90)

    assert [unit.name for unit in _units(script)] == [
        "step[DECODE bs=1]",
        "step[DECODE bs=32] #1",
        "step[DECODE bs=32] #2",
    ]


def test_the_users_own_pattern_marks_units() -> None:
    """Also where the names carry no number and are of no annotation."""
    script = Script()
    for start in (0, 100, 200):
        script.frame("train.py(12): one_batch", start, start + 80)

    assert _walls(script, "one_batch") == [
        ("train.py(12): one_batch #0", 0, 100),
        ("train.py(12): one_batch #1", 100, 200),
        ("train.py(12): one_batch #2", 200, 280),
    ]
    assert [unit.ordinal for unit in _units(script, "one_batch")] == [0, 1, 2]


def test_a_pattern_that_matches_nothing_names_what_there_is() -> None:
    script = Script()
    script.span("my_phase", 0, 100)

    with pytest.raises(
        UsageError, match=re.escape("no host event of rank0.json matches 'batch'; annotations there: my_phase")
    ):
        _units(script, "batch")


def test_a_broken_pattern_is_the_users_mistake() -> None:
    script = Script()
    script.step(0, 0, 100)

    with pytest.raises(UsageError, match="is not a regular expression"):
        _units(script, "step(")


def test_a_marker_inside_another_one_is_no_unit() -> None:
    """Both the annotation and the operator of one step are recorded.

    ├──────── step 3 ────────┤├──────── step 4 ────────┤
     ├─────── step 3 ───────┤  ├─────── step 4 ───────┤
    """
    script = Script()
    for number, start in ((3, 0), (4, 100)):
        script.step(number, start, start + 100)
        script.step(number, start + 1, start + 99)

    assert _walls(script) == [("ProfilerStep#3", 0, 100), ("ProfilerStep#4", 100, 200)]


def test_a_copy_of_a_marker_that_ends_a_little_later_is_no_unit() -> None:
    script = Script()
    script.step(3, 0, 100)
    script.step(3, 1, 101)
    script.step(4, 101, 200)

    assert _walls(script) == [("ProfilerStep#3", 0, 101), ("ProfilerStep#4", 101, 200)]


def test_a_step_that_begins_a_rounding_error_early_is_a_unit() -> None:
    """Whole microseconds: the first step seems to end after the second has begun.

    ├──────── step 3 ────────┤
                            ├──────── step 4 ────────┤
    """
    script = Script()
    script.step(3, 0, 101)
    script.step(4, 100, 201)
    script.step(5, 200, 300)

    assert _walls(script) == [("ProfilerStep#3", 0, 100), ("ProfilerStep#4", 100, 200), ("ProfilerStep#5", 200, 300)]
    assert [unit.between_ns for unit in _units(script)] == [0, 0, 0]


def test_the_thread_with_most_markers_carries_the_units() -> None:
    script = Script()
    script.step(0, 5, 50, thread="other")
    for number in range(3):
        script.step(number, 100 * number, 100 * number + 90)

    assert len(_units(script)) == 3


def test_only_annotations_and_rows_without_a_category_mark_units() -> None:
    """A Python frame or an operator that happens to be called like a step is none."""
    script = Script()
    script.op("iter_1", 0, 100)
    script.op("iter_2", 100, 200)

    assert [unit.kind for unit in _units(script)] == ["trace"]

    for row in script.host:
        row.kind = Kind.OTHER

    assert [unit.kind for unit in _units(script)] == ["iteration", "iteration"]


def test_a_loader_is_no_marker() -> None:
    script = Script()
    script.span(LOADER, 0, 10)
    script.span(LOADER, 100, 110)

    assert [unit.kind for unit in _units(script)] == ["trace"]
