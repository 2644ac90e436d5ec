"""What a repository check finds, and the walk over our own Python files that several checks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator
    from pathlib import Path

_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")

PYTHON_FOLDERS = ("src", "tests", "tools", "benchmarks", "examples")


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    Attributes:
        path: The file, relative to the root of the repository.
        line: Counted from 1; 1 where the rule is about the file as a whole.
        message: What was expected, what was found, and what to do.
    """

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a node's own blocks: far fewer nodes than all, and imports and functions are of them."""
    for name in _BLOCKS:
        block = getattr(node, name, ())
        if isinstance(block, list):
            yield from block


def all_statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement below a node, at any depth."""
    for statement in statements_in(node):
        yield statement
        yield from all_statements_in(statement)


def find_python_files(root: Path, folders: tuple[str, ...] = PYTHON_FOLDERS) -> Iterator[Path]:
    """Yield our Python files below `root`, sorted within each folder; folders that do not exist are passed over."""
    for folder in folders:
        yield from sorted((root / folder).rglob("*.py"))
