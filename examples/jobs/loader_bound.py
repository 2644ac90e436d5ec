"""Train a small image classifier whose batches take longer to make than to learn from.

One process, no loader workers. Every sample lies in memory as a compressed, delta-coded image, as in a data set of
lossless pictures; ``__getitem__`` inflates it, undoes the coding, crops, flips and normalises. That work is real and
the same for every sample, so it is the loader, not the network, that sets the pace.

Usage: python loader_bound.py OUT_FILE
"""

from __future__ import annotations

import sys
import zlib

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

SIDE_PX = 256
CROP_PX = 160
BATCH_SAMPLES = 16
DISTINCT_IMAGES = 32
WAIT_STEPS, WARMUP_STEPS, ACTIVE_STEPS = 1, 2, 6
N_STEPS = WAIT_STEPS + WARMUP_STEPS + ACTIVE_STEPS
CHANNEL_MEAN = np.array([0.48, 0.46, 0.41], dtype=np.float32)
CHANNEL_STD = np.array([0.27, 0.26, 0.28], dtype=np.float32)


def encode(image: np.ndarray) -> bytes:
    """Store an image as lossless formats do: differences along the row, then deflate.

    Args:
        image: [side, side, 3] uint8.

    Returns:
        The compressed bytes; ``decode`` gives the image back, bit for bit.
    """
    differences = np.diff(image, axis=1, prepend=np.zeros_like(image[:, :1]))
    return zlib.compress(differences.tobytes(), level=6)


def decode(stored: bytes) -> np.ndarray:
    """Give back the [side, side, 3] uint8 image that ``encode`` stored."""
    differences = np.frombuffer(zlib.decompress(stored), dtype=np.uint8).reshape(SIDE_PX, SIDE_PX, 3)
    return np.cumsum(differences, axis=1, dtype=np.uint8)


class StoredImages(Dataset[tuple[torch.Tensor, int]]):
    """Images that are decoded and augmented each time one is asked for."""

    def __init__(self, seed: int) -> None:
        """Draw smooth random images with some sensor noise, and store them compressed.

        Args:
            seed: decides images, labels and augmentations.
        """
        rng = np.random.default_rng(seed)
        ramp = np.linspace(0, 6, SIDE_PX)
        self._stored = []
        for _ in range(DISTINCT_IMAGES):
            phase, pitch = rng.uniform(0, 6, 3), rng.uniform(0.5, 2, 3)
            smooth = 100 * np.sin(ramp[:, None, None] * pitch + phase) + 100 * np.cos(ramp[None, :, None] * pitch)
            noisy = 128 + smooth / 2 + rng.normal(0, 6, smooth.shape)
            self._stored.append(encode(noisy.clip(0, 255).astype(np.uint8)))
        self._crops_px = rng.integers(0, SIDE_PX - CROP_PX, size=(len(self), 2))

    def __len__(self) -> int:
        """Count the samples of one pass."""
        return BATCH_SAMPLES * N_STEPS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Decode, crop, flip and normalise one sample: the cost that the example is about."""
        image = decode(self._stored[index % DISTINCT_IMAGES])
        top, left = self._crops_px[index]
        crop = image[top : top + CROP_PX, left : left + CROP_PX]
        if index % 2:
            crop = crop[:, ::-1]
        scaled = (crop.astype(np.float32) / 255 - CHANNEL_MEAN) / CHANNEL_STD
        return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1))), index % 10


def build_model() -> nn.Module:
    """Build a small convolutional classifier of ten classes."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=4, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def train(out_file: str) -> None:
    """Train for the scheduled steps and write the trace of the active ones.

    Args:
        out_file: where the Chrome trace goes, uncompressed.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    loader = DataLoader(StoredImages(seed=0), batch_size=BATCH_SAMPLES, shuffle=False, num_workers=0)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT_STEPS, warmup=WARMUP_STEPS, active=ACTIVE_STEPS, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(out_file),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        for images, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    train(sys.argv[1])
