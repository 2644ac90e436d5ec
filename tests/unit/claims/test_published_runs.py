"""Runs that papers describe whole: nobody is accused of interruptions, or of counting what is computed again."""

from __future__ import annotations

from typing import Final

import pytest

from tests.audit_samples import audited

A100: Final = 'device = "A100-SXM4-80GB"\nseq = 2048\nrecompute = "full"\nschedule = "1f1b"\n'
# Smith et al., arXiv:2201.11990, section 2.4, of 280, 350 and 420 servers.
MT_NLG: Final = A100 + 'params = "530B"\nlayers = 105\nhidden = 20480\nheads = 128\nvocab = 50257\ntp = 8\npp = 35\n'
# Workshop BigScience, arXiv:2211.05100, and its pages: 384 devices, 1,082,990 hours, 366B tokens, 60 GB of a device.
BLOOM: Final = (
    A100 + 'params = "176,247M"\nlayers = 70\nhidden = 14336\nheads = 112\nvocab = 250680\ngpus = 384\ntp = 4\n'
    'pp = 12\ndp = 8\ngbs = 2048\nmbs = 2\nzero = 1\ntflops = "~150"\nmemory = "60 GB"\n'
    'tokens = "366B"\ngpu_hours = 1082990\n'
)
# Zeng et al., arXiv:2210.02414: 96 nodes, 60 days.
GLM: Final = (
    'device = "A100-SXM4-40GB"\nparams = "130B"\nlayers = 70\nhidden = 12288\nheads = 96\nffn = 32768\nvocab = 150528\n'
    'seq = 2048\ngpus = 768\ntp = 4\npp = 8\ndp = 24\ngbs = 4224\ntflops = 135\nhfu = "43.3 %"\nmfu = "32.5 %"\n'
    'tokens = "400B"\ndays = 60\n'
)
# Zhang et al., arXiv:2205.01068: 992 devices, and FLOPs of the training with what is computed again.
OPT: Final = (
    'device = "A100-SXM4-80GB"\nparams = "175B"\ngpus = 992\ntflops = 147\ntokens = "300B"\ntotal_flops = 4.30e23\n'
    'recompute = "full"\n'
)
# Parmar et al., arXiv:2406.11704, table 2, the longest stage.
NEMOTRON: Final = (
    'device = "H100-SXM5-80GB"\nparams = "341B"\nlayers = 96\nhidden = 18432\nheads = 96\nkv_heads = 8\nffn = 73728\n'
    "vocab = 256000\nseq = 4096\ngpus = 6144\ntp = 8\npp = 12\ndp = 64\nvp = 8\ngbs = 2304\nmbs = 1\nstep_s = 8.0\n"
    'mfu = "41.0 %"\nschedule = "interleaved"\n'
)


@pytest.mark.parametrize(
    ("claim", "reading"),
    [
        (MT_NLG + "gpus = 2240\ndp = 8\ngbs = 1920\nmbs = 1\nstep_s = 60.1\ntflops = 126", "computed again"),
        (MT_NLG + "gpus = 2800\ndp = 10\ngbs = 1920\nmbs = 1\nstep_s = 50.2\ntflops = 121", "computed again"),
        (MT_NLG + "gpus = 3360\ndp = 12\ngbs = 1920\nmbs = 1\nstep_s = 44.4\ntflops = 113", "computed again"),
        (BLOOM, "interruptions"),
        (GLM, "interruptions"),
        (OPT, "FLOPs of the training count what is computed again"),
        (NEMOTRON, ""),
    ],
)
def test_a_published_run_is_not_accused(claim: str, reading: str) -> None:
    found = audited(claim)

    assert found.verdict == "consistent_under", found.says
    assert reading in found.says


def test_the_share_that_was_training_follows() -> None:
    """400e9 tokens of 8 FLOPs for each of 130e9 parameters take 46.5 days of 768 devices at 135 TFLOP/s."""
    (statement,) = audited(GLM).statements

    (goodput,) = [one.value for one in statement.implied if one.field == "goodput"]
    assert goodput == pytest.approx(46.5 / 60, abs=0.02)


@pytest.mark.parametrize(
    ("days", "verdict", "says"),
    [
        # 1e9 tokens at 1157.4 tokens/s take 10.00 days
        ("10.0", "consistent", ""),
        ("16.0", "consistent_under", "interruptions"),
        ("21.5", "inconsistent", "a factor of 2.15"),
        ("9.1", "inconsistent", "a factor of 1.1"),
    ],
)
def test_a_time_in_all_may_hold_interruptions_and_no_miracle(days: str, verdict: str, says: str) -> None:
    found = audited(f"tokens = 1000000000\ntok_s = 1157.4\ndays = {days}")

    assert found.verdict == verdict
    assert says in found.says


def test_a_stated_share_of_training_is_held_to() -> None:
    stated = "tokens = 1000000000\ntok_s = 1157.4\ndays = 16.0"

    assert audited(f'{stated}\ngoodput = "62.5 %"').verdict == "consistent"
    assert audited(f'{stated}\ngoodput = "90 %"').verdict == "inconsistent"
