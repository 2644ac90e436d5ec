"""What compares ranks, on recorded jobs: matching without metadata, stragglers, and clocks with known errors."""

from __future__ import annotations

import functools
import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.digest.across import bring_together
from longpole.pipeline.reading import ReportOptions, read_digests
from longpole.ranks.clocks import RankTimes, estimate_clocks
from longpole.ranks.matching import match
from longpole.report.document import Headline
from longpole.settings import Settings
from tests.case_answers import CASES
from tests.collective_rows import moved
from tests.corpus.recordings import outcome_of

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.digest.across import Across
    from longpole.digest.rank_digest import RankDigest
    from longpole.report.document import Report

TORCHREC = "pytorch-torchrec"
DEVICE_SETS = (
    f"{TORCHREC}/sst_long_a2a_optimizer_2",
    f"{TORCHREC}/sst_long_a2a_optimizer_qcomm_trace",
    f"{TORCHREC}/sst_sleep_pl_dense_after_backward_2",
    f"{TORCHREC}/resnet18",
    "facebookresearch-param/dlrm_kineto_8ranks",
)
CASE_SETS = ("B064", "B073", "B074")
HOST_SETS = (
    ("own-torch-cpu/kineto/ddp2_slow_rank", 1),
    ("own-torch-2.13-cpu-gloo/ddp_cpu_4ranks", 2),
)


@functools.cache
def _digests(folder: Path) -> list[RankDigest]:
    digests, _ = read_digests([str(folder)], ReportOptions(use_cache=False, processes=1), Settings())
    return sorted(digests, key=lambda digest: digest.rank)


def _across(folder: Path) -> Across:
    across = bring_together(_digests(folder), Settings())
    assert across is not None
    return across


def _report(folder: Path) -> Report:
    report = outcome_of(folder)
    assert not isinstance(report, Exception)
    return report


# --- matching and splitting without metadata ----------------------------------------------------------------------


@pytest.mark.parametrize("name", DEVICE_SETS)
def test_collectives_without_metadata_are_matched_although_counts_differ(name: str, shared: Path) -> None:
    across = _across(shared / "corpus" / name)

    # What is not complete is what some rank's record does not hold: the first launches before it began.
    lacking = int((~across.matched.complete).sum())
    counts = [len(mine) for mine in across.instances.values()]
    assert lacking <= max(counts) - min(counts) + 2
    # Members of a collective end together, so a wrong match would show in ends that lie far apart.
    ends_ns = across.split.end_ns
    low = across.matched.first[:-1]
    apart_ns = np.maximum.reduceat(ends_ns, low) - np.minimum.reduceat(ends_ns, low)
    assert float(np.median(apart_ns[across.matched.complete])) < 200_000


@pytest.mark.parametrize(
    "name", [f"{TORCHREC}/sst_long_a2a_optimizer_2", f"{TORCHREC}/sst_sleep_pl_dense_after_backward_2"]
)
def test_rank_2_is_the_straggler_and_its_host_is_why(name: str, shared: Path) -> None:
    report = _report(shared / "corpus" / name)

    first = report.stragglers[0]
    assert (first.rank, first.reason) == (2, "host")
    assert first.share > 0.9
    assert first.evidence["host.python"] > 0.9 * first.late_ns
    assert isinstance(report.headline, Headline)
    assert report.headline.rank == 2
    for entry in report.collectives:
        assert entry.culprit_rank == 2
        waits = {int(rank): time for rank, time in entry.waiting_ns_by_rank.items() if isinstance(time, int)}
        assert waits[2] < 0.1 * min(waits[rank] for rank in (0, 1, 3))


def test_the_start_skew_of_dlrm_is_named_for_what_it_is(shared: Path) -> None:
    report = _report(shared / "corpus" / "facebookresearch-param" / "dlrm_kineto_8ranks")

    (late,) = report.stragglers
    assert (late.rank, late.reason) == (7, "profiler_start")
    assert isinstance(report.headline, Headline)
    assert "its profiler started 7.51 ms after the first one" in report.headline.says
    # Only the exchange that ranks entered before all of them recorded is withdrawn.
    split = {entry.kind: (entry.split, entry.count - entry.count_split) for entry in report.collectives}
    assert split == {"all_to_all": ("unknown", 1), "all_reduce": ("known", 0)}
    (finding,) = [finding for finding in report.integrity if finding.code == "rank.start_spread"]
    place = next(i for i, entry in enumerate(report.collectives) if entry.kind == "all_to_all")
    assert finding.voids[:2] == ["/unit/period_ns", f"/collectives/{place}/transfer_ns"]


