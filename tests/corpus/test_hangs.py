"""Hangs that were caused on purpose: the ranks that were held back are the ones that are named."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from longpole.pipeline.hang import hang_of

if TYPE_CHECKING:
    from pathlib import Path

NVRX = "diagnostics/NVIDIA-nvidia-resiliency-ext"
OWN = "own-torch-cpu/fr-gloo"


@pytest.mark.parametrize("name", ["gpu_error_1st", "gpu_error_2nd", "lock_gil_1st", "lock_gil_2nd"])
def test_the_ranks_that_a_fault_was_injected_into_are_named(corpus: Path, name: str) -> None:
    """A Megatron job on 16 ranks with groups of six kinds; the injector's own log is the truth."""
    folder = corpus / NVRX / name
    found = re.search(r"Fault ranks: \[([\d, ]+)\]", (folder / "fault_injection.log").read_text(encoding="utf-8"))
    assert found is not None

    hang = hang_of([str(folder)])

    assert sorted(root.rank for root in hang.roots) == [int(rank) for rank in found[1].split(",")]
    assert hang.verdict == ("device" if name.startswith("gpu") else "host")
    assert (len(hang.ranks), hang.world_size, hang.missing) == (16, 16, [])


@pytest.mark.parametrize(
    ("name", "verdict", "rank"),
    [
        ("never_joins", "host", 2),
        ("mismatch_op", "mismatch", 1),
        ("mismatch_size", "mismatch", 1),
        ("p2p_hang", "host", 0),
    ],
)
def test_gloo_jobs_that_were_stopped(corpus: Path, name: str, verdict: str, rank: int) -> None:
    dumps = sorted(map(str, (corpus / OWN / name).glob("during_rank_?.gz")))

    hang = hang_of(dumps)

    assert (hang.verdict, [root.rank for root in hang.roots]) == (verdict, [rank])


@pytest.mark.parametrize(("name", "doing"), [("never_joins", "data_loader"), ("p2p_hang", "transfer")])
@pytest.mark.parametrize("stacks", ["pyspy_rank_?.txt.gz", "pyspy_rank_?.json.gz", "faulthandler_rank_?.txt.gz"])
def test_stacks_say_what_the_rank_did_instead(corpus: Path, name: str, doing: str, stacks: str) -> None:
    folder = corpus / OWN / name
    files = [*folder.glob("during_rank_?.gz"), *folder.glob(stacks)]

    hang = hang_of(sorted(map(str, files)))

    assert hang.roots[0].doing == doing


@pytest.mark.parametrize("name", ["ok", "slow_rank"])
@pytest.mark.parametrize("form", ["after_rank_?.gz", "after_rank_?.json.gz"])
def test_jobs_that_went_through_hang_nowhere(corpus: Path, name: str, form: str) -> None:
    hang = hang_of(sorted(map(str, (corpus / OWN / name).glob(form))))

    assert (hang.verdict, hang.roots) == ("none", [])


@pytest.mark.parametrize(
    ("name", "verdict", "ranks", "missing"),
    [
        ("healthy", "none", [], []),
        ("op_mismatch", "mismatch", [3], []),
        ("size_mismatch", "not_told", [], [1]),
        ("straggler_missing_rank", "host", [2], []),
    ],
)
def test_jobs_that_were_recorded_before_the_rule_was_written(
    corpus: Path, name: str, verdict: str, ranks: list[int], missing: list[int]
) -> None:
    """Of `size_mismatch` the rank with the other size left no dump: it crashed."""
    hang = hang_of([str(corpus / "own-torch-2.13-cpu-gloo" / "flight_recorder" / name)])

    assert (hang.verdict, [root.rank for root in hang.roots], hang.missing) == (verdict, ranks, missing)
