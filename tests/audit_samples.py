"""Audits whose pages are kept."""

from __future__ import annotations

import textwrap
import tomllib
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from longpole.claims import audit, read_claims
from tests.claim_cases import CASES

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.records.audit import Audit

ARTICLE: Final = """
    title = "Training a 7B model on eight A100"
    params = 7e9
    gpus = 8
    device = "A100-SXM4-80GB"

    [[claim]]
    name = "before"
    quote = "1,200 tokens/s, 35 % MFU"
    tok_s = 1200
    mfu = "35 %"

    [[claim]]
    name = "after"
    quote = "2,200 tokens/s, 55 % MFU"
    tok_s = 2200
    mfu = "55 %"
"""


def audited(text: str) -> Audit:
    """Return the audit of a file of claims."""
    return audit(read_claims(tomllib.loads(textwrap.dedent(text), parse_float=Decimal)), version="0")


def article() -> Audit:
    """Two rows of one model that contradict themselves and each other."""
    return audited(ARTICLE)


def reordered() -> Audit:
    """Right figures in the wrong order."""
    return audited(CASES["torchtitan_order"])


def communication() -> Audit:
    """A sum whose arithmetic holds, and which leaves things out."""
    return audited(CASES["slip3_tp_time_article"])


SAMPLES: Final[dict[str, Callable[[], Audit]]] = {
    "article": article,
    "reordered": reordered,
    "communication": communication,
}
"""Name of the golden page -> what it shows."""
