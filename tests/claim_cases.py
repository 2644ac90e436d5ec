"""The claims of tests/oracles/claim_audit_cases.csv as files of claims, by case."""

from __future__ import annotations

from typing import Final

CASES: Final[dict[str, str]] = {
    "slip1_time_unit": """
        params = 13e9
        tokens = 16384
        gpus = 8
        peak = "312 TFLOP/s"
        ideal_step_s = "0.51 ms"
    """,
    "slip1_flops": """
        params = 13e9
        seq = 2048
        gbs = 8
        flops_step = "1.28 PFLOP"
    """,
    "slip2_topology": """
        gpus = 8
        tp = 4
        pp = 2
        dp = 2
    """,
    "slip3_allreduce_bytes": """
        mbs = 8
        seq = 2048
        hidden = 5120
        element_bytes = 2
        message = "168 MB"
        collective = "all_reduce"
    """,
    "slip3_tp_time_article": """
        all_reduces = 80
        message = 167772160
        link = "400 GB/s"
        comm_s = "33 ms"
    """,
    "slip3_tp_time_fwd_ring": """
        all_reduces = 80
        message = 167772160
        tp = 4
        link = "300 GB/s"
    """,
    "slip3_tp_time_fwd_bwd": """
        all_reduces = 160
        message = 167772160
        tp = 4
        link = "300 GB/s"
    """,
    "slip3_tp_time_fwd_bwd_pp2": """
        all_reduces = 80
        layers = 40
        pp = 2
        message = 167772160
        tp = 4
        link = "300 GB/s"
    """,
    "slip3_tp_time_pp2_dp2": """
        all_reduces = 80
        layers = 40
        pp = 2
        message = 83886080
        tp = 4
        link = "300 GB/s"
    """,
    "slip3_full_recompute_pp2": """
        all_reduces = 120
        message = 167772160
        tp = 4
        link = "300 GB/s"
    """,
    "slip4_mfu_1200": """
        params = "7B"
        tok_s = 1200
        gpus = 8
        peak_tflops = 312
        mfu = "35 %"
    """,
    "slip4_mfu_2200": """
        params = 7e9
        tok_s = 2200
        gpus = 8
        peak_tflops = 312
        mfu = "55 %"
    """,
    "slip4_scale_free": """
        r_tok = 1.83333
        r_mfu = 1.5714
    """,
    "llama3_v1_topology": """
        gpus = 16384
        tp = 8
        cp = 16
        pp = 16
        dp = 4
    """,
    "llama3_v1_tokens": """
        dp = 4
        batch_per_dp = 16
        seq = 131072
        tokens_per_batch = "16M"
    """,
    "llama3_v3_row2": """
        tflops = 400
        peak_tflops = 989.4
        mfu = "41 %"
    """,
    "bridge_qwen235b": """
        gpus = 256
        tp = 1
        pp = 4
        cp = 1
        gbs = 8192
        mbs = 2
        ga = 32
    """,
    "bridge_gptoss_h100": """
        gpus = 64
        tp = 1
        pp = 4
        cp = 1
        gbs = 512
        mbs = 4
        ga = 2
    """,
    "bridge_llama70b_gb200_alt": """
        gpus = 64
        tp = 2
        pp = 4
        cp = 1
        gbs = 128
        mbs = 2
        ga = 16
    """,
    "hf_blog_70b": """
        params = 70e9
        tokens = 16384000
        seconds = 48600
        gpus = 16
        peak_tflops = 312
        mfu = "45.51 %"
    """,
    "nemo_rl_156": """
        mfu = "156.18 %"
        cp = 8
    """,
    "torchtitan_order": """
        flops_token = 57.91e9
        peak_tflops = 989.4
        [[claim]]
        name = "with compile"
        tok_s_gpu = 6667
        mfu = "33 %"
        [[claim]]
        name = "without compile"
        tok_s_gpu = 5762
        mfu = "39 %"
    """,
    "palm_540b": """
        convention = "palm"
        params = 540.35e9
        layers = 118
        heads = 48
        head_dim = 256
        seq = 2048
        tok_s = "238.3K tokens/s"
        chips = 6144
        peak_tflops = 275
        mfu = "46.2 %"
    """,
    "deepseek_v3_mfu": """
        tokens_day = 272.80e9
        gpus = 2048
        flops_token = 249.81e9
        peak_tflops = 989
        mfu = "38.94 %"
        tflops = 385
    """,
    "deepseek_v3_gpu_hours": """
        gpu_hours = 2.664e6
        tokens = 14.8e12
        gpu_hours_per_t = 180e3
        gpus = 2048
        days_per_t = 3.7
    """,
    "qwen72b_gflops": """
        convention = "mcore"
        layers = 80
        hidden = 8192
        heads = 64
        kv_heads = 8
        ffn = 29568
        vocab = 152064
        seq = 4096
        flops_token = "394 GFLOP"
    """,
    "busbw_over_link": """
        busbw = 480
        link = 450
        algo = "NVLS"
    """,
}
