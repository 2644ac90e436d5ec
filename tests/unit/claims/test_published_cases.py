"""Every row of the published and derived claims comes out with its verdict and its corrected value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.audit_samples import audited
from tests.claim_cases import CASES
from tests.claim_tables import rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.audit import Audit

# The table's verdict -> ours, with the qualifier that says the rest.
VERDICTS: Final = {
    "consistent": ("consistent", ""),
    "consistent_after_rounding": ("consistent", "after rounding"),
    "consistent_arithmetic_wrong_model": ("consistent_under", "wrong model"),
    "inconsistent": ("inconsistent", ""),
    "impossible": ("impossible", ""),
    "wording": ("consistent_under", "wording"),
}
# Where the table prints what a claim gives and not what is wrong with it, or in another unit.
FIELDS: Final = {
    "slip3_tp_time_fwd_ring": "least_comm_s",
    "slip3_tp_time_fwd_bwd": "least_comm_s",
    "slip3_tp_time_fwd_bwd_pp2": "tp_step_comm_s",
    "slip3_tp_time_pp2_dp2": "tp_step_comm_s",
    "slip3_full_recompute_pp2": "least_comm_s",
}
CONSISTENT: Final = {
    "slip1_flops": "flops_step",
    "slip3_allreduce_bytes": "message",
    "slip3_tp_time_article": "comm_s",
    "llama3_v3_row2": "mfu",
    "palm_540b": "mfu",
    "deepseek_v3_mfu": "mfu",
}


def row_of(oracles: Path, case: str) -> dict[str, str]:
    return next(row for row in rows_of(oracles, "claim_audit_cases") if row["case_id"] == case)


def corrected(audit: Audit) -> list[float]:
    return [one.corrections[0].value for s in audit.statements for one in s.findings if one.corrections]


def test_every_row_of_the_table_is_a_case(oracles: Path) -> None:
    assert sorted(CASES) == sorted(row["case_id"] for row in rows_of(oracles, "claim_audit_cases"))


@pytest.mark.parametrize("case", CASES)
def test_a_claim_gets_its_verdict(case: str, oracles: Path) -> None:
    expected = row_of(oracles, case)["verdict"]
    audit = audited(CASES[case])

    if expected:
        verdict, qualifier = VERDICTS[expected]
        assert {(one.verdict, one.qualifier) for one in audit.statements} == {(verdict, qualifier)}
    else:
        assert audit.verdict in ("consistent", "underdetermined")


@pytest.mark.parametrize("case", CASES)
def test_a_claim_is_corrected_to_the_value_of_the_table(case: str, oracles: Path) -> None:
    row = row_of(oracles, case)
    audit = audited(CASES[case])

    if row["verdict"] == "inconsistent":
        assert corrected(audit)[0] == pytest.approx(float(row["correct"]), rel=1e-3)
    elif case in FIELDS:
        implied = {one.field: one.value for one in audit.statements[0].implied}
        assert implied[FIELDS[case]] == pytest.approx(float(row["correct"]), rel=1e-4)
    elif case == "torchtitan_order":
        assert corrected(audit) == pytest.approx([0.390, 0.337], rel=1e-2)
    elif case in CONSISTENT:
        stated = next(one for one in audit.statements[0].stated if one.field == CONSISTENT[case])
        assert stated.value == pytest.approx(float(row["correct"]), rel=0.02)


def test_13b_on_8_devices_takes_512_ms_at_full_rate_and_not_half_a_millisecond() -> None:
    (statement,) = audited(CASES["slip1_time_unit"]).statements

    assert statement.findings[0].corrections[0].value == pytest.approx(0.5120, abs=5e-5)
    assert "1000 times as long" in statement.explanations[0].says
    assert statement.explanations[0].factors == {"ideal_step_s": 1000.0}


def test_tp4_pp2_dp2_needs_16_devices_and_the_layouts_of_8_are_named() -> None:
    (statement,) = audited(CASES["slip2_topology"]).statements
    needed, *others = statement.findings[0].corrections

    assert (needed.field, needed.value) == ("gpus", 16)
    assert {(one.field, one.value) for one in others} == {("dp", 1), ("pp", 1), ("tp", 2)}


@pytest.mark.parametrize(("pp", "expected_s"), [(1, 0.1342), (2, 0.0671)])
def test_tensor_parallelism_of_the_article_takes_134_ms_and_67_ms_by_an_a100s_link(pp: int, expected_s: float) -> None:
    """80 all-reduces of 168 MB are the forward pass of 40 layers; 400 GB/s is no rate of an A100."""
    claim = f"""
        layers = 40
        hidden = 5120
        seq = 2048
        mbs = 8
        tp = 4
        pp = {pp}
        device = "A100-SXM4-80GB"
        all_reduces = 80
        message = 167772160
        link = "400 GB/s"
        comm_s = "33 ms"
    """
    (statement,) = audited(claim).statements
    at_its_link = [one for one in statement.implied if one.field == "tp_step_comm_s" and "A100" in one.what]

    assert at_its_link[0].value == pytest.approx(expected_s, abs=1e-4)
    assert any("300 GB/s one way (600 both ways)" in one.says for one in statement.findings)
    assert any("2(n-1)/n (1.5)" in one for one in statement.readings)
    assert any("forward pass only" in one for one in statement.readings) == (pp == 1)


def test_7b_at_1200_and_2200_tokens_per_second_is_2_and_3_7_percent() -> None:
    article = audited(
        """
        params = 7e9
        gpus = 8
        peak = "312 TFLOP/s"
        [[claim]]
        tok_s = 1200
        mfu = "35 %"
        [[claim]]
        tok_s = 2200
        mfu = "55 %"
        """
    )

    assert corrected(article) == pytest.approx([0.0202, 0.0370], abs=5e-5)
    assert article.statements[0].findings[0].corrections[1].value == pytest.approx(20_800)
    assert article.statements[1].findings[0].corrections[1].value == pytest.approx(32_686, abs=1)
    assert "16.2 %" in article.statements[0].nearest
    assert "per device" in article.statements[1].explanations[0].says
    assert "13B" in article.statements[1].explanations[0].says


def test_throughput_and_mfu_that_grow_differently_contradict_whatever_the_model() -> None:
    (between,) = audited(
        """
        [[claim]]
        name = "before"
        tok_s = 1200
        mfu = "35 %"
        [[claim]]
        name = "after"
        tok_s = 2200
        mfu = "55 %"
        """
    ).across

    assert between.code == "R5"
    assert between.statements == ["before", "after"]
    assert (between.expected, between.stated) == pytest.approx((1.833, 1.571), abs=1e-3)
