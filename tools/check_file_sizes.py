"""Files and functions stay small.

Past these limits a file has more than one subject, and a function no longer fits a screen.
`size_allowances.toml` lists the exceptions, and an exception may only shrink.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tools.violation import Violation, all_statements_in, find_python_files

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_LIMIT_LINES = 600
FUNCTION_LIMIT_LINES = 70
ALLOWANCES = Path("tools/size_allowances.toml")


def find_violations(root: Path) -> list[Violation]:
    """Return the files and functions that are too long, and the allowances that are too wide."""
    allowances = _read_allowances(root)
    found: list[Violation] = []
    for path in find_python_files(root):
        relative = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        n_lines = len(text.splitlines())
        found += _check_file(relative, n_lines, allowances.pop(relative.as_posix(), None))
        found += _check_functions(relative, ast.parse(text, filename=str(relative)))
    found += [Violation(ALLOWANCES, 1, f"{name} does not exist; take it off the list") for name in allowances]
    return found


def _read_allowances(root: Path) -> dict[str, int]:
    table = tomllib.loads((root / ALLOWANCES).read_text(encoding="utf-8"))
    return {str(name): int(n_lines) for name, n_lines in table.items()}


def _check_file(path: Path, n_lines: int, allowed: int | None) -> Iterator[Violation]:
    if allowed is None:
        if n_lines > FILE_LIMIT_LINES:
            yield Violation(path, 1, f"{n_lines} lines, at most {FILE_LIMIT_LINES} are allowed; split it by subject")
    elif n_lines <= FILE_LIMIT_LINES:
        yield Violation(ALLOWANCES, 1, f"{path} has {n_lines} lines and needs no allowance; take it off the list")
    elif n_lines > allowed:
        yield Violation(path, 1, f"{n_lines} lines, its allowance is {allowed}, and allowances do not grow")
    elif n_lines < allowed:
        yield Violation(ALLOWANCES, 1, f"{path} has shrunk to {n_lines} lines; lower its allowance from {allowed}")


def _check_functions(path: Path, tree: ast.Module) -> Iterator[Violation]:
    for node in all_statements_in(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            n_lines = node.end_lineno - node.lineno + 1
            if n_lines > FUNCTION_LIMIT_LINES:
                message = f"{node.name} has {n_lines} lines, at most {FUNCTION_LIMIT_LINES} are allowed"
                yield Violation(path, node.lineno, message)
