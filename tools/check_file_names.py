"""A file's name says what it owns. A name that fits anything collects everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.violation import Violation, find_python_files

if TYPE_CHECKING:
    from pathlib import Path

_VAGUE = frozenset({"base", "common", "core", "helper", "manager", "misc", "type", "util"})


def find_violations(root: Path) -> list[Violation]:
    """Return the Python files that have a vague name, or lie in a folder that has one."""
    found: list[Violation] = []
    for path in find_python_files(root):
        relative = path.relative_to(root)
        vague = sorted({name for name in relative.with_suffix("").parts if _is_vague(name)})
        if vague:
            message = f"the name {', '.join(vague)} says nothing about what is inside; name the file for what it owns"
            found.append(Violation(relative, 1, message))
    return found


def _is_vague(name: str) -> bool:
    bare = name.strip("_").lower().removeprefix("test_")
    return bare in _VAGUE or bare.removesuffix("s") in _VAGUE
