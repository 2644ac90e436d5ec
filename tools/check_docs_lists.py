"""A list in the documentation equals the list in the code that it describes.

So far: every integrity code (the keys of `CODES` in `timeline/integrity.py`) has a heading of its own in
`docs/reference/integrity.md`, and the page has no heading for a code that is gone.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools.violation import Violation

CODES_MODULE = Path("src/longpole/timeline/integrity.py")
CODES_PAGE = Path("docs/reference/integrity.md")
# A heading that is a code: dotted lower-case words, in backticks or not; or anything that is all in backticks.
_CODE_HEADING = re.compile(r"^#{2,6} +(?:`([^`]+)`|([a-z0-9_]+(?:\.[a-z0-9_]+)+)) *$", re.MULTILINE)


def find_violations(root: Path) -> list[Violation]:
    """Return the integrity codes that only the code, or only its page, knows."""
    missing = [path for path in (CODES_MODULE, CODES_PAGE) if not (root / path).is_file()]
    if missing:
        return [
            Violation(path, 1, "expected this file, for the list of integrity codes; found none") for path in missing
        ]
    lines_of_code = _read_codes(ast.parse((root / CODES_MODULE).read_text(encoding="utf-8")))
    if not lines_of_code:
        return [Violation(CODES_MODULE, 1, "expected a dict display CODES of string keys at module level; found none")]
    headings = _read_headings((root / CODES_PAGE).read_text(encoding="utf-8"))
    found = [
        Violation(CODES_MODULE, line, f"the code {code} has no heading in {CODES_PAGE}")
        for code, line in lines_of_code.items()
        if code not in headings
    ]
    found += [
        Violation(CODES_PAGE, line, f"the heading {code} is no key of CODES in {CODES_MODULE}")
        for code, line in headings.items()
        if code not in lines_of_code
    ]
    return found


def _read_codes(tree: ast.Module) -> dict[str, int]:
    """Return the string keys of the dict display in the value of `CODES`, each with its line."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "CODES" for target in targets):
            displays = [display for display in ast.walk(node) if isinstance(display, ast.Dict)]
            return {
                key.value: key.lineno
                for display in displays[:1]
                for key in display.keys
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
    return {}


def _read_headings(text: str) -> dict[str, int]:
    return {match[1] or match[2]: text.count("\n", 0, match.start()) + 1 for match in _CODE_HEADING.finditer(text)}
