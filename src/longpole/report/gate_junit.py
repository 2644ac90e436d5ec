"""A gate's answer as JUnit XML, which build servers show as tests: one test a figure, one more a failing stage."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape

if TYPE_CHECKING:
    from longpole.report.gate import Gate

_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_gate_junit(gate: Gate) -> bytes:
    """Write a gate's answer as JUnit XML.

    Regressed is a failure, invalid an error, and inconclusive is skipped unless it was asked to fail or to pass.
    """
    suite = ET.Element("testsuite", name=_text(f"longpole bench gate {gate.benchmark}".strip()))
    for figure in gate.figures:
        _case(suite, gate, figure.metric, figure.verdict, figure.says)
    for stage in gate.stages:
        if stage.fails:
            _case(suite, gate, f"stage {stage.stage}", stage.verdict, gate.says)
    counts = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped")}
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suite.set("skipped", str(counts["skipped"]))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _case(suite: ET.Element, gate: Gate, name: str, verdict: str, says: str) -> None:
    case = ET.SubElement(suite, "testcase", classname=_text(gate.benchmark or "benchmark"), name=_text(name))
    tag = {"regressed": "failure", "invalid": "error", "inconclusive": "skipped"}.get(verdict)
    if verdict == "inconclusive":
        tag = {"fail": "failure", "pass": None}.get(gate.inconclusive, "skipped")
    if tag is None:
        ET.SubElement(case, "system-out").text = _text(says)
        return
    why = "; ".join(gate.invalid) if verdict == "invalid" and gate.invalid else says
    entry = ET.SubElement(case, tag, message=_text(why))
    if gate.next:
        entry.text = _text(f"next: {gate.next}")


def _text(text: str) -> str:
    """Return a text of characters that XML may hold; the library escapes what means something to XML."""
    return _NOT_XML.sub("?", escape(text))
