"""One slip put into a true claim is found again, and named; a true claim needs none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.claims import audit, read_claims
from tests.audit_samples import audited

GPUS = 64
PEAK = 312e12


def claim_of(mfu: float, /, **changed: object) -> dict[str, object]:
    """Return a true claim of a 13B model on 64 devices, and what is changed in it."""
    rate = mfu * GPUS * PEAK / (6 * 13e9)
    claim: dict[str, object] = {
        "params": "13.0B",
        "gpus": GPUS,
        "tp": 4,
        "pp": 2,
        "dp": 8,
        "seq": 2048,
        "gbs": 512,
        "mbs": 2,
        "ga": 32,
        "peak": "312.0 TFLOP/s",
        "tok_s": f"{rate:.0f} tok/s",
        "step_s": f"{512 * 2048 / rate:.4f} s",
        "mfu": f"{100 * mfu:.2f} %",
    }
    return {**claim, **changed}


@given(st.floats(min_value=0.2, max_value=0.6))
@settings(max_examples=20)
def test_a_true_claim_is_not_accused(mfu: float) -> None:
    assert audit(read_claims(claim_of(mfu))).verdict in ("consistent", "consistent_under")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"step_s": f"{512 * 2048 / (0.4 * GPUS * PEAK / 78e9):.4f} ms"}, "1000 times as long"),
        ({"mfu": f"{64 * 40:.2f} %"}, "against the peak of one device, not of 64"),
        ({"mfu": "20.00 %"}, "the sparse peak, twice the dense one"),
        ({"mfu": "13.33 %"}, "the forward pass only"),
        ({"mfu": "1.25 %"}, "one of 32 micro-batches"),
        ({"mfu": "80.00 %"}, "on each of 2 PP ranks"),
        ({"params": "6.50B"}, "13B"),
        ({"peak": "624.0 TFLOP/s"}, "the sparse figure"),
    ],
)
def test_a_slip_is_found_again(changed: dict[str, object], says: str) -> None:
    (statement,) = audit(read_claims(claim_of(0.4, **changed))).statements

    assert statement.verdict in ("inconsistent", "impossible")
    assert says in " | ".join(one.says for one in statement.explanations)


def test_an_mfu_that_counts_recomputation_is_named_what_it_is() -> None:
    (statement,) = audit(read_claims(claim_of(0.4, mfu="53.33 %"))).statements

    assert statement.verdict == "consistent_under"
    assert "MFU counts what is computed again (hardware FLOPs, HFU)" in statement.says


def test_a_rate_of_a_device_that_is_told_as_that_of_all_is_found_again() -> None:
    rate = 0.4 * PEAK / 78e9
    claim = {"params": "13.0B", "gpus": GPUS, "peak": "312.0 TFLOP/s", "tok_s": f"{rate:.1f}", "mfu": "40.00 %"}
    (statement,) = audit(read_claims(claim)).statements

    assert statement.explanations[0].says.startswith("tokens/s is per device")
    assert statement.explanations[0].repaired["tok_s"] == pytest.approx(rate * GPUS, rel=1e-3)


def test_all_experts_counted_for_the_active_ones_are_found_again() -> None:
    (statement,) = audited(
        """
        model = "deepseek-v3"
        seq = 4096
        gpus = 2048
        device = "H800"
        tok_s_gpu = 1542
        mfu = "628 %"
        """
    ).statements

    assert statement.verdict == "impossible"
    assert "counts all experts" in statement.explanations[0].says
    assert statement.explanations[0].repaired["mfu"] == pytest.approx(0.389, abs=2e-3)


def test_heads_counted_for_key_value_heads_are_found_again() -> None:
    (statement,) = audited('model = "llama-3-70b"\nkv_token = "2.62 MB"').statements

    assert "all 64 heads, not the 8" in statement.explanations[0].says


def test_a_claim_of_counts_alone_is_repaired_by_another_count_and_by_no_invented_slip() -> None:
    (statement,) = audited("gpus = 16384\ntp = 8\ncp = 16\npp = 16\ndp = 4").statements
    first, *others = statement.findings[0].corrections

    assert (first.field, first.value) == ("gpus", 8192)
    assert (others[0].field, others[0].value) == ("dp", 8)
    assert statement.explanations == []


def test_a_count_that_repairs_every_contradiction_is_the_one_that_is_named() -> None:
    (statement,) = audited(
        """
        gpus = 16384
        tp = 8
        cp = 16
        pp = 16
        dp = 4
        seq = 131072
        batch_per_dp = 16
        tokens_per_batch = "16M"
        """
    ).statements

    assert [one.code for one in statement.findings if one.status == "contradicts"] == ["R1", "R2"]
    assert statement.says.endswith("it would hold with DP 8")


def test_conventions_are_shown_with_what_each_makes_of_the_figure() -> None:
    (statement,) = audited(
        """
        model = "llama-3-8b"
        seq = 8192
        gpus = 8
        device = "H100"
        tok_s_gpu = 5762
        mfu = "33.7 %"
        """
    ).statements
    made = {one.name: one.expected for one in statement.conventions}

    assert statement.verdict == "consistent_under"
    assert "titan" in statement.says
    assert made["titan"] == pytest.approx(0.337, abs=1e-3)
    assert made["mcore"] == pytest.approx(0.300, abs=1e-3)


def test_a_convention_that_is_named_is_the_only_one_tried() -> None:
    claim = 'model = "llama-3-8b"\nseq = 8192\ngpus = 8\ndevice = "H100"\ntok_s_gpu = 5762\nmfu = "33.7 %"\n'

    assert audited(claim + 'convention = "titan"').verdict == "consistent"
    assert audited(claim + 'convention = "mcore"').verdict == "inconsistent"
