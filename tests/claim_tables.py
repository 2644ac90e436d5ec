"""Published tables as claims: every row must hold, but those that are known not to."""

from __future__ import annotations

import csv
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MPT: Final = {
    "125m": (768, 12), "350m": (1024, 24), "760m": (1536, 24), "1b": (2048, 24), "3b": (2560, 32), "7b": (4096, 32),
    "13b": (5120, 40), "30b": (7168, 48), "70b": (8192, 80),
}  # fmt: skip
_MPT_DEVICES: Final = {"h100_80gb": "H100-SXM5-80GB", "a100_80gb": "A100-SXM4-80GB", "a100_40gb": "A100-SXM4-40GB"}
_BRIDGE_MODELS: Final = {
    "LLAMA3_8B": "llama-3-8b", "LLAMA3_70B": "llama-3-70b", "LLAMA3.1_405B": "llama-3-405b",
    "DeepSeekV3": "deepseek-v3", "Qwen3_30B": "qwen3-30b-a3b", "Qwen3_235B": "qwen3-235b-a22b",
}  # fmt: skip
_SC21_DIMS: Final = {"174.6": (12288, 96, 96), "529.6": (20480, 105, 128)}
_TPUS: Final = {"v4": "TPU v4", "v5e": "TPU v5e", "v5p": "TPU v5p"}

Claim = dict[str, Any]


