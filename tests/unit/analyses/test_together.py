"""Which kinds of work ran at once, and how much longer each took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.build import Script, measure

if TYPE_CHECKING:
    from longpole.records.operator_work import Together

SHAPES, TYPES = "[[64, 32], [32, 16]]", '["float", "float"]'


def pairs_of(script: Script) -> list[Together]:
    return measure(script).rows[0].work.together


def products(*lengths_us: float, shapes: str = SHAPES) -> Script:
    """Return products one after the other, 100 µs apart from 1000 µs on."""
    script = Script()
    script.step(0, 0, 5000)
    for place, length in enumerate(lengths_us):
        script.op("aten::mm", 20 * place, 20 * place + 15, shapes=shapes, types=TYPES)
        start = 1000 + 100 * place
        script.kernel(start, start + length, script.launch(20 * place + 1, 20 * place + 5))
    return script


def test_nothing_ran_at_once_on_one_stream() -> None:
    assert pairs_of(products(20, 20, 20)) == []


def test_a_product_beside_a_collective_is_compared_with_itself_alone() -> None:
    """stream 7    ├20┤   ├20┤   ├20┤   ├──30──┤.

    stream 13                          ├────50────┤
    """
    script = products(20, 20, 20, 30)
    script.collective(1295, 1345)

    (pair,) = pairs_of(script)

    assert (pair.first, pair.second, pair.together_ns) == ("aten::mm", "collective", 30_000)
    assert (pair.first_compared_ns, pair.first_alone_ns) == (30_000, 20_000)
    assert pair.first_ns == 90_000
    assert (pair.second_compared_ns, pair.second_alone_ns) == (0, 0), "its length includes waiting for peers"


def test_other_shapes_are_no_reference() -> None:
    script = products(20, 20, 20)
    script.op("aten::mm", 900, 950, shapes="[[640, 32], [32, 16]]", types=TYPES)
    script.kernel(1300, 1400, script.launch(905, 910))
    script.collective(1295, 1410)

    (pair,) = pairs_of(script)

    assert (pair.first_compared_ns, pair.first_alone_ns) == (0, 0)


def test_without_shapes_a_name_alone_is_no_reference() -> None:
    script = products(20, 20, 20, 30, shapes="")
    script.collective(1295, 1345)

    (pair,) = pairs_of(script)

    assert pair.first_alone_ns == 0


def test_spans_that_vary_much_alone_are_no_reference() -> None:
    script = products(10, 20, 40, 80, 30)
    script.collective(1395, 1445)

    (pair,) = pairs_of(script)

    assert pair.first_alone_ns == 0


def test_copies_are_named_by_their_way() -> None:
    script = products(20)
    script.copy("htod", 1005, 1015, stream=9)

    (pair,) = pairs_of(script)

    assert (pair.first, pair.second, pair.together_ns) == ("aten::mm", "copy htod", 10_000)
