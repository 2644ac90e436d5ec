"""The blocks of a report that compare ranks, on jobs of a few spans a rank."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.digest.jobs import Run
from longpole.records.collectives import CollectiveEntry, ComputeOverlap, StragglerEntry
from longpole.records.critical_path import PathAnswer
from longpole.records.instances import Group, Instances
from longpole.records.ledger import Unknown
from longpole.report.build import build_report
from longpole.report.document import Headline, Report, SelectionEntry
from longpole.report.text.page import render_text
from longpole.settings import Settings
from tests.build import Script, measure
from tests.case_answers import CASES
from tests.collective_rows import Op, receive, send, table, world
from tests.laws import check_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.digest.rank_digest import RankDigest

EPOCH_NS = 1_700_000_000_000_000_000
STEP = 1000.0


def script(
    rank: int,
    *,
    work: Sequence[float] = (300, 300, 300),
    host_first: float = 0,
    shapes: str = "[[64, 64]]",
    start: float = 0,
) -> Script:
    """Three steps of 1 ms: the host does something, then a kernel, then a collective up to the step's end."""
    made = Script(rank=rank, world_size=2, path=f"rank{rank}.json", base_ns=EPOCH_NS)
    for number, busy in enumerate(work):
        begin = STEP * number
        made.step(number, max(begin, start), begin + STEP)
        at = max(begin + host_first, start)
        made.op("aten::mm", at + 1, at + 9, shapes=shapes)
        made.kernel(at + 10, at + 10 + busy, made.launch(at + 2, at + 8))
        made.collective(at + 10 + busy, begin + STEP, made.launch(at + 10, at + 12))
    return made


def ops(*starts: float, n: int = 2, **rest: int) -> Instances:
    """One collective a step, from a start within it to the step's end."""
    spans = [
        Op(STEP * number + start, STEP * (number + 1), unit=number, sequence=number, **rest)  # type: ignore[arg-type]
        for number, start in enumerate(starts)
    ]
    return table(*spans, groups=world(n))


def digests_of(scripts: Mapping[int, Script], tables: Mapping[int, Instances]) -> list[RankDigest]:
    return [
        msgspec.structs.replace(measure(made), instances=tables.get(rank, Instances.empty()))
        for rank, made in sorted(scripts.items())
    ]


def report_of(digests: list[RankDigest], settings: Settings | None = None) -> Report:
    report = build_report(Run(digests, []), [], SelectionEntry(), "0", settings or Settings(), PathAnswer(1))
    check_report(report)
    return report


def two(late: float = 700, **second: object) -> Report:
    """Rank 1 enters the collective of each step at `late` µs, rank 0 at 310 µs."""
    scripts = {0: script(0), 1: script(1, **{"work": (late - 10,) * 3, **second})}  # type: ignore[arg-type]
    return report_of(digests_of(scripts, {0: ops(310, 310, 310), 1: ops(late, late, late)}))


def entry_of(report: Report) -> CollectiveEntry:
    (entry,) = report.collectives
    return entry


def late_of(report: Report) -> StragglerEntry:
    (entry,) = report.stragglers
    return entry


# --- collectives --------------------------------------------------------------------------------------------------


def test_sums_are_over_the_steady_units_and_the_members() -> None:
    entry = entry_of(two())

    assert (entry.count, entry.count_split, entry.split) == (3, 3, "known")
    assert entry.duration_ns == 3 * (690 + 300) * 1000
    assert entry.transfer_ns == 3 * 300 * 1000
    assert entry.skew_ns == 3 * 390 * 1000
    assert entry.waiting_ns_by_rank == {"0": 3 * 390 * 1000, "1": 0}
    assert entry.bytes == 3 << 20
    assert entry.algbw_gb_per_s == pytest.approx((1 << 20) / 300_000)
    assert entry.bound == "unknown"
    assert (entry.culprit_rank, entry.culprit_share, entry.culprit_by_unit) == (1, 1.0, [1, 1, 1])
    assert [(row.rank, row.for_rank, row.waiting_ns, row.count) for row in entry.waits] == [(0, 1, 1_170_000, 3)]


def test_more_waiting_than_half_is_bound_by_skew() -> None:
    assert entry_of(two(900)).bound == "skew"


def test_the_ledger_tells_waiting_from_moving() -> None:
    report = two()

    assert [row.ledger.objects["collective"].waiting_ns for row in report.ranks] == [1_170_000, 0]
    assert report.ledger.objects["collective"].waiting_ns == 195_000


