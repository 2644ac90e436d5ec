"""The page of each cause: one Markdown file beside this module, for the terminal and for the documentation alike.

`longpole explain CAUSE` prints it, and `tools/render_causes.py` copies it to `docs/reference/causes`, from where its
relative links are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from longpole.errors import InvariantError, UsageError
from longpole.vocabulary.causes import CAUSES

FOLDER: Final = Path(__file__).parent / "pages"
HEADINGS: Final = (
    "What it looks for",
    "Why it costs time",
    "Evidence it needs",
    "What it does not prove",
    "What to try",
    "See also",
)
"""The sections of every page, in order."""

NEEDS_MORE: Final = {
    "fragmentation": "memory records (profile_memory=True), which a plain trace does not hold, or a snapshot",
    "leak": "memory records of several units (profile_memory=True), which a plain trace does not hold",
}
"""Cause -> what it needs beyond a trace of the profiler: without it, that it is not found says nothing."""

_TITLE: Final = re.compile(r"\A# (\w+): (.+)\n")
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a page.

    Attributes:
        title: One of `HEADINGS`.
        text: Markdown without blank lines around it.
    """

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class CausePage:
    """What there is to say of one cause.

    Attributes:
        cause: A key of `CAUSES`.
        object: What its time is charged to.
        says: The cause in half a sentence.
        sections: One for each of `HEADINGS`.
    """

    cause: str
    object: str
    says: str
    sections: tuple[Section, ...]


def read_page(cause: str) -> CausePage:
    """Return the page of a cause.

    Raises:
        UsageError: No cause is called that.
        InvariantError: Its page is not as it must be.
    """
    if cause not in CAUSES:
        msg = f"no cause is called {cause!r}; there are {', '.join(CAUSES)}"
        raise UsageError(msg)
    return parse_page(cause, (FOLDER / f"{cause}.md").read_text(encoding="utf-8"))


def read_pages() -> dict[str, CausePage]:
    """Return cause -> its page, in the order of the vocabulary."""
    return {cause: read_page(cause) for cause in CAUSES}


def parse_page(cause: str, text: str) -> CausePage:
    """Take a page apart.

    Args:
        cause: Whose page it is.
        text: Markdown: the title `# CAUSE: half a sentence`, then the sections.

    Raises:
        InvariantError: The title names another cause, or the sections are not those of `HEADINGS`.
    """
    title = _TITLE.match(text)
    if title is None or title[1] != cause:
        msg = (
            f"advice/pages/{cause}.md, line 1: expected the title '# {cause}: …'; found {text.partition(chr(10))[0]!r}"
        )
        raise InvariantError(msg)
    parts = _SECTION.split(text[title.end() :])
    titles, bodies = parts[1::2], parts[2::2]
    if tuple(titles) != HEADINGS:
        msg = f"advice/pages/{cause}.md: expected the headings {', '.join(HEADINGS)}; found {', '.join(titles)}"
        raise InvariantError(msg)
    sections = tuple(Section(name, body.strip("\n")) for name, body in zip(titles, bodies, strict=True))
    return CausePage(cause, CAUSES[cause], title[2].strip(), sections)
