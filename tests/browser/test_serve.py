"""`longpole serve` in a real browser: the file of --html, with questions that are answered by replay."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from longpole.pipeline.serve import prepare
from longpole.report.page.page import render_page
from longpole.units import format_ns
from longpole.web.site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "ddp-gloo-4ranks")
_SLIDE = """([name, value]) => {
  const one = document.querySelector(`#whatif input[data-object=${name}]`);
  one.value = value; one.dispatchEvent(new Event("input", { bubbles: true }));
}"""
_PREDICTED = "Number(document.getElementById('whatif').dataset.predictedNs)"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    served = prepare([EXAMPLE], ReportOptions(use_cache=False, processes=1))
    found = Site(served.page, served.answer)
    thread = threading.Thread(target=found.serve)
    thread.start()
    yield found
    found.shutdown()
    thread.join()


@pytest.fixture
def tab(browser: Any, site: Site) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = context.new_page()
    complaints: list[str] = []
    found.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.goto(site.url)
    yield found
    context.close()
    assert complaints == []


def asked(tab: Any, act: Any) -> dict[str, Any]:
    """Do something to the page; return the answer that it got."""
    with tab.expect_response("**/whatif") as waited:
        act()
    answer: dict[str, Any] = json.loads(waited.value.body())
    tab.locator("#whatif[aria-busy=false]").wait_for()
    return answer


def test_a_slider_changes_the_prediction_and_the_page_says_what_the_answer_says(tab: Any) -> None:
    tab.locator("#whatif").wait_for(state="visible")
    half = asked(tab, lambda: tab.evaluate(_SLIDE, ["input", "0.5"]))

    assert [one["text"] for one in half["changes"]] == ["--set input=0.5x"]
    assert half["predicted_period_ns"] < half["replayed_period_ns"]
    assert tab.evaluate(_PREDICTED) == half["predicted_period_ns"]
    says = tab.locator("#whatif-says").inner_text()
    assert format_ns(half["predicted_period_ns"]) in says
    assert format_ns(half["replayed_period_ns"]) in says
    assert half["next_long_pole"]["says"] in tab.locator("#whatif-next").inner_text()
    assert half["what_if_error"]["source"] in tab.locator("#whatif-error").inner_text()

    none = asked(tab, lambda: tab.evaluate(_SLIDE, ["input", "0"]))
    assert none["predicted_period_ns"] < half["predicted_period_ns"]
    assert tab.evaluate(_PREDICTED) == none["predicted_period_ns"]
    assert format_ns(none["path_before_ns"]["input"]) in tab.locator("#whatif-path").inner_text()


def test_a_candidate_is_ticked_a_rank_is_chosen_and_all_is_taken_back(tab: Any) -> None:
    ticked = asked(tab, tab.locator("#whatif .toggles input").first.check)
    assert [one["text"] for one in ticked["changes"]] == ["--prefetch input"]

    asked(tab, lambda: tab.evaluate(_SLIDE, ["compute", "0.5"]))
    both = asked(tab, lambda: tab.fill("#whatif-rank", "2"))
    assert [one["text"] for one in both["changes"]] == ["--set compute&rank:2=0.5x", "--prefetch input"]
    assert "'compute&rank:2=0.5x'" in tab.locator("#whatif-asked").inner_text()

    tab.click("#whatif-reset")
    assert "As recorded" in tab.locator("#whatif-says").inner_text()
    assert tab.locator("#whatif-path").is_hidden()


def test_the_answer_is_that_of_the_command_byte_for_byte(tab: Any) -> None:
    with tab.expect_response("**/whatif") as waited:
        tab.evaluate(_SLIDE, ["collective", "0.25"])
    command = [sys.executable, "-m", "longpole", "whatif", EXAMPLE, "--set", "collective=0.25x", "--json", "-"]
    written = subprocess.run([*command, "--no-cache", "--jobs", "1"], check=True, capture_output=True).stdout

    assert waited.value.body() == written


def test_candidates_that_exclude_each_other_cannot_both_be_ticked(browser: Any, site: Site) -> None:
    report = build_report([EXAMPLE], ReportOptions(use_cache=False, processes=1))
    one = next(entry for entry in report.candidates or [] if entry.changes)
    ids = ("collective.split_coarse", "collective.set_bucket_size", "input.prefetch")
    candidates = [msgspec.structs.replace(one, id=name) for name in ids]
    page = render_page(msgspec.structs.replace(report, candidates=candidates), None)
    context = browser.new_context()
    found = context.new_page()
    found.route("**/?token=*", lambda route: route.fulfill(body=page, content_type="text/html; charset=utf-8"))
    found.goto(site.url)
    first, second, third = found.locator("#whatif .toggles input").all()
    asked(found, first.check)

    assert second.is_disabled()
    assert "excludes collective.split_coarse" in found.locator("#toggle-1").inner_text()
    assert third.is_enabled()
    assert "the same change as collective.split_coarse" in found.locator("#toggle-2").inner_text()
    first.uncheck()
    assert second.is_enabled()
    assert found.locator("#toggle-1").inner_text() == ""
    context.close()


def test_a_site_that_has_ended_is_said(browser: Any, site: Site) -> None:
    context = browser.new_context()
    found = context.new_page()
    found.goto(site.url)
    found.route("**/whatif", lambda route: route.abort())
    found.evaluate(_SLIDE, ["input", "0.5"])
    found.locator("#whatif-says", has_text="longpole serve has ended").wait_for()
    context.close()


def test_opened_as_a_file_the_page_asks_nothing(browser: Any, site: Site, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(site.page)
    context = browser.new_context(offline=True)
    found = context.new_page()
    asked_for: list[str] = []
    found.on("request", lambda request: asked_for.append(request.url))
    found.goto(f"{file.as_uri()}?token=any")

    assert found.locator("#whatif").is_hidden()
    assert found.locator("#whatif-link").is_hidden()
    assert [url for url in asked_for if not url.startswith(("file:", "data:"))] == []
    context.close()
