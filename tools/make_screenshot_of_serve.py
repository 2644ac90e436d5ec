"""Make the picture of the what-if panel that the guide shows: `python -m tools.make_screenshot_of_serve`.

It needs a Chromium and Playwright (`make browser`).
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Final

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.serve import prepare
from longpole.web.site import Site
from tests.browser.chromium import launch

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = ROOT / "docs" / "images" / "serve.png"
EXAMPLE: Final = str(ROOT / "examples" / "ddp-gloo-4ranks")
_HALVE_INPUT: Final = """() => {
  const one = document.querySelector("#whatif input[data-object=input]");
  one.value = "0.5"; one.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def main() -> int:
    """Serve an example, halve its input, and take a picture of the answer."""
    served = prepare([EXAMPLE], ReportOptions(use_cache=False))
    site = Site(served.page, served.answer)
    thread = threading.Thread(target=site.serve)
    thread.start()
    try:
        with launch() as browser:
            page = browser.new_page(viewport={"width": 1120, "height": 900}, color_scheme="light")
            page.goto(site.url)
            page.evaluate(_HALVE_INPUT)
            page.locator("#whatif-says", has_text="Prediction").wait_for()
            page.locator("#whatif[aria-busy=false]").wait_for()
            page.locator("#whatif").screenshot(path=PICTURE)
    finally:
        site.shutdown()
        thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
