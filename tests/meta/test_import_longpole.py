"""What `import longpole` gives, and what it costs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import longpole

HEAVY = ("bokeh", "numpy", "polars", "ray", "rich", "scipy", "torch", "typer")


def _list_modules(statement: str) -> set[str]:
    """Run a statement in a fresh interpreter and return the names of the top-level modules that it has loaded."""
    program = f"{statement}; import json, sys; print(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(json.loads(run.stdout))


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return _list_modules("import longpole")


@pytest.mark.parametrize("library", HEAVY)
def test_importing_longpole_loads_no_heavy_library(library: str, loaded: set[str]) -> None:
    assert "longpole" in loaded

    assert library not in loaded


def test_a_module_that_is_loaded_is_seen() -> None:
    """The test above could not pass by looking in the wrong place."""
    assert "numpy" in _list_modules("import longpole, numpy")


def test_public_names_are_sorted() -> None:
    assert list(longpole.__all__) == sorted(longpole.__all__)


def test_public_names_are_unique() -> None:
    assert len(set(longpole.__all__)) == len(longpole.__all__)


@pytest.mark.parametrize("name", longpole.__all__)
def test_a_public_name_resolves(name: str) -> None:
    assert getattr(longpole, name) is not None


def test_dir_lists_every_public_name() -> None:
    """Names that resolve lazily are offered by completion all the same."""
    assert set(longpole.__all__) <= set(dir(longpole))


def test_an_unknown_name_is_refused() -> None:
    name = "no_such_name"

    with pytest.raises(AttributeError, match=name):
        getattr(longpole, name)
