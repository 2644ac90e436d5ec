"""What is put into another Python is something that it can read, and needs nothing that it may not have."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from longpole.recorder.profiled import injected

FOLDER = Path(str(injected.__file__)).parent
FILES = sorted(FOLDER.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_is_of_python_3_8_and_imports_the_standard_library_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))

    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    roots = {name.partition(".")[0] for name in imported}
    assert roots <= sys.stdlib_module_names | {"__future__", "longpole_recording", "sitecustomize"}
