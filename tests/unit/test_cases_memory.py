"""Cases that are memory snapshots: every expected value comes out of `longpole memory`."""

from __future__ import annotations

import json

import msgspec
import pytest

from longpole.pipeline.memory_snapshots import build_memory
from longpole.settings import Settings
from tests.case_answers import CASES, LATER_OF_CASE

B090 = json.loads((CASES / "B090" / "expected.json").read_text(encoding="utf-8"))["values"]


@pytest.mark.parametrize("key", ["cause", *LATER_OF_CASE["B090"]])
def test_b090_an_expected_value_comes_out(key: str) -> None:
    document = build_memory([str(CASES / "B090" / "input.json")], Settings())

    (device,) = document.devices
    assert msgspec.to_builtins(device)[key] == B090[key]


def test_b090_is_not_called_a_model_that_is_too_large() -> None:
    document = build_memory([str(CASES / "B090" / "input.json")], Settings())

    assert "19.50 GiB are free inside segments: the largest piece is 256.00 MiB" in document.says
    assert document.devices[0].try_next[0].startswith("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
    assert not [advice for advice in document.devices[0].try_next if "smaller batch" in advice]
