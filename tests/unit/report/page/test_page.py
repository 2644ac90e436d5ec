"""The page as a document: one file, bounded in size, and nothing in it that a browser would fetch or run."""

from __future__ import annotations

import hashlib
import html
import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from longpole.pipeline.drawing import DrawOptions, draw_run
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from longpole.records.ledger import Unknown
from longpole.records.tables import GapRow, Where
from longpole.report.document import RankEntry
from longpole.report.drawing import Drawing
from longpole.report.page.ledger import real_units, render_ledger
from longpole.report.page.markup import text
from longpole.report.page.page import render_page
from longpole.report.page.timeline import timeline_data
from longpole.report.page.what_if import render_what_if
from longpole.report.page.why import render_idle
from longpole.timeline.integrity import Example, Finding
from longpole.units import format_ns

if TYPE_CHECKING:
    from longpole.digest.jobs import Run
    from longpole.report.document import Report

EXAMPLE = str(Path(__file__).resolve().parents[4] / "examples" / "ddp-gloo-4ranks")


OPTIONS = ReportOptions(use_cache=False, processes=1)


@pytest.fixture(scope="module")
def read() -> tuple[Run, Report]:
    return report_on([EXAMPLE], OPTIONS)


@pytest.fixture(scope="module")
def made(read: tuple[Run, Report]) -> tuple[Report, Drawing]:
    return read[1], draw_run([EXAMPLE], OPTIONS, *read, DrawOptions(detailed=True))


def test_the_page_is_within_its_size(made: tuple[Report, Drawing]) -> None:
    spans = sum(len(unit.spans) for unit in made[1].units)

    assert len(render_page(*made)) <= 2_500_000 + 60 * spans


def test_the_page_names_nothing_to_fetch_and_runs_only_what_its_policy_names(made: tuple[Report, Drawing]) -> None:
    page = render_page(*made).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)

    assert policy is not None
    assert "unsafe" not in policy[1]
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page)
    assert " on" + "click=" not in page
    for element, content in re.findall(r"<(script|style)>(.*?)</\1>", page, re.DOTALL):
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1], element


def test_the_timelines_data_cannot_end_its_element(made: tuple[Report, Drawing]) -> None:
    drawing = Drawing(made[1].lanes, ["</script><script>alert(1)</script>", *made[1].names], made[1].units, {}, [])
    data = timeline_data(drawing)

    assert not set("<>&") & set(data)
    assert json.loads(data)["names"][0] == "</script><script>alert(1)</script>"


def test_a_text_keeps_its_beginning_and_its_end() -> None:
    assert text("a" * 4000 + "end", 400).endswith("end")
    assert len(text("a" * 4000, 400)) <= 400
    assert len(text("a" * 4000 + "end", 30)) <= 30
    assert text("a" * 4000 + "end", 30).endswith("end")
    assert text("\u202eevil") == "\\u202eevil"


def test_a_frame_is_told_without_where_its_library_is_installed(made: tuple[Report, Drawing]) -> None:
    home = "/home/someone/env/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward"
    names = [home, "/usr/lib/python3.11/threading.py(9): run", "/data/my lib/python3.11/notes"]
    drawing = replace(made[1], names=[*names, *made[1].names], stacks=np.array([[0, 1, -1]], np.int32))
    data = json.loads(timeline_data(drawing))

    assert data["names"][:2] == ["torch/nn/modules/linear.py(114): forward", "threading.py(9): run"]
    assert data["names"][2] == names[2]
    assert data["stacks"] == [[0, 1]]


def test_shares_are_written_to_a_hundredth_of_a_percent_and_what_they_are_shares_of_once(
    made: tuple[Report, Drawing],
) -> None:
    unit = made[1].units[0]
    share = np.full(len(unit.spans), np.nan, np.float32)
    share[:2] = 0.4123, 1.04
    use = np.full(len(unit.spans), -1, np.int32)
    use[:3] = 0, 0, 1
    drawing = replace(made[1], units=[replace(unit, spans=replace(unit.spans, share=share, use=use))])
    data = json.loads(timeline_data(drawing))
    written = data["units"][0]

    assert data["measured"] is True
    assert data["uses"] == [0, 1]
    assert np.frombuffer(b64decode(written["share"]), "<u2")[:3].tolist() == [4123, 10_400, 65_535]
    assert np.frombuffer(b64decode(written["use"]), "<u2")[:4].tolist() == [1, 1, 2, 0]
    assert written["stack"] == ""


