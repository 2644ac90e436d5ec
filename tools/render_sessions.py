"""Run the sessions that the documentation shows, and put below each command what it really prints.

A block is run if the line above it says in which folder:

    <!-- run in examples -->
    ```console
    $ longpole report loader-bound -q --json - | jq .unit.kind
    "step"
    ```

Blocks of a shell are marked `console`, those of Python `pycon`. All blocks of a page and a folder form one session: a
file that one command writes is there for the next. Each runs in a scratch folder that mirrors the
named one, so nothing is left behind. `corpus/…` names a folder of recorded traces that is not part of this
repository; where it is missing, its blocks stay as they are.

`python -m tools.render_sessions [PAGE…]` rewrites the pages; tests check that they are current.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
CORPUS: Final = "corpus"

_BLOCK: Final = re.compile(
    r"^<!-- run in (?P<folder>\S+) -->\n```(?P<kind>console|pycon)\n(?P<body>.*?)^```$", re.M | re.S
)
_SHELL: Final = 'longpole() { "$SESSION_PYTHON" -m longpole "$@"; }\n'
_DRIVER: Final = """
import contextlib, io, json, sys
outputs, names = [], {"__name__": "__main__"}
for source in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "<session>", "single"), names)
    outputs.append(out.getvalue())
json.dump(outputs, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """What was typed, as it stands in the block, and the command or statement that it makes."""

    typed: str
    source: str


def find_pages(root: Path) -> list[Path]:
    """Return the pages that have a block to run."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in pages if page.is_file() and _BLOCK.search(page.read_text(encoding="utf-8"))]


def render_page(page: str, root: Path, shared: Path | None) -> str:
    """Return a page with the outputs of its blocks renewed.

    Args:
        page: Markdown.
        root: The root of the repository, from which folders are named.
        shared: Where the folder `corpus` lies; None where it is not at hand.

    Raises:
        ValueError: A block has no prompt, or a named folder is missing.
        RuntimeError: A statement of Python failed.
    """
    found = list(_BLOCK.finditer(page))
    bodies = {match.start(): match["body"] for match in found}
    for folder in dict.fromkeys(match["folder"] for match in found):
        of_corpus = folder.split("/", 1)[0] == CORPUS
        if of_corpus and shared is None:
            continue
        place = (shared if of_corpus and shared is not None else root) / folder
        blocks = [match for match in found if match["folder"] == folder]
        with tempfile.TemporaryDirectory() as scratch:
            _mirror(place, Path(scratch))
            bodies |= _run_blocks(blocks, Path(scratch), root)
    return _BLOCK.sub(
        lambda match: f"<!-- run in {match['folder']} -->\n```{match['kind']}\n{bodies[match.start()]}```", page
    )


def _mirror(place: Path, scratch: Path) -> None:
    """Make the visible folders below a place anew, with links to its files, so that a search of folders finds them."""
    if not place.is_dir():
        msg = f"expected the folder {place}, found none; name another one behind `run in`"
        raise ValueError(msg)
    for parent, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        mirrored = scratch / Path(parent).relative_to(place)
        mirrored.mkdir(exist_ok=True)
        for name in files:
            if not name.startswith("."):
                (mirrored / name).symlink_to(Path(parent, name).resolve())


def _run_blocks(blocks: Sequence[re.Match[str]], scratch: Path, root: Path) -> dict[int, str]:
    """Run the blocks of one session; return the new body of each by its place on the page."""
    shell = {match.start(): parse_entries(match["body"], "$ ", "> ") for match in blocks if match["kind"] == "console"}
    python = {
        match.start(): parse_entries(match["body"], ">>> ", "... ") for match in blocks if match["kind"] == "pycon"
    }
    with tempfile.TemporaryDirectory() as cache:
        environment = _environment(root, Path(cache))
        outputs = {
            start: [_run_shell(entry.source, scratch, environment) for entry in entries]
            for start, entries in shell.items()
        }
        statements = [entry.source for entries in python.values() for entry in entries]
        printed = iter(_run_python(statements, scratch, environment))
        outputs |= {start: [next(printed) for _ in entries] for start, entries in python.items()}
    return {
        start: "".join(_with_output(entry.typed, output) for entry, output in zip(entries, outputs[start], strict=True))
        for start, entries in (shell | python).items()
    }


def parse_entries(body: str, prompt: str, more: str) -> list[Entry]:
    r"""Return what was typed in a block; everything else in it is output.

    >>> [entry.source for entry in parse_entries("$ a\n1\n$ b \\\n> c\n2\n", "$ ", "> ")]
    ['a', 'b \\\nc']

    Raises:
        ValueError: Output stands before the first prompt.
    """
    entries: list[Entry] = []
    open_entry = False
    for line in body.splitlines():
        if line.startswith(prompt):
            entries.append(Entry(line + "\n", line[len(prompt) :]))
        elif open_entry and (line + " ").startswith(more):
            last = entries.pop()
            entries.append(Entry(last.typed + line + "\n", f"{last.source}\n{line[len(more) :]}"))
        elif not entries:
            msg = f"expected a block to begin with {prompt!r}, found {line!r}"
            raise ValueError(msg)
        open_entry = line.startswith(prompt) or (open_entry and (line + " ").startswith(more))
    return entries


def _environment(root: Path, cache: Path) -> dict[str, str]:
    """Return an environment in which a session prints the same everywhere."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LD_LIBRARY_PATH")}
    return kept | {
        "SESSION_PYTHON": sys.executable,
        "PYTHONPATH": str(root / "src"),
        "PYTHONUTF8": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "LONGPOLE_CACHE": str(cache),
        "POLARS_TABLE_WIDTH": "100",
    }


def _run_shell(command: str, scratch: Path, environment: dict[str, str]) -> str:
    run = subprocess.run(
        ["bash", "-c", _SHELL + command],
        cwd=scratch,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return run.stdout


def _run_python(statements: list[str], scratch: Path, environment: dict[str, str]) -> list[str]:
    if not statements:
        return []
    run = subprocess.run(
        [sys.executable, "-c", _DRIVER],
        cwd=scratch,
        env=environment,
        input=json.dumps([statement + "\n" for statement in statements]),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if run.returncode:
        msg = f"a statement of the session failed:\n{run.stderr}"
        raise RuntimeError(msg)
    outputs: list[str] = json.loads(run.stdout)
    return outputs


def _with_output(typed: str, output: str) -> str:
    text = "".join(f"{line.rstrip()}\n" for line in output.rstrip().splitlines())
    return typed + text


def has_corpus_blocks(page: str) -> bool:
    """Tell whether a page has blocks that need the corpus."""
    return any(match["folder"].split("/", 1)[0] == CORPUS for match in _BLOCK.finditer(page))


def _find_shared() -> Path | None:
    folder = Path(os.environ.get("LONGPOLE_SHARED") or ROOT.parent / "shared")
    return folder if (folder / CORPUS).is_dir() else None


def _chosen(names: Sequence[str]) -> Iterator[Path]:
    yield from (Path(name) for name in names) if names else find_pages(ROOT)


def main(names: Sequence[str]) -> int:
    """Rewrite the named pages, or all."""
    for path in _chosen(names):
        before = path.read_text(encoding="utf-8")
        after = render_page(before, ROOT, _find_shared())
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
