"""What stands above the ranks: the path in short and in full, and findings that are read without a click."""

from __future__ import annotations

import io

from longpole.records.critical_path import CriticalPath, PathPiece
from longpole.report.perfetto.overview import EVIDENCE, add_integrity, add_path
from longpole.report.perfetto.writer import TraceWriter
from longpole.timeline.integrity import Example, Finding
from longpole.vocabulary.objects import OBJECTS
from tests.perfetto_reader import Slice, Viewed, read_trace


def test_the_path_in_short_joins_what_follows_on_a_rank_for_one_object() -> None:
    viewed = path_of(
        piece(None, "", "unknown", 10),
        piece(1, "thread 2", "input", 20),
        piece(1, "thread 2", "host", 5),
        piece(1, "thread 3", "host", 7),
        piece(0, "stream 7", "host", 3),
    )

    found = viewed.on("critical path")

    assert [(one.name, one.category, one.start_ns, one.end_ns) for one in found] == [
        ("unknown · in no rank's record", "unknown", 0, 10),
        ("input · rank 1", "input", 10, 30),
        ("host · rank 1", "host", 30, 42),
        ("host · rank 0", "host", 42, 45),
    ]
    assert [one.notes["pieces"] for one in found] == [1, 1, 2, 1]


def test_rows_of_the_path_stand_as_it_first_comes_by_and_those_of_a_rank_together() -> None:
    viewed = path_of(
        piece(3, "stream 24", "compute", 1),
        piece(1, "thread 2", "host", 1),
        piece(3, "stream 7", "compute", 1),
        piece(None, "", "unknown", 1),
        piece(1, "stream 24", "collective", 1),
        piece(3, "stream 24", "compute", 1),
    )

    rows = sorted((track for track in viewed.tracks.values() if track.parent), key=lambda track: track.order)

    assert [row.name for row in rows] == [
        "rank 3 · stream 24",
        "rank 3 · stream 7",
        "rank 1 · thread 2",
        "rank 1 · stream 24",
        "in no rank's record",
    ]


def test_arrows_go_between_the_rows_and_not_to_the_path_in_short() -> None:
    viewed = path_of(piece(0, "thread 2", "host", 4), piece(0, "stream 7", "compute", 6))

    ((start, end),) = viewed.arrows

    assert viewed.path_of(start.track) == ("critical path", "rank 0 · thread 2")
    assert viewed.path_of(end.track) == ("critical path", "rank 0 · stream 7")


def test_a_finding_is_a_bar_across_the_run_that_says_what_is_wrong() -> None:
    viewed = integrity_of(finding("json.cut", "the text ends"), finding("rank.missing", "1 of 4", "void", rank=None))

    (first,) = viewed.on("integrity")
    (cut,) = viewed.on("integrity", "json.cut · rank 2")
    (missing,) = viewed.on("integrity", "rank.missing")

    assert first.name == "2 findings about the evidence, 1 of them withdrawing figures"
    assert (cut.name, cut.notes["severity"], cut.notes["rank"]) == ("the text ends", "note", 2)
    assert (missing.name, missing.notes["severity"], missing.notes["voids"]) == ("1 of 4", "void", "/headline")
    assert missing.track.order < cut.track.order
    assert {across(one) for one in (first, cut, missing)} == {(5, 95, EVIDENCE)}


def test_findings_that_limit_nothing_say_so_and_none_make_no_row() -> None:
    noted = integrity_of(finding("json.cut", "the text ends"))
    mixed = integrity_of(*(finding("json.cut", "the text ends", severity) for severity in ("warn", "note", "void")))
    clean = integrity_of()

    assert [one.name for one in noted.on("integrity")] == ["1 finding about the evidence, no figure limited"]
    assert [one.name for one in mixed.on("integrity")] == [
        "3 findings about the evidence, 1 of them withdrawing figures, 1 of them limiting figures"
    ]
    assert not clean.tracks


def across(one: Slice) -> tuple[int, int, str]:
    return one.start_ns, one.end_ns, one.category


def piece(rank: int | None, track: str, charged: str, dur_ns: int) -> PathPiece:
    return PathPiece(rank, track, "something", charged, 0, dur_ns, "recorded", "the thread went on")


def path_of(*pieces: PathPiece) -> Viewed:
    laid, start_ns = [], 0
    for one in pieces:
        laid.append(PathPiece(one.rank, one.track, one.name, one.object, start_ns, one.dur_ns, one.grade, one.reason))
        start_ns += one.dur_ns
    path = CriticalPath("it goes.", {}, {}, {}, [], {}, {}, ["step"], "step", start_ns, 0, laid, [])
    out = io.BytesIO()
    add_path(TraceWriter(out, list(OBJECTS)), path, lambda rank: f"rank {rank}")
    return read_trace(out.getvalue())


def finding(code: str, message: str, severity: str = "note", rank: int | None = 2) -> Finding:
    voids = ["/headline"] if severity == "void" else []
    return Finding(code, severity, rank, 1, Example("a file"), message, voids)  # type: ignore[arg-type]


def integrity_of(*findings: Finding) -> Viewed:
    out = io.BytesIO()
    add_integrity(TraceWriter(out, [EVIDENCE]), findings, (5, 95))
    return read_trace(out.getvalue())
