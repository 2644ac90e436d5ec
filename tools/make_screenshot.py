"""Make the picture of the page that the README shows: `python -m tools.make_screenshot`.

It needs a Chromium and Playwright (`make browser`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from longpole.pipeline.page import make_page
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from tests.browser.chromium import launch

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = ROOT / "docs" / "images" / "page.png"
EXAMPLE: Final = "examples/ddp-gloo-4ranks"


def main() -> int:
    """Make the page of an example, and take its picture down to the end of the timeline."""
    options = ReportOptions(use_cache=False)
    run, report = report_on([EXAMPLE], options)
    PICTURE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, launch() as browser:
        path = Path(folder) / "page.html"
        path.write_bytes(make_page([EXAMPLE], options, run, report))
        page = browser.new_page(viewport={"width": 1120, "height": 900}, color_scheme="light")
        page.goto(path.as_uri())
        page.wait_for_function("Number(document.getElementById('timeline').dataset.drawn) > 0")
        box = page.locator("#gantt").bounding_box()
        assert box is not None
        page.screenshot(
            path=PICTURE, full_page=True, clip={"x": 0, "y": 0, "width": 1120, "height": box["y"] + box["height"] + 12}
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
