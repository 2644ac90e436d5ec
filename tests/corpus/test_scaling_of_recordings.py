"""Comparing real recordings: what is one job in two variants, what is not, and that losses add up."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import pytest

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.scaling import scaling
from longpole.records.ledger import Unknown
from longpole.report.scaling import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longpole.report.scaling import Scaling

RECORDED: Final = (
    "pytorch-torchrec/resnet18",
    "pytorch-torchrec/sst_long_a2a_optimizer_2",
    "pytorch-torchrec/sst_long_a2a_optimizer_qcomm_trace",
    "pytorch-torchrec/sst_sleep_pl_dense_after_backward_2",
    "own-torch-cpu/kineto/ddp2_balanced",
    "own-torch-cpu/kineto/ddp2_slow_rank",
    "own-torch-cpu/kineto/ddp2_fsdp",
    "own-torch-cpu/kineto/ddp2_sweep",
    "own-torch-cpu/kineto/single/compute.pt.trace.json.gz",
)
PAIRS: Final = tuple(combinations(RECORDED, 2))


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache for all comparisons, so that each recording is read once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGPOLE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def compare(corpus: Path, *names: str) -> Scaling:
    return scaling([corpus / name for name in names], options=ReportOptions(processes=1))


@pytest.mark.parametrize(
    "pair", list(combinations(RECORDED, 2)), ids=lambda pair: " ".join(n.split("/")[-1] for n in pair)
)
def test_the_parts_of_a_loss_add_up(corpus: Path, pair: tuple[str, str]) -> None:
    result = compare(corpus, *pair)

    for run in result.runs:
        if isinstance(run.loss_ns, Unknown):
            assert not result.comparable
            assert run.parts == []
            continue
        assert [part.part for part in run.parts] == list(PARTS)
        assert sum(part.loss_ns for part in run.parts if isinstance(part.loss_ns, int)) == run.loss_ns
        assert sum(run.by_object_ns.values()) == run.loss_ns


@pytest.mark.parametrize("other", RECORDED[1:4])
def test_another_model_is_another_job(corpus: Path, other: str) -> None:
    """A vision model on two ranks and a recommender on four."""
    result = compare(corpus, RECORDED[0], other)

    assert not result.comparable
    assert isinstance(result.runs[1].efficiency, Unknown)


@pytest.mark.parametrize("other", ["ddp2_fsdp", "ddp2_sweep", "single/compute.pt.trace.json.gz"])
def test_another_script_is_another_job(corpus: Path, other: str) -> None:
    assert not compare(corpus, "own-torch-cpu/kineto/ddp2_balanced", f"own-torch-cpu/kineto/{other}").comparable


def test_a_slow_rank_costs_compute_and_communication(corpus: Path) -> None:
    """The same script, with some 42 ms more work on rank 1: half of that in the mean, and waiting on rank 0."""
    result = compare(corpus, "own-torch-cpu/kineto/ddp2_balanced", "own-torch-cpu/kineto/ddp2_slow_rank")

    assert result.comparable
    slow = result.runs[1]
    assert isinstance(slow.efficiency, float)
    assert 0.5 < slow.efficiency < 0.8
    assert slow.by_object_ns["compute"] > 15_000_000
    assert slow.by_object_ns["collective"] > 8_000_000
    assert any("only ddp2_slow_rank has aten::matmul" in difference.says for difference in result.differences)


def test_variants_of_one_job_are_compared(corpus: Path) -> None:
    assert compare(corpus, *RECORDED[1:3]).comparable