def rows_of(oracles: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of a published table."""
    lines = (oracles / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def number(text: str) -> int | Decimal:
    """Return a number with its digits, as a TOML file gives it."""
    return int(text) if text.isdigit() else Decimal(text)


def _filled(claim: Claim) -> Claim:
    return {key: number(value) if _is_number(value) else value for key, value in claim.items() if value != ""}


def _is_number(value: object) -> bool:
    return isinstance(value, str) and value.replace(".", "", 1).isdigit()


def llm_foundry(oracles: Path) -> Iterator[Claim]:
    """Every figure of llm-foundry's table, with the dimensions of its models."""
    for row in rows_of(oracles, "llmfoundry_mpt_mfu"):
        hidden, layers = _MPT[row["model"]]
        claim = {
            "params": row["params"], "seq": row["seq_len"], "gpus": row["gpus"], "mbs": row["micro_batch"],
            "ga": row["grad_accum"], "gbs": row["global_batch"], "tok_s": row["tok_per_s"],
            "tok_s_gpu": row["tok_per_s_per_gpu"], "tokens_step": row["global_batch_tokens"],
            "mfu": f"{row['mfu_pct']} %", "hfu": f"{row['hfu_pct']} %", "model_tflops": row["model_tflops"],
            "precision": row["precision"], "act_ckpt": "full" if row["act_ckpt"] == "True" else "none",
            "device": _MPT_DEVICES[row["gpu"]], "hidden": str(hidden), "layers": str(layers),
        }  # fmt: skip
        if row["seq_per_s"] != "0":
            claim["seq_s"] = row["seq_per_s"]
        yield _filled(claim)


def megatron_core(oracles: Path) -> Iterator[Claim]:
    """Megatron-Core's table of weak scaling."""
    for row in rows_of(oracles, "megatron_core_h100_weak_scaling"):
        yield _filled({
            "params_b": row["model"].rstrip("B"), "heads": row["heads"], "hidden": row["hidden"],
            "layers": row["layers"], "tp": row["tp"], "pp": row["pp"], "dp": row["dp"], "gpus": row["gpus"],
            "gbs": row["global_batch"], "tflops": row["tflops_per_gpu"], "mfu": f"{row['mfu_pct']} %",
            "aggregate_pflops": row["aggregate_pflops"], "device": "H100", "seq": "4096", "vocab": "131072",
        })  # fmt: skip


def sc21_table1(oracles: Path) -> Iterator[Claim]:
    """Table 1 of the Megatron-LM paper, whose rates count what is computed again."""
    for row in rows_of(oracles, "megatron_sc21_table1"):
        yield _filled({
            "params_b": row["params_b"], "hidden": row["hidden"], "layers": row["layers"], "heads": row["heads"],
            "tp": row["tp"], "pp": row["pp"], "mbs": row["micro_batch"], "gpus": row["gpus"],
            "gbs": row["global_batch"], "seq": row["seq_len"], "vocab": row["vocab"], "tflops": row["tflops_per_gpu"],
            "pct_peak": row["pct_peak"], "aggregate_pflops": row["aggregate_pflops"], "device": "A100-SXM4-80GB",
        })  # fmt: skip


def sc21_table2(oracles: Path) -> Iterator[Claim]:
    """Table 2 of it: days for 300 billion tokens."""
    for row in rows_of(oracles, "megatron_sc21_table2_ptd_vs_zero3"):
        hidden, layers, heads = _SC21_DIMS[row["params_b"]]
        yield _filled({
            "params_b": row["params_b"], "hidden": str(hidden), "layers": str(layers), "heads": str(heads),
            "seq": "2048", "vocab": "51200", "model_parallel_size": row["model_parallel_size"],
            "gbs": row["global_batch"], "gpus": row["gpus"], "mbs": row["micro_batch"],
            "tflops": row["tflops_per_gpu"], "days": row["days_300b_tokens"], "tokens": Decimal("300e9"),
            "device": "A100",
        })  # fmt: skip


def korthikanti(oracles: Path) -> Iterator[Claim]:
    """Tables 3 and 5 of Korthikanti et al."""
    for row in rows_of(oracles, "korthikanti_table3_table5"):
        yield _filled({
            "heads": row["heads"], "hidden": row["hidden"], "layers": row["layers"], "tp": row["tp"], "pp": row["pp"],
            "vp": row["interleave"], "gpus": row["gpus"], "gbs": row["global_batch"], "mbs": row["micro_batch"],
            "seq": "2048", "vocab": "51200", "full_recompute_s": row["full_recompute_s"],
            "step_s": row["present_work_s"], "throughput_increase": f"{row['throughput_increase_pct']} %",
            "mfu": f"{row['mfu_pct']} %", "hfu": f"{row['hfu_pct']} %", "device": "A100",
        })  # fmt: skip


def maxtext(oracles: Path) -> Iterator[Claim]:
    """MaxText's tables, where they state TFLOP/s and MFU of a chip."""
    for row in rows_of(oracles, "maxtext_tpu_mfu"):
        kind = row["hardware"].split("-")[0]
        if row["tflops_per_chip"] and row["mfu_pct"] and kind in _TPUS:
            yield _filled({"device": _TPUS[kind], "tflops": row["tflops_per_chip"], "mfu": f"{row['mfu_pct']} %"})


def llama3(oracles: Path, version: str) -> Iterator[Claim]:
    """Table 4 of the Llama 3 paper, in one of its versions."""
    for row in rows_of(oracles, "llama3_table4_mfu"):
        if row["paper_version"] == version:
            yield _filled({
                "model": "llama-3-405b", "gpus": row["gpus"], "tp": row["tp"], "cp": row["cp"], "pp": row["pp"],
                "dp": row["dp"], "seq": row["seq_len"], "batch_per_dp": row["batch_per_dp"],
                "tokens_per_batch": f"{row['tokens_per_batch_m']}M", "tflops": row["tflops_per_gpu"],
                "mfu": f"{row['bf16_mfu_pct']} %", "device": "H100",
            })  # fmt: skip


def megatron_bridge(oracles: Path, *, models: bool) -> Iterator[Claim]:
    """Megatron-Bridge's tables; with models, those whose FLOPs we count as it does are held against them too."""
    for row in rows_of(oracles, "megatron_bridge_performance"):
        claim = {
            "name": " ".join((row["release"], row["system"], row["model"], row["variant"])),
            "gpus": row["gpus"], "gbs": row["global_batch"], "mbs": row["micro_batch"], "seq": row["seq_len"],
            "tp": row["tp"], "pp": row["pp"], "cp": row["cp"], "vp": row["vp"], "ep": row["ep"], "ga": row["ga"],
            "tok_s_gpu": row["tok_per_s_per_gpu"], "model_tflops": row["model_tflops_per_gpu"],
        }  # fmt: skip
        known = next((name for start, name in _BRIDGE_MODELS.items() if row["model"].startswith(start)), "")
        if models and known and row["kind"] == "Pre-Training":
            claim["model"] = known
        yield _filled(claim)
