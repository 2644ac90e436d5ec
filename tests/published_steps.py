"""Published and measured training steps as the step model takes them, from the tables in `tests/oracles`."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longpole.costs.architecture import Architecture
from longpole.costs.calibration_fit import MeasuredStep
from longpole.costs.cluster import cluster_of
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.conventions import CONVENTIONS
from longpole.costs.flops import counts
from longpole.costs.layout import Layout, Recompute, Work
from longpole.costs.presets import preset
from longpole.costs.step import StepTime, step_time
from longpole.costs.step_traffic import MEGATRON_2021, Software
from longpole.hardware.devices import find_device

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.costs.calibration import Calibration

A100 = CollectiveCosts(cluster_of(find_device("A100-SXM4-80GB"), 25e9, 8))  # Selene: one HDR link of 200 Gb/s each
A100_SHARED = CollectiveCosts(cluster_of(find_device("A100-SXM4-80GB"), 12.5e9, 8))  # vTrain: 800 Gb/s a node
A100_JEAN_ZAY = CollectiveCosts(cluster_of(find_device("A100-SXM4-80GB"), 6.25e9, 8))  # four links of 100 Gb/s a node
H100 = CollectiveCosts(cluster_of(find_device("H100-SXM5-80GB"), 50e9, 8))
B200 = CollectiveCosts(cluster_of(find_device("B200-SXM-180GB"), 50e9, 8))
H100_TITAN = CollectiveCosts(  # 96 GB of HBM2e at 2.4 TB/s and 500 W: the table's peak is beyond its power
    cluster_of(replace(find_device("H100-SXM5-80GB"), memory_bytes_per_s=2.4e12), 50e9, 8)
)
GB200 = CollectiveCosts(cluster_of(find_device("GB200-per-GPU"), 50e9, 72))
B200_SOFTWARE = Software(hides_dp=False, hides_pp=False)  # Megatron-LM as SimuMax ran it
_PRESETS = {
    "llama3_70b": "llama-3-70b",
    "llama3_405b": "llama-3-405b",
    "deepseekv2": "deepseek-v2",
    "deepseekv3": "deepseek-v3",
}


@dataclass(frozen=True)
class Case:
    """A step with where it ran."""

    step: MeasuredStep
    costs: CollectiveCosts
    software: Software

    def predict(self, calibration: Calibration | None = None) -> StepTime:
        """Return what the model says."""
        step = self.step
        return step_time(step.model, self.costs, step.layout, step.work, calibration, self.software)

    def error(self, calibration: Calibration | None = None) -> float:
        """Return predicted / measured - 1."""
        return self.predict(calibration).total_s / self.step.step_s - 1.0


def mean_error(cases: list[Case], calibration: Calibration | None = None) -> float:
    """Return the mean |predicted / measured - 1|."""
    return sum(abs(case.error(calibration)) for case in cases) / len(cases)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of an oracle."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def gpt(hidden: int, layers: int, heads: int, sequence: int) -> Architecture:
    """Return a GPT of the Megatron papers: tied embeddings, learned positions, f = 4h, V = 51,200."""
    return Architecture(
        name=f"gpt-{hidden}x{layers}",
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=heads,
        head_dim=hidden // heads,
        feed_forward=4 * hidden,
        vocabulary=51200,
        gated=False,
        tied=True,
        positions=sequence,
        biases=True,
        layer_norm=True,
    )


def _megatron_work(
    sequence: int, micro_batch: int, global_batch: int, recompute: Recompute = "full", dtype: str = "fp16"
) -> Work:
    """Return a batch as Megatron-LM of 2021 computed it: scores in memory, dropout, gradients of 32 bits."""
    return Work(
        sequence=sequence,
        micro_batch=micro_batch,
        global_batch=global_batch,
        recompute=recompute,
        dtype=dtype,
        flash=False,
        fused_loss=False,
        dropout=True,
    )


def sc21(oracles: Path) -> list[Case]:
    """Table 1 of SC21: the step's time follows from the TFLOP/s that are printed, by its own count."""
    found = []
    for row in read_rows(oracles / "megatron_sc21_table1.csv"):
        hidden, layers, gpus, batch = (int(row[key]) for key in ("hidden", "layers", "gpus", "global_batch"))
        flops = 96 * batch * 2048 * layers * hidden**2 * (1 + 2048 / (6 * hidden) + 51200 / (16 * layers * hidden))
        tp, pp = int(row["tp"]), int(row["pp"])
        vp = layers // pp // int(row["layers_per_virtual_stage"]) if row["layers_per_virtual_stage"] else 1
        layout = Layout(tp=tp, pp=pp, dp=gpus // tp // pp, vp=vp, schedule="interleaved" if vp > 1 else "1f1b")
        step = MeasuredStep(
            model=gpt(hidden, layers, int(row["heads"]), 2048),
            layout=layout,
            work=_megatron_work(2048, int(row["micro_batch"]), batch),
            step_s=flops / (float(row["tflops_per_gpu"]) * 1e12 * gpus),
            name=row["model"],
        )
        found.append(Case(step, A100, MEGATRON_2021))
    return found


def korthikanti(oracles: Path) -> list[Case]:
    """Table 5 of Korthikanti et al.: full recomputation, and selective with sequence parallelism."""
    found = []
    for row in read_rows(oracles / "korthikanti_table3_table5.csv"):
        vp = int(row["interleave"])
        ways: tuple[tuple[Recompute, str], ...] = (("full", "full_recompute_s"), ("selective", "present_work_s"))
        for recompute, column in ways:
            step = MeasuredStep(
                model=gpt(int(row["hidden"]), int(row["layers"]), int(row["heads"]), 2048),
                layout=Layout(
                    tp=8,
                    pp=int(row["pp"]),
                    vp=vp,
                    schedule="interleaved" if vp > 1 else "1f1b",
                    sp=recompute == "selective",
                ),
                work=_megatron_work(2048, int(row["micro_batch"]), int(row["global_batch"]), recompute),
                step_s=float(row[column]),
                name=f"{row['model']} {recompute}",
            )
            found.append(Case(step, A100, MEGATRON_2021))
    return found


def vtrain(oracles: Path, which: str) -> list[Case]:
    """vTrain's measured steps, `single` or `multi` node: full recomputation, nothing overlaps."""
    found = []
    for row in read_rows(oracles / f"vtrain_a100_{which}_node.csv"):
        sequence = int(row["seq_len"])
        step = MeasuredStep(
            model=gpt(int(row["hidden"]), int(row["layers"]), int(row["heads"]), sequence),
            layout=Layout(tp=int(row["tp"]), pp=int(row["pp"]), dp=int(row["dp"])),
            work=_megatron_work(sequence, int(row["micro_batch"]), int(row["global_batch"])),
            step_s=float(row["iter_ms"]) / 1e3,
            name=f"{which} {row['hidden']}x{row['layers']}",
        )
        found.append(Case(step, A100_SHARED, MEGATRON_2021))
    return found


def simumax(oracles: Path) -> list[Case]:
    """SimuMax's measured steps: Megatron-LM on one node of B200, models with few of their layers."""
    found = []
    for row in read_rows(oracles / "simumax_b200_v1_2.csv"):
        model = preset(_PRESETS[row["model"]])
        if model.experts is not None:
            model = replace(model, experts=replace(model.experts, first_dense=0))
        tp, pp, cp, ep = (int(row[key]) for key in ("tp", "pp", "cp", "ep"))
        dp = int(row["dp"] or 8 // (tp * pp * cp))
        step = MeasuredStep(
            model=replace(model, layers=int(row["layers"]), predicted_tokens=0),
            layout=Layout(tp=tp, pp=pp, dp=dp, ep=ep, cp=cp, sp=tp > 1, zero=1),
            work=Work(sequence=int(row["seq_len"]), micro_batch=1, global_batch=dp * int(row["micro_batches"])),
            step_s=float(row["real_ms"]) / 1e3,
            name=row["case"],
        )
        found.append(Case(step, B200, B200_SOFTWARE))
    return found


def mpt(oracles: Path, device: str) -> list[Case]:
    """llm-foundry's rows of `a100` or `h100` in bfloat16 and fully sharded: FSDP, flash attention."""
    found = []
    for row in read_rows(oracles / "llmfoundry_mpt_mfu.csv"):
        rate = float(row["tok_per_s"] or 0)
        whole = (row["precision"], row["sharding"]) == ("amp_bf16", "FULL_SHARD")
        if not row["gpu"].startswith(device) or "40" in row["gpu"] or not rate or not whole:
            continue
        gpus, batch, sequence = (int(float(row[key])) for key in ("gpus", "global_batch", "seq_len"))
        step = MeasuredStep(
            model=preset(f"mpt-{row['model']}"),
            layout=Layout(dp=gpus, zero=3),
            work=Work(
                sequence=sequence,
                micro_batch=int(float(row["micro_batch"])),
                global_batch=batch,
                recompute="full" if row["act_ckpt"] == "True" else "none",
                gradient_bytes=2,
                fused_loss=False,
            ),
            step_s=batch * sequence / rate,
            name=f"{row['model']} {sequence} {gpus}",
        )
        found.append(Case(step, A100 if device == "a100" else H100, Software()))
    return found


def torchtitan(oracles: Path) -> list[Case]:
    """torchtitan's compiled rows without a pipeline, in BF16: FSDP, with tensor parallelism and asynchronous or not."""
    presets = {"llama3.1-8B": "llama-3-8b", "llama3.1-70B": "llama-3-70b"}
    found = []
    for row in read_rows(oracles / "torchtitan_h100.csv"):
        is_plain = (row["gpu"], row["compile"], row["float8"], row["pp"]) == ("H100-96GB-HBM2e", "yes", "no", "1")
        if not is_plain or row["model"] not in presets:
            continue
        replicas, batch, tp, sequence = (int(row[key]) for key in ("fsdp", "local_batch", "tp", "seq_len"))
        layout = Layout(tp=tp, dp=replicas, cp=int(row["cp"]), zero=3, sp=tp > 1)
        step = MeasuredStep(
            model=preset(presets[row["model"]]),
            layout=layout,
            work=Work(
                sequence=sequence,
                micro_batch=batch,
                global_batch=batch * replicas,
                recompute="full" if row["ac"] == "full" else "none",
                fused_loss=False,
            ),
            step_s=batch * replicas * sequence / (float(row["tps_per_gpu"]) * layout.world),
            name=f"{row['date']} {row['model']} TP{tp} async {row['async_tp']}",
        )
        found.append(Case(step, H100_TITAN, Software(hides_tp=row["async_tp"] == "yes")))
    return found


def bridge(oracles: Path) -> list[Case]:
    """Megatron-Bridge's FP8 rows of Llama 3 on H100 and GB200, tensor parallelism beside the products."""
    presets = {"LLAMA3_70B": "llama-3-70b", "LLAMA3.1_405B": "llama-3-405b"}
    systems = {"DGX-H100": H100, "DGX-GB200": GB200}
    found = []
    for row in read_rows(oracles / "megatron_bridge_performance.csv"):
        is_known = (row["kind"], row["precision"], row["fsdp"] or "0") == ("Pre-Training", "FP8", "0")
        if not is_known or row["model"] not in presets or row["system"] not in systems:
            continue
        gpus, batch, sequence = (int(row[key]) for key in ("gpus", "global_batch", "seq_len"))
        tp, pp, cp, vp = (int(row[key] or 1) for key in ("tp", "pp", "cp", "vp"))
        schedule = "interleaved" if vp > 1 else "1f1b"
        layout = Layout(tp=tp, pp=pp, dp=gpus // (tp * pp * cp), cp=cp, vp=vp, sp=tp > 1, zero=1, schedule=schedule)
        work = Work(
            sequence=sequence,
            micro_batch=int(row["micro_batch"]),
            global_batch=batch,
            dtype="fp8",
            gradient_bytes=2,
        )
        step = MeasuredStep(
            model=preset(presets[row["model"]]),
            layout=layout,
            work=work,
            step_s=batch * sequence / (float(row["tok_per_s_per_gpu"]) * gpus),
            name=f"{row['release']} {row['system']} {row['model']}",
        )
        found.append(Case(step, systems[row["system"]], Software(hides_tp=True)))
    return found


def whole_runs() -> list[Case]:
    """Runs that papers and their pages describe whole; nothing was set by them, or looked at before it was set.

    Sources: MT-NLG 530B, arXiv:2201.11990, section 2.4, of 280, 350 and 420 servers; BLOOM, arXiv:2211.05100, and
    BigScience's page, 150 TFLOP/s of each device as SC21 counts them; Nemotron-4 340B, arXiv:2406.11704, table 2.
    """
    old = Software(hides_pp=False, hides_dp=False)
    work = {"sequence": 2048, "recompute": "full", "flash": False, "fused_loss": False}
    mt_nlg = _gpt("MT-NLG 530B", layers=105, hidden=20480, heads=128, vocabulary=51200)
    bloom = _gpt("BLOOM", layers=70, hidden=14336, heads=112, vocabulary=250880)
    nemotron = Architecture(
        name="Nemotron-4 340B", layers=96, hidden=18432, heads=96, key_value_heads=8, head_dim=192, feed_forward=73728,
        vocabulary=256000, gated=False,
    )  # fmt: skip
    steps = [
        MeasuredStep(
            model=mt_nlg,
            layout=Layout(tp=8, pp=35, dp=replicas),
            work=Work(micro_batch=1, global_batch=1920, **work),  # type: ignore[arg-type]
            step_s=step_s,
            name=f"MT-NLG 530B, {replicas * 280} devices",
        )
        for replicas, step_s in ((8, 60.1), (10, 50.2), (12, 44.4))
    ]
    jean_zay = MeasuredStep(
        model=bloom,
        layout=Layout(tp=4, pp=12, dp=8, zero=1),
        work=Work(micro_batch=2, global_batch=2048, **work),  # type: ignore[arg-type]
        step_s=2048 * 2048 * counts(bloom, 2048).under(CONVENTIONS["sc21_hw"]) / (384 * 150e12),
        name="BLOOM, 384 devices",
    )
    hopper = MeasuredStep(
        model=nemotron,
        layout=Layout(tp=8, pp=12, vp=8, dp=64, sp=True, zero=1, schedule="interleaved"),
        work=Work(sequence=4096, micro_batch=1, global_batch=2304, recompute="selective"),
        step_s=8.0,
        name="Nemotron-4 340B, 6144 devices",
    )
    ampere = [*(Case(step, A100, old) for step in steps), Case(jean_zay, A100_JEAN_ZAY, old)]
    return [*ampere, Case(hopper, H100, Software())]


def _gpt(name: str, *, layers: int, hidden: int, heads: int, vocabulary: int) -> Architecture:
    return Architecture(
        name=name, layers=layers, hidden=hidden, heads=heads, key_value_heads=heads, head_dim=hidden // heads,
        feed_forward=4 * hidden, vocabulary=vocabulary, gated=False, tied=True, biases=True, layer_norm=True,
    )  # fmt: skip
