"""Whatever is stated, an audit answers, or says what would be accepted; and it answers the same in any order."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from longpole.claims import audit, read_claims
from longpole.claims.fields import FIELDS
from longpole.errors import UsageError
from longpole.report.text.audit import render_audit

WORDS: Final = {
    "device": ("A100", "H100", "MI300X", "TPU v5p", "8x H200"),
    "dtype": ("bf16", "fp8", "tf32"),
    "model": ("llama-3-8b", "deepseek-v3", "70B", "nothing"),
    "recompute": ("full", "none", "partial"),
    "schedule": ("1f1b", "zb1p"),
    "algorithm": ("Ring", "NVLS"),
    "collective": ("all_reduce", "all_gather", "p2p"),
    "purpose": ("training", "decode"),
    "convention": ("6n", "palm", "sc21_hw"),
}
COUNTS: Final = (1, 2, 3, 4, 8, 16, 64, 1024, 4096, 50257)
AMOUNTS: Final = ("35 %", "1.5", 0.4, 7, "13B", 2048, "2.2k", "0.51", "up to 3", "~400", "33-39", 1e15, 10**12)


@st.composite
def claims(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=9, unique=True))
    figures = {name: draw(st.sampled_from(COUNTS if FIELDS[name].exact else AMOUNTS)) for name in names}
    words = draw(st.lists(st.sampled_from(sorted(WORDS)), max_size=3, unique=True))
    return {**figures, **{word: draw(st.sampled_from(WORDS[word])) for word in words}}


@given(claims())
def test_any_claim_is_answered_or_refused(claim: dict[str, Any]) -> None:
    with suppress(UsageError):
        found = audit(read_claims(claim))
        page = render_audit(found, width=80, color=False, everything=True)
        assert max(map(len, page.splitlines())) <= 80


@given(claims(), claims(), st.randoms())
def test_the_order_of_keys_changes_no_verdict(one: dict[str, Any], other: dict[str, Any], random: Any) -> None:
    def verdicts(rows: list[dict[str, Any]]) -> list[str]:
        return [statement.verdict for statement in audit(read_claims({"claim": rows})).statements]

    def shuffled(row: dict[str, Any]) -> dict[str, Any]:
        keys = list(row)
        random.shuffle(keys)
        return {key: row[key] for key in keys}

    with suppress(UsageError):
        assert verdicts([one, other]) == verdicts([shuffled(one), shuffled(other)])
