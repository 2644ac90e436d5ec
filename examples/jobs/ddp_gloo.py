"""Train a small text classifier on four ranks, one of which drew the long documents.

Data-parallel over gloo on one machine. Ranks 0, 1 and 3 read documents of 32 words, rank 2 reads documents of 96: more
to fetch, more to tokenise and longer sequences to compute. The gradients are averaged in every step, so the other ranks
wait for rank 2 in the all-reduce. A small machine cannot give four processes a core each; most of what the long
documents cost is therefore a sleep that stands for their fetching, so that rank 2 is late and not merely short of a
core.

Usage: RANK=0 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python ddp_gloo.py OUT_FILE
"""

from __future__ import annotations

import os
import sys
import time
import zlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

STRAGGLER_RANK = 2
SHORT_WORDS, LONG_WORDS = 32, 96
FETCH_S_PER_WORD = 8e-5
VOCABULARY_WORDS = 2048
WIDTH = 64
BATCH_SAMPLES = 8
WAIT_STEPS, WARMUP_STEPS, ACTIVE_STEPS = 1, 2, 6
N_STEPS = WAIT_STEPS + WARMUP_STEPS + ACTIVE_STEPS


class Documents(Dataset[tuple[torch.Tensor, int]]):
    """Documents of one length that are fetched and tokenised each time one is asked for."""

    def __init__(self, words: int) -> None:
        """Remember the length.

        Args:
            words: how many words each document has.
        """
        self._words = words

    def __len__(self) -> int:
        """Count the samples of one pass."""
        return BATCH_SAMPLES * N_STEPS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Fetch one document, at a cost for each word, and number its words."""
        time.sleep(FETCH_S_PER_WORD * self._words)
        words = (f"word-{index * place % 997}" for place in range(self._words))
        tokens = [zlib.crc32(word.encode()) % VOCABULARY_WORDS for word in words]
        return torch.tensor(tokens), index % 4


class Classifier(nn.Module):
    """One attention block over word embeddings, and a linear head."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY_WORDS, WIDTH)
        self.block = nn.TransformerEncoderLayer(
            WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True
        )
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Score the four classes for each document of the batch."""
        return self.head(self.block(self.embedding(tokens)).mean(dim=1))


def train(out_file: str) -> None:
    """Train for the scheduled steps and write this rank's trace of the active ones.

    Args:
        out_file: where the Chrome trace goes, uncompressed.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    words = LONG_WORDS if dist.get_rank() == STRAGGLER_RANK else SHORT_WORDS
    model = DistributedDataParallel(Classifier(), bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    loader = DataLoader(Documents(words), batch_size=BATCH_SAMPLES, shuffle=False, num_workers=0)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT_STEPS, warmup=WARMUP_STEPS, active=ACTIVE_STEPS, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(out_file),
        record_shapes=True,
    ) as profiler:
        for tokens, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(model(tokens), labels)
            loss.backward()
            optimizer.step()
            profiler.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    train(sys.argv[1])
