"""Which frames of Python a span is found in."""

from __future__ import annotations

import numpy as np

from longpole.digest.call_stacks import FRAMES_MAX
from longpole.digest.digest import Selection, lay_out
from longpole.digest.rank_drawing import RankDrawing, Use, draw_laid
from longpole.settings import Settings
from tests.build import VOCABULARY, Script


def drawn(script: Script) -> RankDrawing:
    laid, rows = lay_out(script.timeline(), VOCABULARY, Settings(), Selection())
    return draw_laid(laid, rows, gauge=lambda _, row: _nothing(len(row.spans)))


def _nothing(n: int) -> Use:
    return Use(np.full(n, np.nan, np.float32), np.full(n, -1, np.int32), [])


def frames(found: RankDrawing, name: str) -> list[str]:
    """Return the frames of the first span of a name, the innermost first."""
    at = next(place for place, code in enumerate(found.spans.name.tolist()) if found.names[code] == name)
    number = int(found.spans.stack[at])
    return [] if number < 0 else [found.names[code] for code in found.stacks[number].tolist() if code >= 0]


def nested() -> Script:
    """A module called by a program, and the kernel that it launches.

    train.py       ├────────────────────┤
      _call_impl      ├──────────────┤
        model.py        ├──────────┤
          aten::mm        ├──────┤
            launch          ├──┤
    stream                        ├ gemm ┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.frame("train.py(31): step", 5, 80)
    script.frame("torch/nn/modules/module.py(1750): _call_impl", 10, 70)
    script.frame("model.py(12): forward", 15, 60)
    script.op("aten::mm", 20, 40)
    script.kernel(50, 90, script.launch(25, 30))
    return script


def test_a_kernel_has_the_frames_around_its_launch_and_an_operator_those_around_itself() -> None:
    found = drawn(nested())

    assert frames(found, "gemm_kernel") == ["model.py(12): forward", "train.py(31): step"]
    assert frames(found, "aten::mm") == ["model.py(12): forward", "train.py(31): step"]
    assert frames(found, "ProfilerStep#0") == []


def test_a_kernel_without_a_launch_has_no_frames() -> None:
    script = nested()
    script.kernel(92, 95, name="lost_kernel")

    assert frames(drawn(script), "lost_kernel") == []


def test_a_stack_that_an_operator_was_recorded_with_is_read_innermost_first() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("aten::mm", 20, 40).stack = "model.py(12): forward; <built-in method mm>; train.py(31): <module>"
    script.kernel(50, 90, script.launch(25, 30))
    found = drawn(script)

    assert frames(found, "gemm_kernel") == ["model.py(12): forward", "train.py(31): <module>"]
    assert frames(found, "aten::mm") == ["model.py(12): forward", "train.py(31): <module>"]


def test_one_stack_is_kept_once_and_no_deeper_than_can_be_read() -> None:
    script = Script()
    script.step(0, 0, 100)
    for depth in range(20):
        script.frame(f"deep.py({depth}): f", 1 + depth, 90 - depth)
    for place in range(3):
        script.kernel(60 + place, 61 + place, script.launch(30 + 3 * place, 32 + 3 * place), name=f"kernel {place}")
    found = drawn(script)
    stacks = {tuple(frames(found, f"kernel {place}")) for place in range(3)}

    assert stacks == {tuple(f"deep.py({19 - place}): f" for place in range(FRAMES_MAX))}
