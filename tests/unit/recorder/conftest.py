"""A folder to record into, and no recording left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole import record
from tests.span_files import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recording]:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LONGPOLE_RECORD"):
        monkeypatch.delenv(name, raising=False)
    found = Recording(tmp_path / "spans")
    record.start(found.folder)
    yield found
    record.stop()
