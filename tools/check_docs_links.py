"""Every relative link in our Markdown files leads to a file that exists, and to a heading of it where it names one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDERS = ("docs", "changelog.d", "requirements", "benchmarks", "examples")
_LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def find_violations(root: Path) -> list[Violation]:
    """Return the links that lead nowhere."""
    found: list[Violation] = []
    for page in _find_pages(root):
        text = _blank_code(page.read_text(encoding="utf-8"))
        for match in _LINK.finditer(text):
            problem = _judge(page, match[1])
            if problem:
                found.append(Violation(page.relative_to(root), text.count("\n", 0, match.start()) + 1, problem))
    return found


def _find_pages(root: Path) -> Iterator[Path]:
    yield from sorted(root.glob("*.md"))
    for folder in _FOLDERS:
        yield from sorted((root / folder).rglob("*.md"))


def _blank_code(text: str) -> str:
    """Take out code, where brackets are no links, and keep the line numbers."""
    return _CODE.sub(lambda match: "\n" * match[0].count("\n"), text)


def _judge(page: Path, link: str) -> str | None:
    if re.match(r"[a-z][a-z0-9+.-]*:", link):
        return None
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return f"the link {link} leads to no file"
    if anchor and target.suffix == ".md" and anchor not in _read_anchors(target):
        return f"the link {link} leads to no heading of {target.name}"
    return None


def _read_anchors(page: Path) -> set[str]:
    """Return the anchors that a forge makes of the page's headings: lower case, no punctuation, hyphens for spaces."""
    fenceless = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(fenceless)}
