"""A real Chromium for the tests of pages, or why there is none."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


def find_chromium() -> str | None:
    """Return where the system's Chromium is; None where it has none."""
    return next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)


@contextmanager
def launch() -> Iterator[Browser]:
    """Start the system's Chromium without a window.

    Raises:
        FileNotFoundError: There is none.
    """
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    if path is None:
        msg = "Chromium is not installed; make browser installs it where that can be done"
        raise FileNotFoundError(msg)
    # Its sandbox needs rights that a container's superuser lacks; the pages are our own.
    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        try:
            yield browser
        finally:
            browser.close()