def test_collectives_at_once_are_waited_for_once() -> None:
    """Both operations wait for rank 1 from 310 to 700 µs."""
    tables = {}
    for rank, start in ((0, 310), (1, 700)):
        spans = [Op(STEP * n + start, STEP * (n + 1), unit=n, sequence=2 * n + i) for n in range(3) for i in (0, 1)]
        tables[rank] = table(*spans, groups=world(2))
    report = report_of(digests_of({0: script(0), 1: script(1, work=(690,) * 3)}, tables))

    assert report.ranks[0].ledger.objects["collective"].waiting_ns == 1_170_000
    assert late_of(report).late_ns == 390_000


def test_an_incomplete_group_accuses_nobody() -> None:
    report = report_of(digests_of({0: script(0)}, {0: ops(310, 310, 310)}))

    entry = entry_of(report)
    assert entry.split == "unknown"
    assert entry.members_present == [0]
    assert isinstance(entry.culprit_rank, Unknown)
    assert not any((report.stragglers, entry.waits))
    assert entry.rate_from == "duration"
    (finding,) = [finding for finding in report.integrity if finding.code == "rank.missing"]
    assert finding.voids == [
        f"/collectives/0/{name}" for name in ("transfer_ns", "skew_ns", "culprit_rank", "waiting_ns_by_rank")
    ]


def test_one_group_that_is_incomplete_leaves_the_others_alone() -> None:
    """Ranks 0 and 1 of four: their own group is whole, the world is not."""
    groups = [Group("1", "TP", [0, 1], 2), Group("0", "default_pg", [0, 1, 2, 3], 4)]
    tables = {}
    for rank, start in ((0, 310.0), (1, 700.0)):
        spans = [Op(STEP * n + start, STEP * (n + 1) - 20, group=0, unit=n, sequence=n) for n in range(3)]
        spans += [Op(STEP * (n + 1) - 15, STEP * (n + 1) - 5, group=1, unit=n, sequence=n) for n in range(3)]
        tables[rank] = table(*spans, groups=groups)
    report = report_of(digests_of({0: script(0), 1: script(1, work=(690,) * 3)}, tables))

    assert {entry.group: entry.split for entry in report.collectives} == {"1": "known", "0": "unknown"}
    assert {entry.group: entry.role for entry in report.collectives} == {"1": "tensor parallel", "0": "all ranks"}


def test_a_run_without_collectives_has_none_of_this() -> None:
    plain = Script(rank=0, base_ns=EPOCH_NS)
    plain.step(0, 0, 100)
    plain.kernel(20, 90, plain.launch(5, 10))

    report = report_of([measure(plain)])

    assert not any((report.collectives, report.stragglers, report.overlap, report.links, report.pipeline))
    assert "COLLECTIVES" not in render_text(report, width=100, color=False)


# --- stragglers ---------------------------------------------------------------------------------------------------


def test_slower_work_is_as_many_kernels_of_the_same_shapes() -> None:
    late = late_of(two())

    assert (late.rank, late.reason) == (1, "slower_work")
    assert late.evidence == {"compute": 390_000}
    assert late.share == 1.0
    assert late.in_units == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]


def test_larger_inputs_are_more_work() -> None:
    assert late_of(two(shapes="[[128, 64]]")).reason == "more_work"


def test_without_shapes_more_and_slower_work_look_alike() -> None:
    late = late_of(two(shapes=""))

    assert late.reason == "unknown"
    assert "shapes are not recorded" in late.says


def test_a_host_that_launches_later() -> None:
    late = late_of(two(work=(300, 300, 300), host_first=390))

    assert late.reason == "host"
    assert late.evidence["host.python"] == 390_000


def test_a_rank_that_is_late_now_and_then_is_named_with_its_units() -> None:
    scripts = {0: script(0), 1: script(1, work=(300, 690, 300))}
    report = report_of(digests_of(scripts, {0: ops(310, 310, 310), 1: ops(310, 700, 310)}))

    late = late_of(report)
    assert late.in_units == ["ProfilerStep#1"]
    assert "in 1 of 3 steps" in late.says
    assert entry_of(report).culprit_by_unit == [None, 1, None]
    assert entry_of(report).culprit_share == pytest.approx(1 / 3)


def test_ranks_that_are_late_in_turn_are_no_single_culprit() -> None:
    scripts = {0: script(0, work=(690, 300, 690)), 1: script(1, work=(300, 690, 300))}
    report = report_of(digests_of(scripts, {0: ops(700, 310, 700), 1: ops(310, 700, 310)}))

    assert [entry.rank for entry in report.stragglers] == [0, 1]
    assert entry_of(report).culprit_by_unit == [0, 1, 0]
    assert entry_of(report).culprit_rank == 0  # two thirds of the waiting


