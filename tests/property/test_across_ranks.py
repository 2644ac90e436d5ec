"""Laws of matching and splitting, on jobs made at random whose truth is known.

A job is a list of collectives over random groups of its ranks. Each rank arrives when it arrives; all members leave
together, within the time the bytes need. What a rank's record says of them varies: ids, sequences, nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longpole.digest.across import bring_together
from longpole.ranks.clocks import estimate_clocks
from longpole.ranks.matching import match
from longpole.ranks.split import How, split
from longpole.records.instances import Group, Instances
from longpole.settings import Settings
from tests.collective_rows import UNITS, Op, exact_clocks, moved, table, times_of

if TYPE_CHECKING:
    from longpole.ranks.matching import Matched

KINDS = ("all_reduce", "all_gather", "reduce_scatter")
GROUPINGS = (
    [[0, 1, 2, 3]],
    [[0, 1], [2, 3]],
    [[0, 2], [1, 3]],
)


@dataclass(frozen=True)
class Job:
    """Tables by rank, and the truth: for each rank, the number of the collective that each of its rows is."""

    tables: dict[int, Instances]
    truth: dict[int, list[int]]


@st.composite
def jobs(draw: st.DrawFn, said: tuple[str, ...] = ("ids", "sequences", "nothing")) -> Job:
    """Draw a job of four ranks."""
    what = draw(st.sampled_from(said))
    ops: dict[int, list[Op]] = {rank: [] for rank in range(4)}
    truth: dict[int, list[int]] = {rank: [] for rank in range(4)}
    groups = [Group(str(g), "", sorted(ranks), len(ranks)) for g, some in enumerate(GROUPINGS) for ranks in some]
    free = dict.fromkeys(range(4), 0)
    sequence: dict[int, int] = {}
    number = 0
    for unit in (1, 2):
        for _ in range(draw(st.integers(0, 4))):
            grouping = draw(st.integers(0, len(GROUPINGS) - 1))
            kind, size = draw(st.sampled_from(KINDS)), draw(st.sampled_from((8, 64, 512)))
            for ranks in GROUPINGS[grouping]:
                place = next(
                    i for i, group in enumerate(groups) if group.members == ranks and group.name == str(grouping)
                )
                arrivals = {rank: free[rank] + draw(st.integers(1, 50)) for rank in ranks}
                end = max(arrivals.values()) + draw(st.integers(1, 20))
                sequence[place] = sequence.get(place, 0) + 1
                for rank in ranks:
                    ids = number * 7919 if what == "ids" else -1
                    count = sequence[place] if what != "nothing" else -1
                    op = Op(arrivals[rank], end, kind, place, bytes=size, unit=unit, comms_id=ids, sequence=count)
                    ops[rank].append(op)
                    truth[rank].append(number)
                    free[rank] = end
                number += 1
    return Job({rank: table(*mine, groups=groups) for rank, mine in ops.items()}, truth)


def _match(tables: dict[int, Instances]) -> Matched:
    units = dict.fromkeys(tables, UNITS)
    return match(tables, unit_names=units, world_size=4, offset_ns=dict.fromkeys(tables, 0))[0]


def _groups(matched: Matched) -> set[frozenset[tuple[int, int]]]:
    pairs = list(zip(matched.rank.tolist(), matched.instance.tolist(), strict=True))
    return {frozenset(pairs[int(a) : int(b)]) for a, b in zip(matched.first[:-1], matched.first[1:], strict=True)}


@given(jobs())
def test_matching_finds_the_collectives_that_were(job: Job) -> None:
    matched = _match(job.tables)

    wanted: dict[int, set[tuple[int, int]]] = {}
    for rank, numbers in job.truth.items():
        for place, number in enumerate(numbers):
            wanted.setdefault(number, set()).add((rank, place))
    assert _groups(matched) == {frozenset(members) for members in wanted.values()}
    assert matched.complete.all()


@given(jobs(), st.permutations(range(4)))
def test_the_order_of_the_ranks_changes_nothing(job: Job, order: list[int]) -> None:
    one, other = _match(job.tables), _match({rank: job.tables[rank] for rank in order})

    for name in ("first", "rank", "instance", "kind", "group_of", "expected", "complete", "bytes", "why"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


@given(jobs(), st.integers(-(10**15), 10**15))
def test_shifting_all_clocks_changes_nothing(job: Job, by_ns: int) -> None:
    later = {rank: moved(mine, by_ns) for rank, mine in job.tables.items()}

    found = []
    for tables in (job.tables, later):
        if not any(len(mine) for mine in tables.values()):
            return
        matched = match(
            tables, unit_names=dict.fromkeys(tables, UNITS), world_size=4, offset_ns=dict.fromkeys(tables, 0)
        )[0]
        held = {rank: mine for rank, mine in tables.items() if len(mine)}
        clocks = (
            exact_clocks(range(4)) if len(held) < 4 else estimate_clocks(matched, tables, times_of(tables), Settings())
        )
        result = split(matched, tables, clocks, Settings())
        found.append((_groups(matched), result.skew_ns.tolist(), result.transfer_ns.tolist(), result.culprit.tolist()))
    assert found[0] == found[1]


@given(jobs(), st.integers(0, 30_000))
def test_the_rank_that_waits_is_never_the_culprit(job: Job, uncertainty_ns: int) -> None:
    matched = _match(job.tables)
    result = split(matched, job.tables, exact_clocks(range(4), uncertainty_ns), Settings())

    starts_ns = matched.column(job.tables, "start_ns")
    for m in range(len(matched)):
        k = range(int(matched.first[m]), int(matched.first[m + 1]))
        culprit = int(result.culprit[m])
        if culprit < 0:
            continue
        (own,) = [i for i in k if matched.rank[i] == culprit]
        assert result.skew_ns[own] == 0
        assert all(starts_ns[i] < starts_ns[own] - uncertainty_ns for i in k if i != own)


@given(jobs())
def test_waiting_and_moving_make_up_each_member(job: Job) -> None:
    matched = _match(job.tables)
    result = split(matched, job.tables, exact_clocks(range(4)), Settings())

    durations_ns = matched.column(job.tables, "end_ns") - matched.column(job.tables, "start_ns")
    assert (result.how == int(How.ALIGNED)).all()
    assert (result.skew_ns + result.transfer_ns == durations_ns).all()
    assert (result.skew_ns >= 0).all()
    # Who arrived last waited for nobody, and moved what there was to move.
    low = matched.first[:-1]
    assert len(matched) == 0 or (np.minimum.reduceat(result.skew_ns, low) == 0).all()


@given(jobs(), st.sets(st.integers(0, 3), min_size=1, max_size=3))
def test_ranks_that_are_missing_take_only_their_own_groups_with_them(job: Job, gone: set[int]) -> None:
    kept = {rank: mine for rank, mine in job.tables.items() if rank not in gone}

    matched = _match(kept)
    result = split(matched, kept, exact_clocks(list(kept)), Settings())

    for m in range(len(matched)):
        members = set(matched.group[int(matched.group_of[m])].members)
        assert bool(matched.complete[m]) == members.isdisjoint(gone)
        assert (result.how[m] == int(How.UNKNOWN)) == bool(members & gone)
        assert result.culprit[m] == -1 or members.isdisjoint(gone)


@given(jobs(said=("sequences",)))
def test_a_kind_that_one_rank_does_not_name_is_the_others_kind(job: Job) -> None:
    """Rank 3's kernels are all called SendRecv."""
    blind = job.tables[3]
    columns = {name: blind.column(name).copy() for name in blind.columns}
    columns["kind"][:] = 12  # the empty name
    tables = {**job.tables, 3: Instances.from_columns(groups=blind.groups, dtypes=blind.dtypes, **columns)}

    assert _groups(_match(tables)) == _groups(_match(job.tables))


def test_one_rank_without_collectives_has_nothing_in_common() -> None:
    from tests.build import Script, measure

    script = Script(base_ns=10**18)
    script.kernel(0, 10, script.launch(0, 1))

    assert bring_together([measure(script)], Settings()) is None
