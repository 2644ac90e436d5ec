"""Every cause of the vocabulary has a page with the agreed sections, and there is no page of a cause that is gone.

The text is in `src/longpole/advice/pages`, with a copy in `docs/reference/causes`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools.violation import Violation

CAUSES_MODULE = Path("src/longpole/vocabulary/causes.py")
PAGES = Path("src/longpole/advice/pages")
COPIES = Path("docs/reference/causes")
INDEX = "README"
HEADINGS = (
    "What it looks for",
    "Why it costs time",
    "Evidence it needs",
    "What it does not prove",
    "What to try",
    "See also",
)
_HEADING = re.compile(r"^(#+) +(.+?) *$", re.MULTILINE)


def find_violations(root: Path) -> list[Violation]:
    """Return causes without a page, pages without a cause, and pages with other sections."""
    if not (root / CAUSES_MODULE).is_file():
        return [Violation(CAUSES_MODULE, 1, "expected this file, for the vocabulary of causes; found none")]
    causes = _read_causes(ast.parse((root / CAUSES_MODULE).read_text(encoding="utf-8")))
    if not causes:
        return [Violation(CAUSES_MODULE, 1, "expected a dict display CAUSES of string keys; found none")]
    found: list[Violation] = []
    for folder in (PAGES, COPIES):
        present = {path.stem for path in (root / folder).glob("*.md")} - {INDEX}
        found += [
            Violation(CAUSES_MODULE, line, f"the cause {cause} has no page in {folder}")
            for cause, line in causes.items()
            if cause not in present
        ]
        found += [
            Violation(folder / f"{name}.md", 1, f"{name} is no key of CAUSES in {CAUSES_MODULE}; delete its page")
            for name in sorted(present - set(causes))
        ]
    for cause in causes:
        if (root / PAGES / f"{cause}.md").is_file():
            found += _judge_page(root, PAGES / f"{cause}.md", cause)
    return found


def _judge_page(root: Path, path: Path, cause: str) -> list[Violation]:
    """Compare a page's title and sections with what they must be."""
    text = (root / path).read_text(encoding="utf-8")
    headings = [(match[1], match[2], text.count("\n", 0, match.start()) + 1) for match in _HEADING.finditer(text)]
    titles = [title for marks, title, _ in headings if marks == "#"]
    found = []
    if len(titles) != 1 or not titles[0].startswith(f"{cause}: "):
        found.append(Violation(path, 1, f"expected the one title '# {cause}: …'; found {titles}"))
    sections = tuple(title for marks, title, _ in headings if marks == "##")
    if sections != HEADINGS:
        line = next(
            (at for (_, title, at), want in zip(headings[1:], HEADINGS, strict=False) if title != want),
            headings[-1][2] if headings else 1,
        )
        found.append(Violation(path, line, f"expected the sections {', '.join(HEADINGS)}; found {', '.join(sections)}"))
    return found


def _read_causes(tree: ast.Module) -> dict[str, int]:
    """Return the string keys of the dict display in the value of `CAUSES`, each with its line."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "CAUSES":
            if not isinstance(node.value, ast.Dict):
                return {}
            return {
                key.value: key.lineno
                for key in node.value.keys
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
    return {}
