"""Reports on drawn jobs name the cause, the rank and the cost, and stay silent where nothing is worth a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.jobs.confusion import judge_all
from tests.jobs.score import confusion, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.jobs.score import Verdict

ALL = range(500)
SOME = range(0, 500, 50)


def check(verdicts: Sequence[Verdict], right: float, false_alarms: float) -> None:
    shares = summary(verdicts)
    misses = "\n".join(str(one) for one in verdicts if not one.right)
    told = f"{shares}\n{confusion(verdicts)}\n{misses}"
    assert shares["right"] >= right, told
    assert shares["false alarms"] <= false_alarms, told


def test_findings_are_right_on_some_jobs() -> None:
    check(judge_all(SOME, processes=1), 0.9, 0.02)


@pytest.mark.slow
def test_findings_are_right_on_all_jobs() -> None:
    """The acceptance of the diagnosis: nine in ten right with cost within 5 %, two in a hundred false alarms."""
    check(judge_all(ALL), 0.9, 0.02)