@pytest.mark.parametrize(("name", "late"), HOST_SETS)
def test_a_backend_on_the_host_is_matched_by_order_and_size(name: str, late: int, shared: Path) -> None:
    across = _across(shared / "corpus" / name)

    assert across.matched.complete.all()
    assert set(across.split.culprit.tolist()) == {late}


def test_a_subgroup_of_a_backend_on_the_host_is_found_by_who_holds_it(shared: Path) -> None:
    across = _across(shared / "corpus" / "own-torch-cpu" / "kineto" / "collectives_3rank")

    assert across.matched.complete.all()
    members = np.diff(across.matched.first)
    assert sorted(set(members.tolist())) == [2, 3]


def test_a_fit_of_alpha_and_rate_on_the_host(shared: Path) -> None:
    """The recording's own page: alpha about 160 to 250 µs, 1.2 GB/s, one outlier of 8 ms at 4 KiB."""
    (entry,) = [
        e for e in _report(shared / "corpus/own-torch-cpu/kineto/ddp2_sweep").collectives if e.kind == "all_reduce"
    ]

    assert getattr(entry.model, "source", None) == "fit"
    assert 100_000 < getattr(entry.model, "alpha_ns", 0) < 400_000
    assert 0.5 < getattr(entry.model, "gb_per_s", 0.0) < 1.6
    assert entry.bound == "bandwidth"


# --- clocks with known errors -------------------------------------------------------------------------------------


def _sets(shared: Path) -> list[list[RankDigest]]:
    folders = [shared / "corpus" / name for name in DEVICE_SETS]
    folders += [CASES / name / "input" for name in CASE_SETS]
    return [_digests(folder) for folder in folders]


def _draw(digests: list[RankDigest], rank: int, rng: np.random.Generator) -> tuple[int, int]:
    """Put a random offset and drift on one rank's clock; return the error of the estimate and what it claims."""
    offset_ns, drift = int(rng.uniform(-5e6, 5e6)), float(rng.uniform(-50e-6, 50e-6))
    tables = {digest.rank: digest.instances for digest in digests}
    honest = tables[rank]
    # The drift turns about the recording's middle, as a clock's does that was set once.
    own = next(digest for digest in digests if digest.rank == rank)
    middle_ns = (own.start_ns + own.end_ns) // 2
    tables[rank] = moved(moved(moved(honest, -middle_ns), offset_ns, drift), middle_ns)
    matched, _ = match(
        tables,
        unit_names={digest.rank: [unit.name for unit in digest.rows[0].units] for digest in digests},
        world_size=own.world_size,
        offset_ns={digest.rank: digest.base_ns or 0 for digest in digests},
    )
    times = {d.rank: RankTimes(d.base_ns, d.start_ns, d.end_ns, f"host {d.rank}") for d in digests}
    clocks = estimate_clocks(matched, tables, times, Settings())
    first = digests[0]
    found_ns = clocks[rank].to_run_ns(tables[rank].end_ns) - clocks[first.rank].at(0)
    truth_ns = honest.end_ns + (own.base_ns or 0) - (first.base_ns or 0)
    claimed_ns = clocks[rank].uncertainty_ns
    assert claimed_ns is not None
    return int(np.abs(found_ns - truth_ns).max()), claimed_ns


def _draws(shared: Path, n: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(20_240_611)
    pairs = [(digests, digest.rank) for digests in _sets(shared) for digest in digests[1:]]
    return [_draw(*pairs[int(rng.integers(len(pairs)))], rng) for _ in range(n)]


def _check(draws: list[tuple[int, int]]) -> None:
    inside = sum(error <= claimed for error, claimed in draws)
    assert inside >= 0.9 * len(draws), f"the truth lies within the stated uncertainty in {inside} of {len(draws)} draws"
    error, claimed = (statistics.median(values) for values in zip(*draws, strict=True))
    assert claimed <= 3 * error, f"the median uncertainty is {claimed} ns, the median error {error} ns"


def test_known_offsets_and_drifts_lie_within_the_stated_uncertainty(shared: Path) -> None:
    _check(_draws(shared, 40))


@pytest.mark.slow
def test_known_offsets_and_drifts_in_200_draws(shared: Path) -> None:
    _check(_draws(shared, 200))
