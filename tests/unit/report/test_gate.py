"""The page, Markdown and JUnit of a gate: bounded, escaped, and the verdict first."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from longpole.pipeline.gate import GateOptions, gate_records
from longpole.records.run_record_file import encode_record
from longpole.report.gate_junit import render_gate_junit
from longpole.report.gate_markdown import render_gate_markdown
from longpole.report.markdown_text import code, plain
from longpole.report.text.gate import render_gate
from longpole.report.text.layout import columns_of
from tests.gate_runs import Bench, pair

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.gate import Gate

HOSTILE = "evil\x1b[2J|<script>alert(1)</script>`x`\u202e"


def gated(folder: Path, base: Bench, new: Bench) -> Gate:
    paths = folder / "a.json", folder / "b.json"
    for path, made in zip(paths, pair(base, new), strict=True):
        path.write_bytes(encode_record(made))
    return gate_records(str(paths[0]), [str(paths[1])], GateOptions())


@pytest.fixture
def regressed(tmp_path: Path) -> Gate:
    base = Bench(stages={"forward": 60.0, HOSTILE: 40.0})
    return gated(tmp_path, base, replace(base, stages=base.scaled(**{HOSTILE: 1.5})))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_page_keeps_its_width_and_passes_no_control_sequence(regressed: Gate, width: int) -> None:
    page = render_gate(regressed, width=width, color=False)
    lines = [line for line in page.splitlines() if not line.startswith("NEXT")]

    assert page.startswith("REGRESSED  ")
    assert max(map(columns_of, lines)) <= min(width, 100)
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "NEXT  longpole bench compare" in page


def test_markdown_shows_names_as_they_are(regressed: Gate) -> None:
    text = render_gate_markdown(regressed)

    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("| evil")]
    assert len(rows) == 1
    assert rows[0].replace("\\|", "").count("|") == 10


def test_junit_has_a_failure_for_what_regressed(regressed: Gate) -> None:
    root = ET.fromstring(render_gate_junit(regressed))
    suite = root.find("testsuite")

    assert suite is not None
    assert suite.get("failures") == "2"  # the time, and the stage
    assert next(case.get("name") for case in suite.findall("testcase")) == "time"
    assert "longpole bench compare" in (suite.findtext("testcase/failure") or "")


def test_junit_tells_the_other_answers_apart(tmp_path: Path) -> None:
    noisy = gated(tmp_path, Bench(noise=0.1), Bench(noise=0.1))
    assert b"<skipped" in render_gate_junit(noisy)
    noisy.inconclusive = "fail"
    assert b"<failure" in render_gate_junit(noisy)
    invalid = gated(tmp_path, Bench(), Bench(process={1: {"exit_code": 2}}))
    assert b"<error" in render_gate_junit(invalid)
    assert b'failures="0"' in render_gate_junit(gated(tmp_path, Bench(), Bench()))


def test_an_invalid_answer_says_what_differs_and_shows_no_figures(tmp_path: Path) -> None:
    page = render_gate(gated(tmp_path, Bench(), Bench(process={1: {"exit_code": 2}})), width=80, color=False)

    assert page.startswith("INVALID  new: 1 of 10 processes failed")
    assert "FIGURES" not in page


def test_code_and_plain_text_cannot_be_left() -> None:
    assert code("a`b``c") == "```a`b``c```"
    assert plain("# *x* [y](z)\nnext") == r"\#&#8203; \*x\* \[y\]\(z\) next"