def test_candidates_are_told_which_of_the_others_they_exclude(made: tuple[Report, Drawing]) -> None:
    one = msgspec.structs.replace((made[0].candidates or [])[0], changes=["--set compute=0.9x"])
    ids = ("collective.split_coarse", "collective.set_bucket_size", "input.prefetch")
    page = render_what_if(
        msgspec.structs.replace(made[0], candidates=[msgspec.structs.replace(one, id=name) for name in ids])
    )
    excluded = [json.loads(html.unescape(found)) for found in re.findall(r'data-excludes="([^"]*)"', page)]

    assert excluded == [["collective.set_bucket_size"], ["collective.split_coarse"], []]


def test_findings_of_one_sort_are_told_once_with_the_ranks(made: tuple[Report, Drawing]) -> None:
    found = [Finding("kernel.unlinked", "note", rank, 1, Example("a"), f"{rank + 9} spans") for rank in range(3)]
    page = render_page(msgspec.structs.replace(made[0], integrity=found), None).decode()

    assert page.count("kernel.unlinked") == 1
    assert "rank 0: 9 spans" in page
    assert "and on ranks 1, 2" in page


def test_a_ranks_bar_is_the_mean_of_its_steady_units_alone(made: tuple[Report, Drawing]) -> None:
    """A unit with a one-off stays in a rank's sums, and no mean may count it."""
    entry = msgspec.convert(msgspec.to_builtins(made[0].ranks[0]), RankEntry)
    first, *others = real_units(entry)
    first.steady, first.exposed_ns = False, {"host": 10**12}
    page = render_ledger(msgspec.structs.replace(made[0], ranks=[entry]))
    mean_ns = sum(unit.exposed_ns["input"] for unit in others) / len(others)

    assert f"rank 0 cpu: input exposed {format_ns(round(mean_ns))}, " in page
    assert "host exposed 1000 s" not in page
    assert "hidden" not in "".join(re.findall(r"<title>rank 0.*?</title>", page))


def test_why_nothing_ran_adds_up_and_gaps_open_to_their_stacks(made: tuple[Report, Drawing]) -> None:
    entry = msgspec.convert(msgspec.to_builtins(made[0].ranks[0]), RankEntry)
    gap = GapRow("load", "input", 2_000_000, "step 1", {"input": 2_000_000}, "main", ["a", "<b>"], [], "gemm", Where(0))
    ledger = msgspec.structs.replace(made[0].ledger, idle_ns={"input": 1_000_000, "host.python": 0}, wall_ns=4_000_000)
    entry.top.gaps = [gap]
    page = render_idle(msgspec.structs.replace(made[0], ledger=ledger, ranks=[entry], headline=Unknown("none")))

    assert '<code>input</code></td><td class="num one">1.00 ms</td><td class="num one">25.0 %' in page
    assert "host.python" not in page
    assert "<summary>load</summary>" in page
    assert "a<br>&lt;b&gt;" in page


def test_a_report_without_a_verdict_units_or_traces_still_gives_a_page(made: tuple[Report, Drawing]) -> None:
    report = msgspec.structs.replace(
        made[0],
        headline=Unknown("nothing can be said"),
        critical_path=Unknown("no graph"),
        findings=[],
        candidates=[],
        collectives=[],
        ranks=[],
    )
    page = render_page(report, None).decode()

    assert "No verdict: nothing can be said" in page
    assert "timeline-data" not in page
    assert "no graph" in page


def test_ten_thousand_ranks_give_a_page_that_opens(made: tuple[Report, Drawing]) -> None:
    one = made[0].ranks[0]
    ranks = [msgspec.structs.replace(one, rank=rank) for rank in range(10_000)]
    page = render_page(msgspec.structs.replace(made[0], ranks=ranks), made[1])

    assert len(page) < 3_000_000
    assert b"64 of 10000 ranks" in page
    assert b"256 of 10000 ranks" in page


def test_one_unit_can_be_drawn_alone(read: tuple[Run, Report], made: tuple[Report, Drawing]) -> None:
    name = made[1].units[1].name
    drawing = draw_run([EXAMPLE], OPTIONS, *read, DrawOptions(unit=name))

    assert [unit.name for unit in drawing.units] == [name]


def test_what_does_not_fit_is_named(read: tuple[Run, Report], made: tuple[Report, Drawing]) -> None:
    drawing = draw_run([EXAMPLE], OPTIONS, *read, DrawOptions(most=100))

    assert len(drawing.units) == 1
    assert len(drawing.left_out) == len(made[1].units) - 1
    assert b"units are not drawn" in render_page(read[1], drawing)
