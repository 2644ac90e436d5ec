"""One browser for the tests of a process, and pages made from real and from made-up traces."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from longpole.pipeline.page import make_page
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from tests.browser.chromium import find_chromium, launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from longpole.report.document import Report

Opened = tuple[Any, "Report", list[str]]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start Chromium once."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (make browser)")
    if find_chromium() is None:
        pytest.skip("Chromium is not installed (make browser)")
    with ExitStack() as held:
        try:
            found = held.enter_context(launch())
        except playwright.Error as error:
            pytest.skip(f"Chromium does not start on this machine: {str(error).splitlines()[0]}")
        yield found


@pytest.fixture(scope="session")
def make_pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, Report]]:
    """Return what makes the page of a run, once."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def made(*paths: str) -> tuple[Path, Report]:
        options = ReportOptions(use_cache=False, processes=1)
        run, report = report_on(paths, options)
        file = folder / f"{len(list(folder.iterdir()))}.html"
        file.write_bytes(make_page(paths, options, run, report))
        return file, report

    return made


@pytest.fixture
def open_page(browser: Any, make_pages: Callable[..., tuple[Path, Report]]) -> Iterator[Callable[..., Opened]]:
    """Return what opens the page of a run with the network off: the tab, the report, its complaints."""
    contexts = []

    def opened(*paths: str, **context: Any) -> Opened:
        file, report = make_pages(*paths)
        made = browser.new_context(offline=True, **{"viewport": {"width": 1280, "height": 900}, **context})
        contexts.append(made)
        tab, complaints = made.new_page(), []
        tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: _dismiss(dialog, complaints))
        tab.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:")) else complaints.append(request.url),
        )
        tab.goto(file.as_uri())
        return tab, report, complaints

    yield opened
    for made in contexts:
        made.close()


def _is_own(url: str) -> bool:
    return url.startswith(("file:", "data:"))


def _dismiss(dialog: Any, complaints: list[str]) -> None:
    complaints.append(f"a dialog opened: {dialog.message}")
    dialog.dismiss()
