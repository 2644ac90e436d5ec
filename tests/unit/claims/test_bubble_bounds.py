"""What a pipeline waits at the least, against the bubble and the utilisation that are stated."""

from __future__ import annotations

from fractions import Fraction

import pytest

from longpole.claims.bubble_bounds import least_share
from tests.audit_samples import audited


@pytest.mark.parametrize(
    ("schedule", "stages", "micro_batches", "chunks", "share"),
    [
        ("1f1b", 8, 16, 1, Fraction(7, 23)),  # (p-1)/(m+p-1)
        ("gpipe", 8, 16, 1, Fraction(7, 23)),
        ("interleaved", 8, 16, 4, Fraction(7, 4 * 16 + 7)),  # (p-1)/(v·m+p-1)
        ("zb1p", 8, 16, 1, Fraction(7, 3 * 16 + 7)),  # (p-1)(F+B-2W) of F = W = 1, B = 2
        ("zb2p", 8, 16, 1, Fraction(0)),
        ("zbv", 8, 16, 2, Fraction(0)),
        ("dualpipe", 8, 16, 1, Fraction(3, 2 * 16 + 3)),  # (p/2-1)(FB+B-3W) of FB = 2
    ],
)
def test_the_least_share_is_that_of_the_published_forms(
    schedule: str, stages: int, micro_batches: int, chunks: int, share: Fraction
) -> None:
    assert least_share(schedule, stages, micro_batches, chunks) == pytest.approx(float(share), abs=1e-12)


def test_few_micro_batches_leave_a_bubble_that_no_closed_form_has() -> None:
    """With 4 micro-batches the 8 devices of ZB-H2 cannot be busy all the time."""
    share = least_share("zb2p", 8, 4, 1)

    assert share is not None
    assert share > 0.3


def test_huge_pipelines_are_not_simulated() -> None:
    """A form that is exact for whole groups bounds the rest from below; what has none is not bounded."""
    assert least_share("interleaved", 1000, 3001, 4) == 999 / (4 * 3001 + 999)
    assert least_share("interleaved", 8, 17, 4) > 7 / (4 * 17 + 7)  # type: ignore[operator]
    assert least_share("zb1p", 10**9, 7, 1) is None
    assert least_share("1f1b", 10**9, 7, 1) == pytest.approx(1.0)


def test_counts_without_such_a_schedule_have_no_bound() -> None:
    assert least_share("dualpipe", 7, 16, 1) is None


@pytest.mark.parametrize(
    ("claim", "verdict", "says"),
    [
        ('schedule = "zb-h1"\nbubble = "2 %"', "inconsistent", "8 stages and 16 micro-batches with ZB-H1"),
        ('schedule = "ZB-H1"\nbubble = "12.8 %"', "consistent", ""),
        ('schedule = "zb1p"\nbubble = "12.5 %"', "inconsistent", "a bubble of 12.7 % of the step"),
        ('schedule = "ZB-V"\nbubble = "0 %"', "consistent", ""),
        ('schedule = "interleaved"\nlayers = 32\nbubble = "9.9 %"', "consistent", ""),
        ('schedule = "interleaved"\nlayers = 32\nbubble = "9.5 %"', "inconsistent", "of 4 chunks"),
        ('schedule = "breadth-first"\nbubble = "1 %"', "underdetermined", ""),
        # 1F1B leaves 69.6 % of the time for computing, and a product reaches 80.3 % of an H100
        ('schedule = "1f1b"\ndevice = "H100"\nmfu = "55 %"', "consistent", ""),
        ('schedule = "1f1b"\ndevice = "H100"\nmfu = "57 %"', "implausible", "so MFU is 81.9 % while a device computes"),
        ('schedule = "1f1b"\ndevice = "H100"\nmfu = "71 %"', "impossible", "more than the peak"),
        ('vp = 1\ndevice = "H100"\nmfu = "71 %"', "impossible", "more than the peak"),
        ('device = "H100"\nmfu = "71 %"', "underdetermined", ""),
    ],
)
def test_a_claim_against_its_schedule(claim: str, verdict: str, says: str) -> None:
    found = audited(f"pp = 8\nga = 16\n{claim}")

    assert found.verdict == verdict
    assert says in found.says
