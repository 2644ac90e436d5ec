"""A plain training loop: a small network on made-up images, with a loader that prepares them in two processes."""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Images that cost something to prepare."""

    def __len__(self):
        return 1024

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.randn(3, 64, 64, generator=generator)
        for _ in range(4):
            image = nn.functional.avg_pool2d(image[None], 3, stride=1, padding=1)[0]
        return image, index % 10


def main() -> int:
    """Train for some epochs, and say how the loss went."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(64 * 15 * 15, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=10)
    loader = DataLoader(Images(), batch_size=32, num_workers=2)
    for epoch in range(2):
        total = 0.0
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(f"epoch {epoch}: mean loss {total / len(loader):.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
