"""The user's own thresholds: what is taken from a file, and what is refused with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.errors import UsageError
from longpole.settings import Settings, read_settings

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_file_names_goes_before_the_default(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text("[settings]\nreadout_max_bytes = 8192\n", encoding="utf-8")

    assert read_settings(path).readout_max_bytes == 8192
    assert read_settings(None) == Settings()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("readout_max_bytes = 8192\n", r"no table \[settings\] in it"),
        ("settings = 3\n", r"no table \[settings\] in it"),
        ("[settings]\nreadout_bytes = 1\n", "no setting is called 'readout_bytes'"),
        ("[settings]\nreadout_max_bytes = true\n", "takes a number of at least 0, found True"),
        ("[settings]\nreadout_max_bytes = -1\n", "takes a number of at least 0, found -1"),
        ("[settings]\nreadout_max_bytes = inf\n", "takes a number of at least 0, found inf"),
        ("[settings]\nreadout_max_bytes = nan\n", "takes a number of at least 0, found nan"),
        ("[settings\n", "expected a TOML file with settings"),
    ],
)
def test_a_mistake_is_named_and_not_passed_over(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=says):
        read_settings(path)
