"""Limits that no run exceeds, and what is common where one seems to."""

from __future__ import annotations

import pytest

from tests.audit_samples import audited


@pytest.mark.parametrize(
    ("claim", "verdict", "says"),
    [
        # R6, R7: shares of the peak
        ('mfu = "156.18 %"', "impossible", "more than the peak"),
        ('device = "H100"\nmfu = "85 %"', "implausible", "80.3 % of the best matrix product"),
        ('device = "H100"\nmfu = "80 %"', "underdetermined", ""),
        ('mfu = "45 %"\nhfu = "40 %"', "inconsistent", "1.12 times HFU"),
        ('mfu = "41.5 %"\nhfu = "43.7 %"', "consistent", ""),
        ('mfu = "30 %"\nhfu = "60 %"', "implausible", "more than 1.5 times MFU"),
        ('device = "A100"\nparams = 7e9\ntok_s_gpu = 12000', "impossible", "as it follows"),
        # R9: links
        ('busbw = "480 GB/s"\nlink = "450 GB/s"\nalgo = "NVLS"', "consistent", ""),
        ('busbw = "480 GB/s"\nlink = "450 GB/s"\nalgo = "Ring"', "impossible", "1.07 times what a link carries"),
        ('busbw = "480 GB/s"\nlink = "450 GB/s"', "impossible", "1.07 times what a link carries one way"),
        ('device = "H100"\nbusbw = "480 GB/s"', "consistent", ""),
        ('device = "A100"\nbusbw = "480 GB/s"', "impossible", "(300 GB/s)"),
        ('device = "H200"\nbusbw = "365 GB/s"\nalgo = "Ring"', "consistent", ""),
        ('device = "A100"\nlink = "600 GB/s"\nbusbw = "230 GB/s"', "inconsistent", "300 GB/s one way (600 both ways)"),
        ('message = "1 GB"\nlink = "3200 Gb/s"\ncollective = "p2p"\ncomm_s = "2.5 ms"', "consistent", ""),
        ('message = "1 GB"\nlink = "400 Gb/s"\ncollective = "p2p"\ncomm_s = "2.5 ms"', "impossible", "8.00 times that"),
        # R10: memory
        ('device = "H100"\nmemory = "79 GB"', "consistent", ""),
        ('device = "H100"\nmemory = "79.6 GiB"', "consistent", ""),
        ('device = "H100"\nmemory = "96 GB"', "impossible", "1.20 times the 80 GB"),
        ('params = 70e9\ngpus = 8\ntp = 8\ndp = 1\nzero = 0\ndevice = "H100"\nmfu = "40 %"', "implausible", "Adam"),
        ('params = 7e9\ngpus = 8\ntp = 2\ndp = 4\nzero = 1\ndevice = "H100"\nmfu = "40 %"', "consistent", ""),
        ('params = 70e9\nbytes_param = 2\nweights = "140 GB"', "consistent", ""),
        ('params = 70e9\nbytes_param = 2\nweights = "70 GB"', "inconsistent", "too low by a factor of 2.00"),
        ('model = "qwen2.5-72b"\nkv_token = "327.68 kB"', "consistent", ""),
        ('model = "deepseek-v3"\nkv_token = "70.272 kB"', "consistent", ""),
        ('model = "llama-3-405b"\nkv_token = "516 kB"', "consistent", ""),
        # R11: bubbles
        ('pp = 8\nga = 16\nschedule = "1f1b"\nbubble = "30.4 %"', "consistent", ""),
        ('pp = 8\nga = 16\nschedule = "1f1b"\nbubble = "43.75 %"', "consistent", ""),
        ('pp = 8\nga = 16\nschedule = "1f1b"\nbubble = "5 %"', "inconsistent", "a bubble of 30.4 % of the step"),
        ('pp = 8\nga = 16\nbubble = "5 %"', "implausible", "a bubble of 30.4 % of the step"),
        ('pp = 8\nga = 16\nschedule = "zb2p"\nbubble = "1 %"', "consistent", ""),
        ('pp = 8\nga = 16\nvp = 4\nbubble = "9.9 %"', "consistent", ""),
        # R12: growth
        ("baseline_gpus = 8\ngpus = 64\nspeedup = 7.2", "consistent", ""),
        ("baseline_gpus = 1\ngpus = 8\nspeedup = 10", "implausible", "more than the growth in devices"),
        ('baseline_gpus = 8\ngpus = 64\nspeedup = 7.2\nefficiency = "90 %"', "consistent", ""),
        ('baseline_gpus = 8\ngpus = 64\nspeedup = 7.2\nefficiency = "95 %"', "inconsistent", "a factor of 1.06"),
        # R1: what divides what
        ("tp = 6\nheads = 32\ngpus = 12\ndp = 2", "inconsistent", "TP 6 does not divide 32 heads"),
        ("gpus = 8\ntp = 2\npp = 2\ndp = 2\nep = 8", "inconsistent", "EP 8 does not divide DP · CP · TP = 4"),
        ("gpus = 256\ntp = 1\npp = 4\nep = 64", "consistent", ""),  # across all of a stage
        ("gpus = 256\ntp = 4\npp = 8\ncp = 2\nep = 32", "consistent", ""),  # folded over TP, CP and DP
        ("gpus = 256\ntp = 4\npp = 8\netp = 4\nep = 32", "inconsistent", "EP 32 · ETP 4 = 128 does not divide"),
        ("gpus = 64\ntp = 8\npp = 3", "inconsistent", "DP would have to be 2.667"),
        ("gpus = 16\ntp = 4\ndp = 2", "consistent_under", "PP · CP, not stated, together are 2"),
        ("gpus = 16\ntp = 4\ndp = 2\npp = 1\ncp = 1", "inconsistent", "too high by a factor of 2.00"),
        ("gpus = 64\ntp = 4\ncp = 4\npp = 1\ndp = 16", "consistent_under", "DP counts the context-parallel ranks"),
        ("gpus = 128\ntp = 1\npp = 1\ncp = 1\nep = 16\ndp = 8", "consistent_under", "DP is that of one expert"),
        ('model = "mixtral-8x7b"\nactive_params = "12.9B"', "consistent", ""),
        ('model = "mixtral-8x7b"\nactive_params = "46.7B"', "inconsistent", "too high by a factor of 3.63"),
        ('device = "MI250X"\ntflops = 95\nmfu = "49.6 %"', "inconsistent", "half of a MI250X"),
        ('device = "H100"\nalgo = "NVLS"\nbusbw = "900 GB/s"\ngroup = 8', "impossible", "even a reduction"),
        ('params = 70e9\ntokens = 2e12\ntotal_flops = 2.8e23', "inconsistent", "the forward pass, a third"),
        ('params = 405e9\ntokens = "15.6T"\ntotal_flops = 3.8e25', "consistent", ""),
        ('params = 175e9\ntokens = 300e9\ntotal_flops = "3640 petaflop/s-days"', "consistent", ""),
        ('device = "A100"\npeak = 624\ntflops = 187\nmfu = "30 %"', "inconsistent", "the sparse figure"),
        ('device = "A100"\ndtype = "tf32"\ntflops = 80\nmfu = "51 %"', "underdetermined", ""),
        ('model = "llama-3-70b"\nseq = 8192\nmbs = 16\nkv_cache = "343 GB"', "inconsistent", "all 64 heads"),
        ('purpose = "decode"\nparams = 70e9\ngpus = 1\ndevice = "H100"\nbatch = 1\ntok_s = 100', "implausible", "4.18"),
        ("nodes = 4\ngpus_per_node = 8\ntp = 4\npp = 2\ndp = 4", "consistent", ""),
    ],
)  # fmt: skip
def test_a_claim_against_a_limit(claim: str, verdict: str, says: str) -> None:
    audit = audited(claim)

    assert audit.verdict == verdict
    assert says in audit.says
