"""Whether balanced batches make real steps shorter: two processes, gloo, on this machine's CPUs.

    python benchmarks/balance/real_steps.py [PAIRS]

A small transformer is trained on sequences of chat-like lengths, each by itself (no padding), gradients averaged over
two ranks. Every global batch is computed three times, in random order: dealt out in turn, balanced by tokens, and by
the model's FLOPs. What is compared, batch by batch, is the computation of the rank that has most of it, in processor
time: other programs on the machine lengthen the wall time of a step, and hardly this. Printed: the median ratio with
its interval over batches, the ratio of the sums, and what the cost said it would be.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import statistics
import sys
import time
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longpole.costs.architecture import Architecture
from longpole.costs.balance.batch import Batch, in_turn
from longpole.costs.balance.choose import balance
from longpole.costs.balance.sequence_cost import BY_TOKENS, ModelCost
from longpole.costs.conventions import convention_of

RANKS = 2
BATCH = 16
MODEL = Architecture(
    name="small", layers=4, hidden=256, heads=4, key_value_heads=4, head_dim=64, feed_forward=1024, vocabulary=1000,
    gated=False, biases=True, layer_norm=True,
)  # fmt: skip


def draw_lengths(number: int) -> list[int]:
    """Return the lengths of one global batch."""
    draw = random.Random(number)
    return [min(int(draw.lognormvariate(5.0, 1.0)) + 8, 1024) for _ in range(BATCH)]


def divide(lengths: list[int], how: str) -> tuple[list[list[int]], float]:
    """Return a division, and the last rank's cost in FLOPs under it over the mean."""
    cost = ModelCost(MODEL, convention_of("korthikanti"))  # attention on a CPU computes the whole square
    true = Batch(cost.of_all(lengths), [1.0] * RANKS)
    if how == "in_turn":
        parts = in_turn(true)
    else:
        parts = balance(true if how == "flops" else Batch(BY_TOKENS.of_all(lengths), [1.0] * RANKS)).parts
    return parts, true.longest_load(parts) / true.mean_load


def train(rank: int, folder: str, pairs: int, results: Any) -> None:
    """Run one rank."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    layer = torch.nn.TransformerEncoderLayer(
        MODEL.hidden, MODEL.heads, MODEL.feed_forward, dropout=0.0, batch_first=True, norm_first=True
    )
    model = torch.nn.TransformerEncoder(layer, MODEL.layers, enable_nested_tensor=False)
    embed, head = torch.nn.Embedding(MODEL.vocabulary, MODEL.hidden), torch.nn.Linear(MODEL.hidden, MODEL.vocabulary)
    parameters = [*model.parameters(), *embed.parameters(), *head.parameters()]

    def step(part: list[int], lengths: list[int]) -> float:
        dist.barrier()
        began = time.process_time()
        for place in part:
            tokens = torch.randint(MODEL.vocabulary, (1, lengths[place]))
            loss = torch.nn.functional.cross_entropy(head(model(embed(tokens)))[0], tokens[0], reduction="sum")
            loss.backward()
        took_s = time.process_time() - began
        flat = torch.cat([one.grad.flatten() for one in parameters if one.grad is not None])
        dist.all_reduce(flat)
        for one in parameters:
            one.grad = None
        return took_s

    order = random.Random(1)
    for number in range(-2, pairs):
        lengths = draw_lengths(number)
        hows = ["in_turn", "flops", "tokens"]
        order.shuffle(hows)
        for how in hows:
            parts, over_mean = divide(lengths, how)
            took_s = torch.tensor([step(parts[rank], lengths)])
            dist.all_reduce(took_s, dist.ReduceOp.MAX)
            if rank == 0 and number >= 0:
                results.put((number, how, float(took_s), over_mean))
    dist.destroy_process_group()


def main() -> int:
    """Train and compare."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with TemporaryDirectory() as folder:
        processes = [context.Process(target=train, args=(rank, folder, pairs, results)) for rank in range(RANKS)]
        for process in processes:
            process.start()
        rows = [results.get() for _ in range(3 * pairs)]
        for process in processes:
            process.join()
    times = {(number, how): (took_s, over) for number, how, took_s, over in rows}
    print(f"{pairs} batches of {BATCH} sequences on {RANKS} ranks, {Path(__file__).name}")
    for how in ("tokens", "flops"):
        ratios = [times[number, how][0] / times[number, "in_turn"][0] for number in range(pairs)]
        said = sum(times[n, how][1] for n in range(pairs)) / sum(times[n, "in_turn"][1] for n in range(pairs))
        ordered = sorted(ratios)
        half = round(0.98 * sqrt(pairs))
        low, high = ordered[max(pairs // 2 - half, 0)], ordered[min(pairs // 2 + half, pairs - 1)]
        total = sum(times[n, how][0] for n in range(pairs)) / sum(times[n, "in_turn"][0] for n in range(pairs))
        print(
            f"balanced by {how}: median of step ratios {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}),"
            f" sum of steps {total:.3f}; the cost said {said:.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
