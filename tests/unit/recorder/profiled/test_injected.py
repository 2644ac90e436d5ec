"""What is put into another Python is something that it can read, and needs nothing that it may not have."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from longpole.recorder.profiled import injected

FOLDER = Path(str(injected.__file__)).parent
FILES = sorted(FOLDER.rglob("*.py"))
OLD = [name for name in ("python3.8", "python3.9", "python3.10") if shutil.which(name)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_of_python_3_8_and_imports_the_standard_library_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))

    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    roots = {name.partition(".")[0] for name in imported}
    assert roots <= sys.stdlib_module_names | {"__future__", "longpole_recording", "sitecustomize"}


@pytest.mark.parametrize("python", OLD)
def test_an_older_python_loads_it(python: str) -> None:
    names = ", ".join(f"longpole_recording.{path.stem}" for path in FILES if path.parent.name == "longpole_recording")
    command = [python, "-c", f"import {names}".replace(".__init__", "")]

    done = subprocess.run(
        command, env={"PYTHONPATH": str(FOLDER)}, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
