"""Which files make up one run (DESIGN §4, faces: several distinct jobs are listed and refused)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.digest.jobs import Run, choose_run
from longpole.errors import UsageError
from longpole.settings import Settings
from tests.build import Script, measure

if TYPE_CHECKING:
    from longpole.digest.rank_digest import RankDigest

EPOCH_NS = 1_700_000_000_000_000_000
HOUR_US = 3_600_000_000


def _digest(
    path: str,
    rank: int = 0,
    *,
    world_size: int | None = None,
    start_us: float | None = 0,
    assumed: bool = False,
    hostname: str = "",
) -> RankDigest:
    """Digest a record of 100 µs that starts so many µs after the epoch; None for a file that does not say."""
    script = Script(rank=rank, world_size=world_size, path=path, rank_assumed=assumed, hostname=hostname)
    script.base_ns = None if start_us is None else EPOCH_NS + round(start_us * 1000)
    script.step(0, 0, 100)
    script.kernel(20, 60)
    return measure(script)


def _choose(digests: list[RankDigest], job: int | None = None) -> Run:
    return choose_run(digests, job, Settings())


def _paths(run: Run) -> list[str]:
    return [digest.path for digest in run.digests]


def test_the_ranks_of_one_job_are_one_run_in_order() -> None:
    run = _choose([_digest("t/b.json", 1, world_size=2), _digest("t/a.json", 0, world_size=2)])

    assert [digest.rank for digest in run.digests] == [0, 1]
    assert run.displaced == []


def test_jobs_of_other_world_sizes_are_listed_and_refused() -> None:
    digests = [_digest("t/a.json", 0, world_size=2), _digest("t/b.json", 0, world_size=4)]

    with pytest.raises(UsageError, match="2 distinct runs here; choose one with --job N") as error:
        _choose(digests)

    assert "1  1 of 2 ranks, recorded at 2023-11-14 22:13:20 UTC: t/a.json" in str(error.value)
    assert "2  1 of 4 ranks" in str(error.value)
    assert error.value.exit_code == 2


def test_a_job_is_picked_by_its_number() -> None:
    digests = [_digest("t/a.json", 0, world_size=2), _digest("t/b.json", 0, world_size=4)]

    assert _paths(_choose(digests, 2)) == ["t/b.json"]


@pytest.mark.parametrize("job", [0, 3, -1])
def test_a_job_that_does_not_exist_is_refused(job: int) -> None:
    digests = [_digest("t/a.json", 0, world_size=2), _digest("t/b.json", 0, world_size=4)]

    with pytest.raises(UsageError, match=f"--job {job}: there are 2 runs here"):
        _choose(digests, job)


def test_the_only_job_may_be_named_too() -> None:
    assert _paths(_choose([_digest("t/a.json")], 1)) == ["t/a.json"]


def test_recordings_far_apart_in_time_are_distinct() -> None:
    """More than an hour in which nothing was recorded."""
    near = [_digest("t/a.json", 0), _digest("t/b.json", 1, start_us=HOUR_US)]
    far = [_digest("t/a.json", 0), _digest("t/b.json", 1, start_us=HOUR_US + 101)]

    assert len(_choose(near).digests) == 2
    assert _paths(_choose(far, 2)) == ["t/b.json"]


def test_one_rank_recorded_twice_in_one_folder_is_two_runs() -> None:
    """The profiler's schedule repeats: rank 0 and 1 each wrote a file per cycle.

    rank 0  ├─ a ─┤        ├─ c ─┤
    rank 1  ├─ b ─┤        ├─ d ─┤
    """
    digests = [
        _digest("t/a.json", 0),
        _digest("t/b.json", 1, start_us=5),
        _digest("t/c.json", 0, start_us=500),
        _digest("t/d.json", 1, start_us=505),
    ]

    assert _paths(_choose(digests, 1)) == ["t/a.json", "t/b.json"]
    assert _paths(_choose(digests, 2)) == ["t/c.json", "t/d.json"]


def test_folders_with_the_same_ranks_are_distinct_runs() -> None:
    digests = [_digest(f"{folder}/{rank}.json", rank) for folder in ("before", "after") for rank in (0, 1)]

    assert _paths(_choose(digests, 2)) == ["after/0.json", "after/1.json"]


def test_a_folder_per_rank_is_one_run() -> None:
    digests = [_digest(f"rank{rank}/trace.json", rank) for rank in (0, 1)]

    assert len(_choose(digests).digests) == 2


def test_of_two_files_of_one_rank_at_one_time_the_first_is_kept() -> None:
    """The same recording under two names."""
    run = _choose([_digest("t/a.json", 0), _digest("t/copy.json", 0), _digest("t/b.json", 1)])

    assert _paths(run) == ["t/a.json", "t/b.json"]
    assert [digest.path for digest in run.displaced] == ["t/copy.json"]


# --- files that do not say their rank -----------------------------------------------------------------------------


def test_files_without_a_rank_get_the_lowest_free_ones_in_order() -> None:
    """Case B034."""
    run = _choose([_digest(f"t/{name}.json", assumed=True) for name in "abc"])

    assert {digest.path: digest.rank for digest in run.digests} == {"t/a.json": 0, "t/b.json": 1, "t/c.json": 2}


def test_a_rank_that_a_file_states_is_not_given_to_another() -> None:
    run = _choose([_digest("t/a.json", assumed=True), _digest("t/b.json", 0), _digest("t/c.json", assumed=True)])

    assert {digest.path: digest.rank for digest in run.digests} == {"t/a.json": 1, "t/b.json": 0, "t/c.json": 2}


def test_the_findings_of_a_file_follow_its_rank() -> None:
    run = _choose([_digest(f"t/{name}.json", assumed=True) for name in "ab"])

    assert {finding.rank for finding in run.digests[1].findings} == {1}


# --- files without a clock ----------------------------------------------------------------------------------------


def test_files_without_a_clock_stay_together() -> None:
    digests = [_digest("t/a.json", 0, start_us=None), _digest("t/b.json", 1, start_us=None)]

    assert len(_choose(digests).digests) == 2


def test_a_file_without_a_clock_joins_the_others() -> None:
    digests = [_digest("t/a.json", 0), _digest("t/b.json", 1, start_us=None)]

    assert len(_choose(digests).digests) == 2
