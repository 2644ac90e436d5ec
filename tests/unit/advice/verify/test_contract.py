"""Files of quality measures are read strictly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from longpole.advice.verify.contract import read_metrics
from longpole.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"name": "loss", "before": 2.31, "after": [2.3, 2.32], "better": "lower", "tolerance": 0.02}


@pytest.mark.parametrize("document", [[GOOD], {"metrics": [GOOD]}])
def test_a_list_or_an_object_with_one(tmp_path: Path, document: Any) -> None:
    file = tmp_path / "quality.json"
    file.write_text(json.dumps(document))
    (metric,) = read_metrics(file)
    assert (metric.name, metric.before, metric.after, metric.tolerance) == ("loss", 2.31, [2.3, 2.32], 0.02)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "JSON"),
        ("3", "array"),
        ("{}", "array"),
        ('[{"name": "loss"}]', "before"),
        ('[{"name": "loss", "before": 1, "after": "2"}]', "$[0].after"),
        ('[{"name": "loss", "before": 1, "after": 2, "better": "up"}]', "$[0].better"),
        ('[{"name": "loss", "before": 1, "after": 2, "tol": 3}]', "tol"),
        ('[{"name": "loss", "before": [], "after": 2}]', "loss"),
        ('[{"name": "loss", "before": NaN, "after": 2}]', "finite"),
        ('[{"name": "loss", "before": 1, "after": 2, "tolerance": -1}]', "tolerance"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_a_mistake_names_file_and_field(tmp_path: Path, text: str, found: str) -> None:
    file = tmp_path / "quality.json"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_metrics(file)
    assert str(caught.value).startswith(f"--metric {file}: ")
    assert found in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_metrics(tmp_path / "none.json")
