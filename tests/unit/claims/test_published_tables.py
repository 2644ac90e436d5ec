"""Published tables are not accused: rounding, conventions and readings are tried first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from longpole.claims import audit, read_claims
from tests import claim_tables as tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

GOOD: Final = ("consistent", "consistent_under")
ACCUMULATION_IS_WRONG: Final = {
    "25.11 DGX-GB300 Qwen3_235B_a22B main",
    "25.11 DGX-H100 GPT OSS 120B main",
    "25.09 DGX-GB200 LLAMA3_70B alt",
}
# The row prints PP as "4 (8)", GA as "32 (64)" and EP as 64 without another one in brackets. With PP 8 a stage has 32
# of the 256 devices, and Megatron-LM refuses devices that are no multiple of ETP · EP · PP = 512
# (initialize_model_parallel).
EXPERTS_DO_NOT_FIT: Final = {"25.09 DGX-GB200 DeepSeekV3 (tokendrop) alt"}


def accused(claims: Iterable[tables.Claim]) -> list[str]:
    """Return the names and verdicts of rows that do not hold."""
    found = [audit(read_claims(claim)) for claim in claims]
    return [f"{one.statements[0].name}: {one.says}" for one in found if one.verdict not in GOOD]


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (tables.megatron_core, 9),
        (tables.sc21_table1, 10),
        (tables.sc21_table2, 12),
        (tables.korthikanti, 4),
        (tables.maxtext, 34),
    ],
)
def test_no_row_of_a_published_table_is_accused(table: object, rows: int, oracles: Path) -> None:
    claims = list(table(oracles))  # type: ignore[operator]

    assert len(claims) == rows
    assert accused(claims) == []


def test_a_sample_of_llm_foundrys_rows_is_not_accused(oracles: Path) -> None:
    claims = list(tables.llm_foundry(oracles))

    assert accused(claims[::18]) == []
    assert accused({**claim, "convention": "palm"} for claim in claims[::18]) == []


def test_llm_foundrys_rows_hold_without_the_dimensions_of_their_models(oracles: Path) -> None:
    """Parameters alone leave attention open, so a difference of its size accuses nobody."""
    claims = list(tables.llm_foundry(oracles))[::18]

    assert accused({k: v for k, v in claim.items() if k not in ("layers", "hidden")} for claim in claims) == []


@pytest.mark.slow
def test_no_row_of_llm_foundry_is_accused(oracles: Path) -> None:
    claims = list(tables.llm_foundry(oracles))

    assert len(claims) == 216
    assert accused(claims) == []
    assert accused({**claim, "convention": "palm"} for claim in claims) == []


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_tenth_more_or_less_mfu_is_noticed(factor: float, oracles: Path) -> None:
    claims = [{**claim, "convention": "palm"} for claim in list(tables.llm_foundry(oracles))[::24]]
    changed = [{**claim, "mfu": f"{factor * float(claim['mfu'].split()[0]):.2f} %"} for claim in claims]

    assert len(accused(changed)) == len(claims)


def test_of_megatron_bridge_only_the_rows_that_cannot_be_are_accused(oracles: Path) -> None:
    claims = list(tables.megatron_bridge(oracles, models=False))

    assert len(claims) == 293
    assert {one.partition(": ")[0] for one in accused(claims)} == ACCUMULATION_IS_WRONG | EXPERTS_DO_NOT_FIT


@pytest.mark.slow
def test_of_megatron_bridge_the_flops_of_known_models_hold_too(oracles: Path) -> None:
    claims = list(tables.megatron_bridge(oracles, models=True))

    assert {one.partition(": ")[0] for one in accused(claims)} == ACCUMULATION_IS_WRONG | EXPERTS_DO_NOT_FIT


def test_llama_3s_table_fails_in_its_first_version_and_holds_in_its_third(oracles: Path) -> None:
    assert accused(tables.llama3(oracles, "v3")) == []
    assert len(accused(tables.llama3(oracles, "v1"))) == 1
