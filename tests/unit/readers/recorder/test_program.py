"""What programs say of themselves: items, queues, and collectives that ranks never came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from longpole.pipeline.run_records import make_record
from longpole.records.ledger import Unknown
from longpole.report.program import never_entered
from longpole.settings import Settings
from tests.span_scripts import BOOT_NS, EPOCH_NS, MS, SpanScript, report_of

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report


def loop(rank: int, items: list[int | None], **header: Any) -> SpanScript:
    """Steps of 10 ms on one of two ranks."""
    script = SpanScript(pid=10 + rank, rank=rank, world_size=2, **header)
    for k, count in enumerate(items):
        script.span("train", 10 * k, 10 * k + 8, "compute")
        script.unit(f"step {k}", 10 * k, 10 * (k + 1), items=count)
    script.close(10 * len(items))
    return script


def test_items_of_all_ranks_are_added_and_their_rate_goes_by_the_periods(tmp_path: Path) -> None:
    """Units with a period: steps 1 and 2, with 24 + 40 items in 2 · 10 ms."""
    loop(0, [8, 12, 20], item_kind="sample").write(tmp_path / "0.spans.jsonl")
    loop(1, [8, 12, 20], item_kind="sample").write(tmp_path / "1.spans.jsonl")

    report = report_of(tmp_path)

    assert (report.unit.items.kind, report.unit.items.per_unit) == ("sample", 32)
    assert report.unit.items.per_s == pytest.approx(64 / 0.020)
    assert [unit.items for unit in report.ranks[0].units] == [8, 12, 20]


def test_items_are_not_known_where_a_rank_is_missing(tmp_path: Path) -> None:
    loop(0, [8, 12, 20]).write(tmp_path / "0.spans.jsonl")

    items = report_of(tmp_path).unit.items

    assert isinstance(items.per_unit, Unknown)
    assert items.per_s is UNSET


def test_a_record_of_the_run_carries_the_items_of_each_unit(tmp_path: Path) -> None:
    loop(0, [8, 12, 20], item_kind="token").write(tmp_path / "0.spans.jsonl")
    loop(1, [8, 12, 20], item_kind="token").write(tmp_path / "1.spans.jsonl")
    run, report = report_on([str(tmp_path)], ReportOptions(use_cache=False))

    record = make_record(run, report, Settings())

    assert (record.item_kind, record.items_per_unit, record.items_from) == ("token", 32, "recorded")
    assert [unit.items for unit in record.units] == [16, 24, 40]


def test_a_queue_was_full_for_as_long_as_samples_say_so(tmp_path: Path) -> None:
    """Samples at 0, 10, 30 and 35 ms say 1, 2, 2 and 0 of 2: full from 10 to 35."""
    script = loop(0, [None] * 4)
    for at, depth in ((0, 1), (10, 2), (30, 2), (35, 0)):
        script.queue("writer", at, depth, 2)
    script.write(tmp_path / "0.spans.jsonl")

    (queue,) = report_of(tmp_path).ranks[0].queues

    assert (queue.name, queue.object, queue.capacity, queue.max_depth) == ("writer", "output", 2, 2)
    assert (queue.full_ns, queue.watched_ns) == (25 * MS, 35 * MS)


def stuck(folder: Path, last: dict[int, str]) -> Report:
    """Four ranks reduce twice; then some wait in the third operation from 30 ms on.

    Args:
        folder: Where files go.
        last: Rank -> `waits`, `goes on` (records till 90 ms and never comes), `ends` (its file ends at 25 ms),
            `lost` (goes on, with lost lines), `none` (no file).
    """
    for rank, fate in last.items():
        if fate == "none":
            continue
        script = SpanScript(pid=10 + rank, rank=rank, world_size=len(last))
        for k in range(2):
            script.unit(f"step {k}", 10 * k, 10 * (k + 1))
            members = list(last) if k == 0 else None
            script.collective(10 * k + 5, 10 * k + 8, seq=k, members=members)
        if fate == "waits":
            script.collective(30 + rank, None, seq=2)
        if fate == "lost":
            script.lost(3)
        script.clock(25 if fate == "ends" else 90)
        script.write(folder / f"{rank}.spans.jsonl")
    return report_of(folder)


def test_a_rank_that_goes_on_without_coming_is_named_with_those_that_wait(tmp_path: Path) -> None:
    report = stuck(tmp_path, {0: "waits", 1: "waits", 2: "goes on", 3: "waits"})

    (one,) = report.never_entered

    assert (one.kind, one.group, one.sequence, one.members) == ("all_reduce", "0", 2, [0, 1, 2, 3])
    assert (one.waiting, one.never, one.not_known) == ([0, 1, 3], [2], [])
    assert one.since_ns == EPOCH_NS + BOOT_NS + 30 * MS
    assert one.waited_ns == 60 * MS
    says = next(found.message for found in report.integrity if found.code == "collective.never_entered")
    assert says.startswith("rank 2 never entered all_reduce #2 of group 0; ranks 0, 1, 3 wait there since")
    assert says.endswith("60.0 ms in all")


@pytest.mark.parametrize("fate", ["ends", "lost", "none"])
def test_of_a_rank_whose_record_does_not_reach_that_far_it_is_not_known(fate: str, tmp_path: Path) -> None:
    report = stuck(tmp_path, {0: "waits", 1: fate, 2: "waits"})

    (one,) = report.never_entered

    assert (one.waiting, one.never, one.not_known) == ([0, 2], [], [1])
    says = next(found.message for found in report.integrity if found.code == "collective.never_entered")
    assert "whether rank 1 came is not known" in says


def test_where_all_ranks_came_nobody_is_named(tmp_path: Path) -> None:
    assert stuck(tmp_path, {0: "waits", 1: "waits"}).never_entered == []


def test_an_operation_that_was_never_left_lasts_until_the_end_of_the_record(tmp_path: Path) -> None:
    report = stuck(tmp_path, {0: "waits", 1: "goes on"})

    row = next(row for row in report.ranks if row.rank == 0)
    assert row.tail_ns == 70 * MS  # step 1 ends at 20 ms, and the file's last time is 90 ms


def in_flight(folder: Path) -> Report:
    """Two ranks issue an all-reduce at 0 and 6 ms of each step, compute until 8, and wait until 10."""
    for rank in range(2):
        script = SpanScript(pid=10 + rank, rank=rank, world_size=2)
        for k in range(6):
            script.unit(f"step {k}", 10 * k, 10 * (k + 1))
            script.collective(10 * k + 6 * rank, 10 * k + 10, seq=k, blocking=False, members=[0, 1])
            script.span("train", 10 * k, 10 * k + 8, "compute")
            script.span("all_reduce.wait", 10 * k + 8, 10 * k + 10, "collective", waits=True)
        script.close(60)
        script.write(folder / f"{rank}.spans.jsonl")
    return report_of(folder)


def test_a_collective_in_flight_is_matched_and_not_split_for_nobody_knows_when_it_was_done(tmp_path: Path) -> None:
    report = in_flight(tmp_path)

    (entry,) = report.collectives
    assert (entry.kind, entry.members_present, entry.split) == ("all_reduce", [0, 1], "unknown")
    assert isinstance(entry.transfer_ns, Unknown)
    assert "their calls return at once" in entry.transfer_ns.unknown
    assert entry.exposed_ns == 2 * 6 * 2 * MS
    assert report.ledger.objects["collective"].exposed_ns == 2 * MS


def test_a_declared_wait_for_a_collective_creates_no_communicator(tmp_path: Path) -> None:
    report = in_flight(tmp_path)

    assert report.unit.left_out == []
    assert getattr(report.headline, "says", "").startswith("computing is the long pole: it goes on for 80% of the step")
    assert "communicator_setup" not in [found.cause for found in report.findings]


def test_a_run_without_marks_names_nobody() -> None:
    assert never_entered([]) == []