def test_waiting_under_compute_needs_no_explanation() -> None:
    """Rank 0 waits 390 µs, of which it computes 290: only 100 µs are anybody's loss."""
    hidden = Script(rank=0, world_size=2, path="rank0.json", base_ns=EPOCH_NS)
    late = Script(rank=1, world_size=2, path="rank1.json", base_ns=EPOCH_NS)
    for made, first in ((hidden, 10), (late, 110)):
        for n in range(3):
            begin = STEP * n
            made.step(n, begin, begin + STEP)
            made.op("aten::mm", begin + first - 9, begin + first - 1, shapes="[[64, 64]]")
            made.kernel(begin + first, begin + first + 590, made.launch(begin + first - 8, begin + first - 2))
            made.collective(
                begin + (310 if made is hidden else 700), begin + STEP, made.launch(begin + first, begin + first + 2)
            )
    report = report_of(digests_of({0: hidden, 1: late}, {0: ops(310, 310, 310), 1: ops(700, 700, 700)}))

    assert late_of(report).late_ns == 390_000
    assert late_of(report).reason == "host"
    assert late_of(report).evidence == {"host.python": 100_000}


def test_a_report_loads_no_fitting_where_nothing_is_fitted() -> None:
    code = (
        "import sys\n"
        "from longpole.pipeline.reading import ReportOptions\n"
        "from longpole.pipeline.report import build_report\n"
        f"build_report([{str(CASES / 'B074' / 'input')!r}], ReportOptions(use_cache=False, processes=1))\n"
        "assert 'scipy.optimize' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


def test_little_waiting_names_nobody() -> None:
    report = two(315)

    assert report.stragglers == []
    assert isinstance(report.headline, Headline)
    assert report.headline.object != "waiting"


def test_the_page_says_once_why_nothing_is_split() -> None:
    page = render_text(report_of(digests_of({0: script(0)}, {0: ops(310, 310, 310)})), width=100, color=False)

    assert page.count("? waiting plus moving, cannot be split: not every member of the group has a trace") == 1
    assert "all_reduce all ranks (waiting and transfer, who was last)" in page
    assert "at least 1.52 GB/s" in page


def test_the_page_says_who_waits_for_whom_and_how_good_the_clocks_are() -> None:
    page = render_text(two(900), width=120, color=False)

    assert "THE LONG POLE  rank 1 keeps others waiting 590 µs per step" in page
    assert "all_reduce all ranks" in page
    assert "rank 1 is last always" in page
    assert "clocks: base times, uncertain by at most" in page


# --- recordings that do not fit together --------------------------------------------------------------------------


def test_a_profiler_that_started_late_is_named_and_its_collective_withdrawn() -> None:
    """One step; rank 1's record begins 600 µs into it, when rank 0 waits already."""
    scripts = {0: script(0, work=(300,)), 1: script(1, work=(80,), start=600)}
    report = report_of(digests_of(scripts, {0: ops(310), 1: ops(700)}))

    late = late_of(report)
    assert (late.rank, late.reason) == (1, "profiler_start")
    assert entry_of(report).split == "unknown"
    (finding,) = [finding for finding in report.integrity if finding.code == "rank.start_spread"]
    assert "/collectives/0/culprit_rank" in finding.voids
    assert "/collectives" not in finding.voids


def test_a_rank_that_shares_nothing_is_of_another_job() -> None:
    """Rank 1's sequence numbers are those of another day."""
    scripts = {0: script(0), 1: script(1)}
    other = table(*(Op(STEP * n + 310, STEP * (n + 1), unit=n, sequence=900 + n) for n in range(3)), groups=world(2))

    report = report_of(digests_of(scripts, {0: ops(310, 310, 310), 1: other}))

    (finding,) = [finding for finding in report.integrity if finding.code == "rank.shares_nothing"]
    assert finding.count == 2
    assert "/collectives/0/skew_ns" in finding.voids
    assert report.stragglers == []


def test_ranks_that_recorded_other_steps_are_not_compared() -> None:
    later = script(1)
    for row in later.host:
        row.name = row.name.replace("ProfilerStep#", "ProfilerStep#1")
    other = table(*(Op(STEP * n + 310, STEP * (n + 1), unit=n, sequence=900 + n) for n in range(3)), groups=world(2))

    report = report_of(digests_of({0: script(0), 1: later}, {0: ops(310, 310, 310), 1: other}))

    codes = [finding.code for finding in report.integrity]
    assert "rank.units_differ" in codes
    assert report.stragglers == []
    assert all(entry.split == "unknown" for entry in report.collectives)


def test_clocks_without_a_base_are_aligned_by_ends_and_said_so() -> None:
    scripts = {0: script(0), 1: script(1, work=(690,) * 3)}
    for made in scripts.values():
        made.base_ns = None
    report = report_of(digests_of(scripts, {0: ops(310, 310, 310), 1: ops(700, 700, 700)}))

    assert [entry.method for entry in report.clock] == ["matched_ends", "matched_ends"]
    assert late_of(report).rank == 1
    assert "clock.not_aligned" not in [finding.code for finding in report.integrity]


def test_clocks_that_nothing_aligns_void_what_compares_them() -> None:
    scripts = {0: script(0), 1: script(1)}
    for made in scripts.values():
        made.base_ns = None
    lone = {
        rank: table(*(Op(STEP * n + 310, STEP * (n + 1), unit=n) for n in range(1)), groups=world(2))
        for rank in scripts
    }
    report = report_of(digests_of(scripts, lone))

    (finding,) = [finding for finding in report.integrity if finding.code == "clock.not_aligned"]
    assert finding.voids[:2] == ["/clock", "/collectives/0/transfer_ns"]
    assert [entry.method for entry in report.clock] == ["none", "none"]
    assert entry_of(report).split == "unknown"
    # Each rank's own figures stand.
    assert all(row.ledger.device.compute_ns == 900_000 for row in report.ranks)


# --- links, pipelines, overlap ------------------------------------------------------------------------------------


def _ring(rates: Mapping[tuple[int, int], float]) -> Report:
    """Sends of 1 MB between ranks, each pair at its own rate in GB/s."""
    spans: dict[int, list[Op]] = {rank: [] for rank in range(4)}
    at = 20.0
    for (source, target), rate in rates.items():
        took = 1000 / rate
        spans[source].append(send(at, at + took, target, bytes=1_000_000, unit=0))
        spans[target].append(receive(at, at + took, source, bytes=1_000_000, unit=0))
        at += took
    scripts = {rank: script(rank) for rank in range(4)}
    together = table(Op(980, 990, sequence=1, unit=0), groups=world(4))
    tables = {}
    for rank, mine in spans.items():
        tables[rank] = table(*mine, Op(980, 990, sequence=1, unit=0), groups=world(4))
    assert len(together) == 1
    return report_of(digests_of(scripts, tables))


def test_the_matrix_lists_pairs_and_marks_slow_ones() -> None:
    report = _ring({(0, 1): 20, (1, 2): 20, (2, 3): 4, (3, 0): 20})

    rates = {(row.from_rank, row.to_rank): (row.gb_per_s, row.slow) for row in report.links}
    assert rates == {(0, 1): (20.0, False), (1, 2): (20.0, False), (2, 3): (4.0, True), (3, 0): (20.0, False)}
    assert "slow 1 link: 2→3 4 GB/s" in render_text(report, width=100, color=False)


def test_two_pairs_have_no_slow_one() -> None:
    assert not any(row.slow for row in _ring({(0, 1): 20, (1, 2): 2}).links)


def test_sends_down_and_up_again_are_a_pipeline() -> None:
    """Two micro-batches go down 0 → 1, their gradients come back."""
    down = [(20, 30), (100, 110)]
    up = [(400, 410), (500, 510)]
    tables = {
        0: table(*(send(a, b, 1, unit=0) for a, b in down), *(receive(a, b, 1, unit=0) for a, b in up)),
        1: table(*(receive(a, b, 0, unit=0) for a, b in down), *(send(a, b, 0, unit=0) for a, b in up)),
    }
    report = report_of(digests_of({0: script(0, work=(300,)), 1: script(1, work=(500,))}, tables))

    (pipeline,) = report.pipeline
    assert pipeline.stages == [[0], [1]]
    assert pipeline.micro_batches == 2
    assert pipeline.compute_ns == [300_000, 500_000]
    assert pipeline.imbalance == pytest.approx(0.25)
    assert pipeline.bubble_share == pytest.approx(0.6)


def test_sends_in_a_circle_are_no_pipeline() -> None:
    assert _ring({(0, 1): 20, (1, 2): 20, (2, 3): 20, (3, 0): 20}).pipeline == []


def test_overlap_compares_what_also_ran_alone() -> None:
    """Kernels take 1.4 times, transfers twice as long together: 1/1.4 + 1/2 - 1 over 1/2."""
    spans = {rank: [] for rank in (0, 1)}  # type: dict[int, list[Op]]
    for rank, mine in spans.items():
        for i in range(4):
            mine.append(Op(100 * i, 100 * i + 10, sequence=2 * i, unit=0, exposed=10))
            mine.append(Op(100 * i + 20, 100 * i + 40, sequence=2 * i + 1, unit=0, exposed=0))
        del rank
    tables = {rank: table(*mine, groups=world(2)) for rank, mine in spans.items()}
    digests = digests_of({0: script(0), 1: script(1)}, tables)
    for digest in digests:
        digest.rows[0].overlap = ComputeOverlap(beside_ns=1400, compared_ns=1400, alone_ns=1000)

    (overlap,) = report_of(digests).overlap

    assert overlap.slowdown == {"compute": pytest.approx(1.4), "collective": pytest.approx(2.0)}
    assert overlap.efficiency == pytest.approx((1 / 1.4 + 1 / 2 - 1) / (1 / 2))
