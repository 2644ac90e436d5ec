"""The page in a real browser: what it shows is the report, offline, and nothing of a trace is ever script."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from longpole.report.document import Headline
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "ddp-gloo-4ranks")
HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
DRAWN = "Number(document.getElementById('timeline').dataset.drawn) > 0"

_LONGEST_LOAD = """() => {
  const canvas = document.getElementById("timeline"), own = canvas.longpole, spans = own.spans();
  const name = (i) => own.names[spans.label[i]];
  let at = -1;
  for (let i = 0; i < spans.length.length; i++)
    if (name(i).startsWith("enumerate") && (at < 0 || spans.length[i] > spans.length[at])) at = i;
  const row = own.state.rows.find((r) => r.lane === spans.lane[at] && r.depth === spans.depth[at]);
  const middle = (spans.start[at] + spans.length[at] / 2) * own.unit().tick_ns;
  canvas.scrollIntoView({ block: "start" });
  const box = canvas.getBoundingClientRect();
  return { x: box.left + own.x(middle), y: box.top + row.y + row.tall / 2, name: name(at) };
}"""


def trace(path: Path, events: list[dict[str, Any]], **header: Any) -> str:
    """Write a trace of the PyTorch profiler."""
    path.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}).encode()))
    return str(path)


def span(name: str, start_us: float, us: float, cat: str = "cpu_op", **args: Any) -> dict[str, Any]:
    on_device = cat == "kernel"
    return {
        "ph": "X", "cat": cat, "name": name, "ts": 1000 + start_us, "dur": us, "pid": 0 if on_device else 1,
        "tid": 7 if on_device else 1, "args": {"device": 0, "stream": 7, **args} if on_device else args,
    }  # fmt: skip


def steps(name: str, **said: Any) -> list[dict[str, Any]]:
    """Three steps of 100 µs, each with one kernel of 60 µs; the operator that launches it says more."""
    found = []
    for step in range(3):
        at = 100.0 * step
        found += [
            span(f"ProfilerStep#{step}", at, 100, "user_annotation"),
            span("aten::mm", at + 5, 20, **said),
            span("cudaLaunchKernel", at + 10, 5, "cuda_runtime", correlation=step + 1),
            span(name, at + 30, 60, "kernel", correlation=step + 1),
        ]
    return found


def test_the_page_shows_what_the_report_says_and_asks_for_nothing(open_page: Callable[..., Any]) -> None:
    tab, report, complaints = open_page(EXAMPLE)
    tab.wait_for_function(DRAWN)

    assert isinstance(report.headline, Headline)
    assert tab.locator("#pole").inner_text() == report.headline.says
    assert format_ns(report.headline.cost_ns_per_unit) in tab.locator(".cost").inner_text()
    first = report.ranks[0].ledger.objects["input"]
    units = sum(unit.steady for unit in report.ranks[0].units)
    titles = tab.locator("#ledger svg rect title").all_text_contents()
    expected = f"rank 0 {report.ranks[0].device}: input exposed {format_ns(round(first.exposed_ns / units))}"
    assert any(title.startswith(expected) for title in titles), (expected, titles)
    assert complaints == []


def test_pointing_at_a_span_says_its_name_its_time_and_its_place(open_page: Callable[..., Any]) -> None:
    tab, _, complaints = open_page(EXAMPLE)
    tab.wait_for_function(DRAWN)
    found = tab.evaluate(_LONGEST_LOAD)
    tab.mouse.move(found["x"], found["y"])

    tip = tab.locator("#tip")
    tip.wait_for(state="visible")
    assert found["name"] in tip.inner_text()
    assert "input" in tip.inner_text()
    assert "rank 2" in tip.inner_text()
    assert complaints == []


_KERNEL = """() => {
  const canvas = document.getElementById("timeline"), own = canvas.longpole, spans = own.spans();
  const at = [...spans.label].findIndex((label) => own.names[label] === "gemm");
  const row = own.state.rows.find((r) => at >= r.from && at < r.to);
  canvas.scrollIntoView({ block: "start" });
  const box = canvas.getBoundingClientRect();
  const x = own.x((spans.start[at] + spans.length[at] * 0.9) * own.unit().tick_ns);
  const pixel = (y) => [...canvas.getContext("2d").getImageData(Math.round(x), Math.round(y), 1, 1).data].join();
  return {
    x: box.left + x, y: box.top + row.y + row.tall / 2,
    top: pixel(row.y + 1), third: pixel(row.y + row.tall * 0.65), bottom: pixel(row.y + row.tall * 0.9),
  };
}"""
_BF16 = ["c10::BFloat16", "c10::BFloat16"]


def test_a_kernel_is_as_high_as_what_it_used_and_says_so_with_its_call_stack(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    """2·2048³ FLOPs in 60 µs are 286 TFLOP/s: 29 % of what the tensor units of an H100 can do."""
    stack = f"model.py(12): {HOSTILE};train.py(3): <module>"
    said = {"Input Dims": [[2048, 2048], [2048, 2048]], "Input type": _BF16, "Call stack": stack}
    device = [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]
    tab, _, complaints = open_page(trace(tmp_path / "rank0.json.gz", steps("gemm", **said), deviceProperties=device))
    tab.wait_for_function(DRAWN)
    found = tab.evaluate(_KERNEL)
    tab.mouse.move(found["x"], found["y"])

    tip = tab.locator("#tip")
    tip.wait_for(state="visible")
    assert "29 % of the tensor units' bf16 peak by aten::mm" in tip.inner_text()
    assert f"in model.py(12): {HOSTILE}" in tip.inner_text()
    assert "train.py(3): <module>" in tip.inner_text()
    assert found["top"] == found["third"] != found["bottom"]
    assert tab.locator("img").count() == 0
    assert complaints == []


def test_without_a_pointer_keys_go_from_span_to_span(open_page: Callable[..., Any]) -> None:
    tab, _, complaints = open_page(EXAMPLE)
    tab.wait_for_function(DRAWN)
    tab.locator("#timeline").focus()
    tab.keyboard.press(".")
    tip = tab.locator("#tip")
    tip.wait_for(state="visible")
    first = tip.inner_text()
    tab.keyboard.press("PageDown")
    below = tip.inner_text()
    tab.keyboard.press("Escape")

    assert "rank" in first
    assert below != first
    assert tip.is_hidden()
    assert complaints == []


def test_the_pickers_change_the_unit_and_the_ranks(open_page: Callable[..., Any]) -> None:
    tab, report, complaints = open_page(EXAMPLE)
    tab.wait_for_function(DRAWN)
    names = tab.locator("#pick-unit option").all_text_contents()
    lanes = tab.evaluate("document.getElementById('timeline').longpole.state.rows.length")

    tab.select_option("#pick-unit", label=names[1])
    tab.select_option("#pick-rank", label="rank 2")

    assert names[0] == report.critical_path.unit
    assert tab.locator("#timeline-told").inner_text().startswith(f"{names[1]}: ")
    assert 0 < tab.evaluate("document.getElementById('timeline').longpole.state.rows.length") < lanes
    assert complaints == []


def test_keys_pan_zoom_and_walk_along_the_critical_path(open_page: Callable[..., Any]) -> None:
    tab, report, complaints = open_page(EXAMPLE)
    tab.wait_for_function(DRAWN)
    view = "(() => { const s = document.getElementById('timeline').longpole.state; return [s.from, s.to]; })()"
    tab.locator("#timeline").focus()
    whole = tab.evaluate(view)
    tab.keyboard.press("+")
    closer = tab.evaluate(view)
    tab.keyboard.press("ArrowRight")
    moved = tab.evaluate(view)
    tab.keyboard.press("]")

    assert closer[1] - closer[0] < whole[1] - whole[0]
    assert moved[0] > closer[0]
    assert f"piece 1 of {len(report.critical_path.pieces)}" in tab.locator("#timeline-told").inner_text()
    assert complaints == []


def test_a_name_that_is_markup_stays_text(open_page: Callable[..., Any], tmp_path: Path) -> None:
    tab, _, complaints = open_page(trace(tmp_path / "rank0.json.gz", steps(HOSTILE)))
    tab.wait_for_function(DRAWN)

    assert tab.locator("img").count() == 0
    assert tab.evaluate("document.getElementById('timeline').longpole.names").count(HOSTILE) == 1
    assert complaints == []


@pytest.mark.parametrize(
    ("events", "drawn"),
    [
        pytest.param([span("aten::mm", 0, 10)], True, id="one span"),
        pytest.param([span("aten::mm", 10.0 * n, 5) for n in range(40)], True, id="no units"),
        pytest.param(steps("k" * 4000), True, id="a name of 4 kB"),
        pytest.param(steps("\u202egnirts \u0645\u0631\u062d\u0628\u0627"), True, id="right-to-left text"),
    ],
)
def test_whatever_a_trace_holds_gives_a_page(
    open_page: Callable[..., Any], tmp_path: Path, events: list[dict[str, Any]], drawn: bool
) -> None:
    tab, _, complaints = open_page(trace(tmp_path / "rank0.json.gz", events))

    assert tab.locator("h1").inner_text().lower() == "longpole"
    assert tab.locator("#timeline").count() == int(drawn)
    assert complaints == []


def test_the_page_fits_a_phone_and_the_dark(open_page: Callable[..., Any]) -> None:
    tab, _, complaints = open_page(EXAMPLE, viewport={"width": 390, "height": 844}, color_scheme="dark")
    tab.wait_for_function(DRAWN)

    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    assert complaints == []
