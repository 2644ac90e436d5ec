"""What importing a module may load.

import-linter knows the layers, but not whether an import happens when the module is loaded or only when a function is
called; this check does.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tools.violation import Violation, all_statements_in, find_python_files, statements_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "longpole"
# Slow to load or optional: only inside the function that needs it, so that `--help` and the library's door are fast.
CALL_TIME_ONLY = frozenset({"bokeh", "matplotlib", "polars", "ray", "rich", "scipy", "torch"})
# Typer is what the command line is made of, and costs nobody else anything.
AT_LOAD_TIME_IN = {"typer": ("cli",)}
# What every other module imports, the recorder in a user's program included, loads no NumPy.
WITHOUT_NUMPY = frozenset({"__init__", "__main__", "errors", "settings", "units", "vocabulary"})


def find_violations(root: Path) -> list[Violation]:
    """Return the imports in the package that load too much, or that go through the package's own root."""
    found: list[Violation] = []
    package = root / "src" / PACKAGE
    for path in find_python_files(root, (f"src/{PACKAGE}",)):
        top_level = path.relative_to(package).with_suffix("").parts[0]
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        problems = [*_find_heavy_imports(tree, top_level), *_find_root_imports(tree)]
        found += [Violation(path.relative_to(root), line, message) for line, message in sorted(problems)]
    return found


def _find_heavy_imports(tree: ast.Module, top_level: str) -> Iterator[tuple[int, str]]:
    for node in _walk_load_time(tree):
        for library in {name.partition(".")[0] for name in _imported_names(node)}:
            if library in CALL_TIME_ONLY:
                yield node.lineno, f"{library} is imported at load time; import it inside the function that needs it"
            elif library == "numpy" and top_level in WITHOUT_NUMPY:
                yield node.lineno, f"{top_level} is to load without numpy, which is imported here"
            elif top_level not in AT_LOAD_TIME_IN.get(library, (top_level,)):
                yield node.lineno, f"{library} is for {', '.join(AT_LOAD_TIME_IN[library])} only"


def _find_root_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in all_statements_in(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and PACKAGE in _imported_names(node):
            yield node.lineno, f"imports the package's own root, which makes cycles; import from {PACKAGE}.<module>"


def _walk_load_time(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run when the module is loaded: not in functions, not under `if TYPE_CHECKING:`."""
    for child in statements_in(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            for statement in child.orelse:
                yield from _walk_load_time(ast.Module([statement], []))
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk_load_time(child)


def _imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""]


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
