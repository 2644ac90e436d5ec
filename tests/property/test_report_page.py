"""Laws of the renderers, on reports of any numbers and any names."""

from __future__ import annotations

import csv
import io
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from longpole.records.ledger import Unknown
from longpole.report.csv import render_csv
from longpole.report.document import Headline, LeftOut, Report, UnknownEntry
from longpole.report.json import render_json
from longpole.report.text import render_text
from longpole.report.text.layout import columns_of
from longpole.vocabulary.objects import IDLE_REASONS
from tests.report_builder import make_finding, make_gap, make_ledger, make_report, make_row, make_top

_SGR = re.compile(r"\x1b\[[0-9;]*m")

names = st.one_of(
    st.text(alphabet=st.characters(), max_size=20),
    st.sampled_from(
        ["\x1b[2J", "\u202e", "\x00", "a\nb", "gemm", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "矩" * 90]
    ),
)
times_ns = st.integers(0, 10**12)
busy = st.dictionaries(st.sampled_from(["compute", "collective", "input", "state"]), times_ns, max_size=4)
idle = st.dictionaries(st.sampled_from(IDLE_REASONS), times_ns, max_size=8)
reasons = st.builds(Unknown, names, st.lists(names, max_size=2))


@st.composite
def ledgers(draw: st.DrawFn) -> object:
    hidden = {"input": draw(reasons)} if draw(st.booleans()) else {"collective": draw(times_ns)}
    return make_ledger(draw(busy), draw(idle), hidden=hidden, waiting=draw(st.none() | reasons))


@st.composite
def reports(draw: st.DrawFn) -> Report:
    n_units = draw(st.integers(1, 3))
    kind = draw(st.sampled_from(["step", "iteration", "request", "trace"]))
    rows = []
    for rank in range(draw(st.integers(1, 4))):
        gaps = draw(
            st.lists(
                st.builds(
                    make_gap,
                    names,
                    st.sampled_from(IDLE_REASONS),
                    times_ns,
                    unit=names,
                    stack=st.lists(names, max_size=5),
                ),
                max_size=3,
            )
        )
        ledger = draw(ledgers())
        row = make_row(rank, [ledger] * n_units, device_name=draw(names), top=make_top(*gaps), unit_kind=kind)  # type: ignore[list-item]
        rows.append(row)
    pointers = st.sampled_from(["/ledger/objects/input/hidden_ns", "/ranks/0/ledger", "/run/world_size", "/x/y", ""])
    severities = st.sampled_from(["note", "warn", "void"])
    return make_report(
        rows,
        headline=draw(reasons | st.builds(Headline, names, names, times_ns, st.just("ledger"), st.just(0), names)),
        world_size=draw(st.integers(1, 10**6) | reasons),
        unit_kind=kind,
        left_out=draw(st.lists(st.builds(LeftOut, names, names), max_size=2)),
        environment={"torch_version": draw(names), "cuda_runtime_version": draw(st.integers(-5, 10**9))},
        integrity=draw(st.lists(st.builds(make_finding, names, severities, names, voids=st.lists(names)), max_size=8)),
        unknown=draw(st.lists(st.builds(UnknownEntry, pointers, names, st.lists(names, max_size=2)), max_size=8)),
        path=draw(st.just("traces/rank{rank}.json")),
    )


@given(reports(), st.integers(60, 120))
def test_no_line_is_wider_than_the_page(report: Report, width: int) -> None:
    for line in render_text(report, width=width, color=False).splitlines():
        assert columns_of(line) <= width


@given(reports())
def test_a_page_holds_no_control_character_but_line_ends_and_our_own_colours(report: Report) -> None:
    page = render_text(report, width=80, color=True)

    assert all(char == "\n" or char.isprintable() for char in _SGR.sub("", page))
    assert _SGR.sub("", page) == render_text(report, width=80, color=False)


@given(reports())
def test_figures_of_the_ledger_add_up_to_their_sum(report: Report) -> None:
    lines = render_text(report, width=80, color=False).splitlines()
    head = next(place for place, line in enumerate(lines) if line.split() == ["exposed", "hidden"])
    end = next(place for place in range(head, len(lines)) if lines[place].startswith("  sum "))

    figures = [float(line[14:23].replace(",", "")) for line in lines[head + 1 : end + 1]]

    assert round(sum(figures[:-1]), 3) == round(figures[-1], 3)


@given(reports())
def test_a_page_is_a_page(report: Report) -> None:
    assert len(render_text(report, width=80, color=False).splitlines()) <= 90


@given(reports(), st.sampled_from(["run", "rank", "unit"]))
def test_a_document_is_json_without_raw_control_bytes(report: Report, detail: str) -> None:
    data = render_json(report, detail)

    assert json.loads(data)["schema"] == "longpole.report/1"
    assert not [byte for byte in data if byte < 0x20 and byte != 0x0A]


@given(reports())
def test_tables_are_rectangular_and_printable(report: Report) -> None:
    for text in render_csv(report).values():
        header, *rows = csv.reader(io.StringIO(text))
        assert {len(row) for row in rows} <= {len(header)}
        assert all(char == "\n" or char.isprintable() for char in text)
