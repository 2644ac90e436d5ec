"""The page on how good the times of collectives are holds what its command prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.collectives import accuracy

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_page_holds_what_the_command_prints(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert accuracy.main() == 0
    printed = capsys.readouterr().out.splitlines()
    page = (root / "docs" / "concepts" / "how-good-are-collective-times.md").read_text(encoding="utf-8").splitlines()

    assert len(printed) > 40
    assert [line for line in printed if line not in page] == []
