"""Rows are held against each other only where they are of one model on one kind of device."""

from __future__ import annotations

import pytest

from tests.audit_samples import audited

ROWS = (
    '[[claim]]\nname = "a"\ntok_s = 1200\nmfu = "35 %"\n{one}\n'
    '[[claim]]\nname = "b"\ntok_s = 2200\nmfu = "55 %"\n{other}\n'
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('params = "7B"', 'params = "13B"'),
        ('device = "A100"', 'device = "H100"'),
        ("seq = 2048", "seq = 4096"),
        ('dtype = "bf16"', 'dtype = "fp8"'),
    ],
)
def test_rows_of_different_models_or_devices_are_not_compared(one: str, other: str) -> None:
    assert audited(ROWS.format(one=one, other=other)).across == []


def test_rows_on_different_numbers_of_devices_are_compared_by_the_rate_of_one() -> None:
    twice = '[[claim]]\ngpus = 8\ntok_s = 1000\nmfu = "20.0 %"\n[[claim]]\ngpus = 16\ntok_s = 2000\nmfu = "{mfu}"\n'

    assert audited(twice.format(mfu="20.0 %")).across == []
    assert len(audited(twice.format(mfu="40.0 %")).across) == 1


def test_figures_that_are_rounded_hard_do_not_contradict_each_other() -> None:
    """1.83 times the throughput is 1.9 times the MFU if that was printed with one digit."""
    rows = '[[claim]]\ntok_s = 1200\nmfu = "3 %"\n[[claim]]\ntok_s = 2200\nmfu = "6 %"\n'

    assert audited(rows).across == []


def test_values_in_the_wrong_order_are_told_as_wording_and_not_as_wrong_figures() -> None:
    audit = audited(
        """
        params = 13.0e9
        gpus = 8
        peak = "312.0 TFLOP/s"
        [[claim]]
        name = "large batch"
        tok_s = 16000
        mfu = "40.0 %"
        [[claim]]
        name = "small batch"
        tok_s = 12800
        mfu = "50.0 %"
        """
    )

    assert [one.qualifier for one in audit.statements] == ["wording", "wording"]
    assert "the MFU of “small batch” belongs here" in audit.statements[0].says
    assert audit.across == []
