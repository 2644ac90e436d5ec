"""How much work units did, in numbers that a slower device does not change."""

from __future__ import annotations

import pytest

from longpole.advice.findings import ranks_apart
from longpole.timeline.shapes import count_products
from tests.build import Script, measure, units
from tests.scenes import scene_of

EXPERT = "aten::_grouped_mm"
WEIGHTS = "[8, 512, 1792]"


def _step(*operators: tuple[str, str]) -> Script:
    script = Script()
    script.step(0, 0, 100)
    for place, (name, shapes) in enumerate(operators):
        script.op(name, 10 * place + 1, 10 * place + 5, shapes=shapes)
    return script


def _products(*operators: tuple[str, str]) -> int:
    (unit,) = units(measure(_step(*operators)))
    return unit.products


def test_products_of_matrices_grow_with_the_tokens_and_elements_hardly_do() -> None:
    few, many = (units(measure(_step((EXPERT, f"[[{n}, 512], {WEIGHTS}]"))))[0] for n in (256, 640))

    assert many.products == 2.5 * few.products == 640 * 512 * 1792
    assert many.elements < 1.05 * few.elements


@pytest.mark.parametrize(
    ("operators", "products"),
    [
        ([("aten::linear", "[[8, 4], [3, 4], [3]]"), ("aten::addmm", "[[3], [8, 4], [4, 3]]")], 192),
        ([("aten::bmm", "[[2, 8, 4], [2, 4, 3]]")], 192),
        ([("aten::add", "[[8, 8], [8, 8]]"), ("aten::comm", "[[8, 8], [8, 8]]")], -1),
        ([("aten::mm", "[[8, 4], [5, 3]]")], -1),
        ([("aten::mm", "")], -1),
    ],
)
def test_only_products_with_operands_that_agree_are_counted(operators: list[tuple[str, str]], products: int) -> None:
    assert _products(*operators) == products


@pytest.mark.parametrize("dims", ["", "[[2,", "7", '["a"]', "[[1, 2], [2, 99999999999999999]]", "[[-1, 4], [4, 3]]"])
def test_shapes_that_tell_nothing_count_nothing(dims: str) -> None:
    assert count_products(dims) is None


def _ranks(*tokens: int, slow: float = 1.0, shapes: bool = True) -> list[Script]:
    """Draw ranks that compute by their tokens, the last one `slow` times longer, and meet in an all-reduce."""
    scripts = []
    took = [n * (slow if rank == len(tokens) - 1 else 1.0) for rank, n in enumerate(tokens)]
    for rank, n in enumerate(tokens):
        script = Script(rank=rank, base_ns=0, world_size=len(tokens), path=f"rank{rank}.json")
        for number in range(4):
            at = number * (max(took) + 200)
            text = f"[[{n}, 512], {WEIGHTS}]" if shapes else ""
            script.op(EXPERT, at + 1, at + 8, shapes=text)
            script.kernel(at + 10, at + 10 + took[rank], script.launch(at + 2, at + 6))
            done = at + 32 + max(took)
            script.collective(at + 12 + took[rank], done, script.launch(at + 20, at + 24))
            script.sync(at + 30, done + 5, name="cudaDeviceSynchronize")
            script.step(number, at, at + max(took) + 200)
        scripts.append(script)
    return scripts


def test_a_rank_with_more_tokens_has_more_work_though_weights_are_most_of_its_inputs() -> None:
    (found,) = ranks_apart.find(scene_of(*_ranks(256, 256, 640)))

    assert (found.cause, list(found.ranks)) == ("work_imbalance", [2])


def test_a_rank_with_as_many_tokens_is_slow_and_has_one_price() -> None:
    (found,) = ranks_apart.find(scene_of(*_ranks(256, 256, 256, slow=2.5)))

    assert (found.cause, list(found.ranks), list(found.otherwise)) == ("slow_rank", [2], [])


def test_without_shapes_a_slow_rank_may_have_more_work_and_both_are_priced() -> None:
    (found,) = ranks_apart.find(scene_of(*_ranks(256, 256, 256, slow=2.5, shapes=False)))

    assert found.cause == "slow_rank"
    assert found.otherwise
    assert "or more of it that was not recorded" in found.says
