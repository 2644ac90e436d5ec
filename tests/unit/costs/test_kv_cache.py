"""What a token leaves in the cache: the published figures to the byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.costs.architecture import Architecture, Latent
from longpole.costs.kv_cache import kv_bytes_of_sequence, kv_bytes_per_token
from tests.published_tables import read_table

if TYPE_CHECKING:
    from pathlib import Path


def model_of(row: dict[str, str]) -> Architecture:
    heads = int(row["kv_heads"] or 128)
    latent = None
    if row["attention"] == "MLA":
        rank, rope = int(row["kv_lora_rank"]), int(row["rope_dim"])
        latent = Latent(query_rank=1536, key_value_rank=rank, rope_dim=rope, plain_dim=128, value_dim=128)
    return Architecture(
        name=row["model"],
        layers=int(row["layers"]),
        hidden=heads * 128,
        heads=heads,
        key_value_heads=heads,
        head_dim=int(row["head_dim"] or 128),
        feed_forward=4 * heads * 128,
        vocabulary=32000,
        latent=latent,
    )


def test_published_bytes_per_token_come_out_exactly(oracles: Path) -> None:
    rows = read_table(oracles, "kv_cache_per_token")

    found = {row["model"]: kv_bytes_per_token(model_of(row), float(row["bytes_per_elem"])) for row in rows}

    assert found == {row["model"]: int(row["kv_bytes_per_token"]) for row in rows}


GROUPED = Architecture(
    name="8B", layers=32, hidden=4096, heads=32, key_value_heads=8, head_dim=128, feed_forward=14336, vocabulary=128256
)


@pytest.mark.parametrize(("tp", "share"), [(1, 1), (2, 1 / 2), (8, 1 / 8), (16, 1 / 8), (32, 1 / 8)])
def test_more_ranks_than_key_value_heads_save_nothing(tp: int, share: float) -> None:
    assert kv_bytes_per_token(GROUPED, 2, tp) == share * 131072


def test_compressed_keys_and_values_are_on_every_rank() -> None:
    latent = model_of({
        "model": "V3", "attention": "MLA", "layers": "61", "kv_heads": "", "head_dim": "", "kv_lora_rank": "512",
        "rope_dim": "64",
    })  # fmt: skip

    assert kv_bytes_per_token(latent, 2, tp=8) == kv_bytes_per_token(latent, 2) == 70272


def test_a_windowed_layer_keeps_no_more_than_its_window() -> None:
    """Of 4 layers, 3 with a window of 100: at 1,000 tokens, 1 · 1,000 + 3 · 100 tokens are kept."""
    windowed = Architecture(
        name="windowed", layers=4, hidden=256, heads=4, key_value_heads=4, head_dim=64, feed_forward=1024,
        vocabulary=1000, window=100, windowed_layers=3,
    )  # fmt: skip
    per_layer = 2 * 4 * 64 * 2

    assert kv_bytes_of_sequence(windowed, 1000) == 1300 * per_layer
    assert kv_bytes_of_sequence(windowed, 50) == 50 * kv_bytes_per_token(windowed)
