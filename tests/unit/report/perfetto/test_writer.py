"""Packets, read back by the message classes of the format itself."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest

from longpole.errors import InvariantError
from longpole.report.perfetto.writer import UNNAMED, SaidSpans, TraceWriter, TrackSpans
from tests.perfetto_reader import Viewed, read_trace

Told = tuple[int, int, str, str, dict[str, "int | str"], int, int]
"""Start, end, name, category, notes, the arrow that ends here and the one that begins here."""


class Written:
    """A trace in memory with one track."""

    def __init__(self, shift_ns: int = 0) -> None:
        self.out = io.BytesIO()
        self.writer = TraceWriter(self.out, ["compute", "input"], shift_ns)
        self.track = self.writer.add_track("lane")

    def spans(self, times: list[tuple[int, int]], names: list[str], sizes: list[int] | None = None) -> None:
        start_ns, end_ns = np.array(times, np.int64).T
        n = len(times)
        codes = np.ones(n, np.int64)
        size_bytes = np.array(sizes or [-1] * n, np.int64)
        self.writer.add_spans(self.track, TrackSpans(start_ns, end_ns, self.writer.codes_of(names), codes, size_bytes))

    def said(self, track: int, told: list[Told]) -> None:
        start_ns, end_ns, arrives, leaves = (np.array([one[k] for one in told], np.int64) for k in (0, 1, 5, 6))
        said = np.array([self.writer.say(*one[2:5]) for one in told], np.int64)
        self.writer.add_said(track, SaidSpans(start_ns, end_ns, said, arrives, leaves))

    def read(self) -> Viewed:
        return read_trace(self.out.getvalue())


def test_nested_spans_keep_their_times_names_and_sizes() -> None:
    written = Written()
    written.spans([(0, 50), (10, 10), (10, 50), (50, 60)], ["outer", "empty", "copy", "next"], [-1, -1, 300, 0])

    found = written.read().slices

    assert [(one.name, one.start_ns, one.end_ns, one.depth) for one in found] == [
        ("outer", 0, 50, 0),
        ("copy", 10, 50, 1),
        ("empty", 10, 10, 2),
        ("next", 50, 60, 0),
    ]
    assert [one.notes for one in found] == [{}, {"bytes": 300}, {}, {"bytes": 0}]


def test_a_long_time_and_many_names_fit() -> None:
    late_ns = 1 << 60
    names = [f"kernel {place}" for place in range(3000)]
    written = Written()
    written.spans([(late_ns + place, late_ns + place + 1) for place in range(3000)], names)

    found = written.read().slices

    assert [one.name for one in found] == names
    assert found[-1].end_ns == late_ns + 3000


def test_hostile_and_odd_names_stay_names() -> None:
    long = "ש" * 4000
    written = Written()
    written.spans([(0, 1), (1, 2), (2, 3), (3, 4)], ["", "a\x1b[2J\u202e", "\ud800", long])

    assert [one.name for one in written.read().slices] == [UNNAMED, "a\\x1b[2J\\u202e", "\\ud800", long]


def test_a_name_is_written_once() -> None:
    written = Written()
    written.spans([(0, 1)], ["a very long name of a kernel"])
    before = len(written.out.getvalue())
    written.spans([(1, 2)], ["a very long name of a kernel"])

    assert len(written.out.getvalue()) - before < 60
    assert b"kernel" not in written.out.getvalue()[before:]


def test_an_arrow_goes_from_one_span_to_the_next() -> None:
    written = Written()
    other = written.writer.add_track("other", written.track)
    written.said(written.track, [(0, 5, "a", "compute", {"grade": "recorded"}, 0, 1)])
    written.said(other, [(5, 9, "b", "input", {"rank": 3, "below": -7}, 1, 0)])

    viewed = written.read()

    assert [(one.name, to.name) for one, to in viewed.arrows] == [("a", "b")]
    assert viewed.on("lane", "other")[0].notes == {"rank": 3, "below": -7}
    assert [one.category for one in viewed.slices] == ["compute", "input"]


def test_many_spans_with_notes_are_what_each_written_alone_is() -> None:
    """Whatever is said of them, with arrows and without, and some without length."""
    told: list[Told] = []
    for place in range(300):
        start_ns = told[-1][1] if told else 1 << 40
        notes: dict[str, int | str] = {"grade": "recorded" * (place % 3)} if place % 4 else {}
        kind = "input" if place % 2 else "compute"
        leaves = 1000 + place if place % 5 == 0 else 0
        arrives = 999 + place if place % 5 == 1 else 0
        told.append((start_ns, start_ns + place % 7, "name" * (place % 6), kind, notes, arrives, leaves))
    written, alone = Written(), Written()

    written.said(written.track, told)

    for one in told:
        alone.writer.add_span(alone.track, one[:2], *one[2:5])
    viewed = written.read()
    assert viewed.slices == alone.read().slices
    assert [(one.name, to.name) for one, to in viewed.arrows] == [
        (a[2] or UNNAMED, b[2] or UNNAMED) for a, b in pairwise(told) if a[6]
    ]


def test_forty_thousand_spans_with_notes_are_written_as_in_two_calls() -> None:
    start_ns = 1 << 40
    told: list[Told] = [
        (start_ns + 2 * k, start_ns + 2 * k + 1, f"name {k % 3}", "input", {"pieces": k % 5}, 0, 0)
        for k in range(40_000)
    ]
    at_once, in_two = Written(), Written()

    at_once.said(at_once.track, told)
    in_two.said(in_two.track, told[:15])  # all that is said is in these
    in_two.said(in_two.track, told[15:])

    assert at_once.out.getvalue() == in_two.out.getvalue()


def test_times_before_zero_are_moved_and_never_lost() -> None:
    written = Written(shift_ns=100)
    written.spans([(-100, -40)], ["early"])
    assert written.read().slices[0].start_ns == 0

    with pytest.raises(InvariantError, match="begins 1 ns before"):
        written.spans([(-101, 0)], ["too early"])


def test_a_counter_counts_nanoseconds() -> None:
    written = Written()
    counter = written.writer.add_track("input", counts_ns_beside="exposed")
    written.writer.add_count(counter, 5, 61_300_000)

    assert written.read().counted("input") == [61_300_000]
