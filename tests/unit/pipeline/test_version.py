"""The version of the package, without asking for its metadata where its folder says it."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from longpole.pipeline.version import package_version

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_version_is_that_of_the_metadata() -> None:
    package_version.cache_clear()

    assert package_version() == version("longpole")


def test_two_installed_versions_leave_it_to_the_metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "longpole-99.0.dist-info").mkdir()
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])
    package_version.cache_clear()

    assert package_version() == version("longpole")
    package_version.cache_clear()
