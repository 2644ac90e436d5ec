"""Fixtures for the folders of recorded input, and the Hypothesis profiles."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import FULL

ROOT = Path(__file__).resolve().parents[1]

# No deadline, and no complaint about slow generation: both would judge the machine and not the code.
settings.register_profile("default", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples on every run, so that a red build means a change.
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
# What `make test-all` runs.
settings.register_profile("full", parent=settings.get_profile("default"), max_examples=FULL)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))


# Tests start many interpreters, and each would compile the package anew where no bytecode may be kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_finish() -> None:
    """Take what was collected out of the garbage collector's rounds: it lives until the end."""
    gc.freeze()


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded traces and published figures, which is too large for the repository.

    LONGPOLE_SHARED names it; else it lies beside the repository, under the name `shared`.
    """
    named = os.environ.get("LONGPOLE_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    if named and not folder.is_dir():
        pytest.fail(f"LONGPOLE_SHARED names {folder}, which is no folder")
    if not folder.is_dir():
        pytest.skip(f"needs the shared folder: none at {folder}, and LONGPOLE_SHARED is not set")
    return folder


@pytest.fixture(scope="session")
def corpus(shared: Path) -> Path:
    """Real traces by the repositories they come from."""
    return _require(shared / "corpus")


@pytest.fixture(scope="session")
def cases(request: pytest.FixtureRequest) -> Path:
    """Small inputs with the values that must come out: our copy, else the shared folder's."""
    return _own_or_shared("cases", request)


@pytest.fixture(scope="session")
def oracles(request: pytest.FixtureRequest) -> Path:
    """Figures from elsewhere to compare with: our copy, else the shared folder's."""
    return _own_or_shared("oracles", request)


def _own_or_shared(name: str, request: pytest.FixtureRequest) -> Path:
    own = ROOT / "tests" / name
    if own.is_dir():
        return own
    shared: Path = request.getfixturevalue("shared")
    return _require(shared / name)


def _require(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"needs {folder}, which is not there")
    return folder
