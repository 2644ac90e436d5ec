"""Real collectives among two processes over gloo."""

from __future__ import annotations

import os

import pytest

from longpole.bench.collectives.plan import KINDS, Plan
from longpole.bench.collectives.run import measure, probe
from longpole.bench.collectives.worker import Piece

torch = pytest.importorskip("torch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this build of torch has no gloo", allow_module_level=True)


def test_every_kind_is_measured_and_right_over_gloo() -> None:
    before = dict(os.environ)
    plan = Plan(
        backend="gloo",
        sizes=(1000, 65536),
        buckets=(None, 16384),
        rounds=1,
        repeats=3,
        warmup=1,
    )

    facts = probe(plan)
    measured = measure(plan, facts)

    assert (facts.backend, facts.device) == ("gloo", "cpu")
    assert [setting.failure for setting in measured.settings] == ["", ""]
    lacking = {one.what for one in measured.not_run}
    found = {(point.kind, point.setting, point.bytes) for point in measured.points}
    assert {kind for kind, _, _ in found} | lacking == set(KINDS)
    assert ("all_reduce", "default", 1000) in found
    assert ("all_reduce", "bucket=16KiB", 65536) in found
    assert {point.correctness for point in measured.points} == {"passed"}
    assert all(len(one.samples_ns) == 3 for point in measured.points for one in point.rounds)
    assert dict(os.environ) == before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "uint8", "int64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world", [2, 3, 8])
def test_what_must_come_out_is_what_the_ranks_put_in(kind: str, dtype: str, world: int) -> None:
    """The expected values are made again from those that the ranks hold, by the definition of each kind."""
    pieces = [Piece(kind, 1536, rank, world, dtype, on_device=False) for rank in range(world)]
    given = [piece.given.to(torch.int64).tolist() for piece in pieces]

    for rank, piece in enumerate(pieces):
        assert piece.expected.to(torch.int64).tolist() == _wanted(kind, given, rank)
        piece.refill()
        assert kind == "broadcast" or piece.wrong() > 0
    assert given[0] != given[1]


def _wanted(kind: str, given: list[list[int]], rank: int) -> list[int]:
    """Return what a rank must hold, by the definition of the kind."""
    world = len(given)
    total = [sum(values) for values in zip(*given, strict=True)]
    part = len(given[0]) // world
    own = slice(rank * part, (rank + 1) * part)
    return {
        "all_reduce": total,
        "reduce_scatter": total[own],
        "all_gather": [value for values in given for value in values],
        "broadcast": given[0],
        "send_recv": given[(rank - 1) % world],
        "all_to_all": [value for values in given for value in values[own]],
    }[kind]


def test_one_flipped_element_is_counted() -> None:
    piece = Piece("all_reduce", 4096, 0, 2, "float32", on_device=False)
    piece.result.copy_(piece.expected)
    assert piece.wrong() == 0

    piece.result[17] += 1

    assert piece.wrong() == 1
