"""What a device holds at the least, against its memory and against the memory that is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from longpole.claims import audit, read_claims
from tests.audit_samples import audited
from tests.claim_tables import rows_of
from tests.measured_memory import MODELS

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.audit import AuditStatement

LLAMA_70B = """
    model = "llama-3-70b"
    device = "H100"
    seq = 8192
    schedule = "1f1b"
    mfu = "30 %"
"""


def least_of(statement: AuditStatement) -> float | None:
    """Return the memory at the least that an audit lists."""
    return next((one.value for one in statement.implied if one.field == "least_memory"), None)


def test_states_and_activations_of_a_stated_layout_are_counted() -> None:
    """Stage 0 of 4 has 20 layers of 855,654,400 parameters and an embedding of 128256 · 8192, over 8 ranks.

    ZeRO 1 of 2 replicas keeps 2 + 2 + 12/2 bytes of each. Of a layer with everything computed again 2 · s · h bytes
    over 8 ranks stay, of 4 micro-batches in flight: 4 · 20 · 2 · 8192 · 8192 / 8.
    """
    claim = f'{LLAMA_70B}\ngpus = 64\ntp = 8\npp = 4\ndp = 2\nzero = 1\nmbs = 1\ngbs = 64\nrecompute = "full"'
    layers, embedding = 20 * 855_654_400, 128256 * 8192

    found = least_of(audited(claim).statements[0])

    assert found == pytest.approx(10 * (layers + embedding) / 8 + 4 * 20 * 2 * 8192 * 8192 / 8, rel=2e-3)


@pytest.mark.parametrize(
    ("claim", "verdict", "says"),
    [
        ('tp = 4\npp = 2\ndp = 2\nzero = 1\nmbs = 4\ngbs = 32\nrecompute = "none"', "implausible", "computed again"),
        (
            'tp = 8\npp = 2\ndp = 1\nzero = 1\nmbs = 16\ngbs = 64\nrecompute = "full"',
            "implausible",
            "70.6 GB of weights",
        ),
        ("tp = 8\npp = 4\ndp = 2\nmbs = 1\ngbs = 64", "consistent", ""),
    ],
)
def test_a_layout_that_does_not_fit_is_implausible(claim: str, verdict: str, says: str) -> None:
    found = audited(f"{LLAMA_70B}\n{claim}")

    assert found.verdict == verdict
    assert says in found.says


@pytest.mark.parametrize("claim", ["gpus = 64\nmbs = 4", "gpus = 64\ntp = 8\nmbs = 4", 'purpose = "decode"'])
def test_a_layout_that_nobody_states_is_not_guessed(claim: str) -> None:
    assert least_of(audited(f"{LLAMA_70B}\n{claim}").statements[0]) is None


def test_what_is_not_stated_takes_the_least() -> None:
    stated = "tp = 8\npp = 4\ndp = 2\nmbs = 1\ngbs = 64"
    least = least_of(audited(f"{LLAMA_70B}\n{stated}").statements[0])

    assert least is not None
    for more in ('recompute = "none"', 'recompute = "selective"', "zero = 0", "zero = 1", "zero = 2", "zero = 3"):
        found = least_of(audited(f"{LLAMA_70B}\n{stated}\n{more}").statements[0])
        assert found is not None
        assert found >= least


def measured(oracles: Path, share: float) -> list[dict[str, Any]]:
    """Return what Megatron-LM measured on B200 as claims, with a share of the memory."""
    claims = []
    for row in rows_of(oracles, "simumax_b200_v1_2"):
        model = MODELS[row["model"]]
        if model.experts is not None:
            continue
        claim: dict[str, Any] = {
            "layers": int(row["layers"]), "hidden": model.hidden, "heads": model.heads, "ffn": model.feed_forward,
            "kv_heads": model.key_value_heads, "vocab": model.vocabulary, "seq": int(row["seq_len"]), "mbs": 1,
            "ga": int(row["micro_batches"]), "gpus": 8, "zero": 1, "recompute": "none",
            "memory_gib": f"{share * float(row['real_alloc_gib']):.2f}",
        }  # fmt: skip
        claim |= {name: int(row[name]) for name in ("tp", "pp", "cp", "dp") if row[name]}
        claims.append(claim)
    return claims


def test_memory_that_was_measured_is_not_accused_and_two_thirds_of_it_are(oracles: Path) -> None:
    """What is counted at the least is 70 to 87 % of what was allocated."""
    whole = [audit(read_claims(claim)).verdict for claim in measured(oracles, 1.0)]
    less = [audit(read_claims(claim)).verdict for claim in measured(oracles, 0.66)]

    assert len(whole) == 31
    assert set(whole) == {"consistent"}
    assert set(less) == {"implausible"}
