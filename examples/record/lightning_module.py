"""A LightningModule: a small autoencoder on random vectors, trained and validated by Lightning's Trainer."""

from __future__ import annotations

import tempfile

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(lightning.LightningModule):
    """Two layers there and two back."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 32))
        self.decoder = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 784))

    def training_step(self, batch, _index):
        """Return how far the vectors are from what becomes of them."""
        (vectors,) = batch
        return nn.functional.mse_loss(self.decoder(self.encoder(vectors)), vectors)

    def validation_step(self, batch, _index):
        """Log the same for vectors that are held out."""
        (vectors,) = batch
        self.log("loss", nn.functional.mse_loss(self.decoder(self.encoder(vectors)), vectors))

    def configure_optimizers(self):
        """Train with Adam."""
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    """Train for two epochs of 32 steps, and say how large the loss is."""
    lightning.seed_everything(0, verbose=False)
    torch.set_num_threads(1)
    vectors = torch.randn(2048, 784)
    train = DataLoader(TensorDataset(vectors), batch_size=64, shuffle=True)
    validate = DataLoader(TensorDataset(vectors[:256]), batch_size=64)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_epochs=2,
            default_root_dir=folder,
            enable_checkpointing=False,
            enable_progress_bar=False,
            logger=False,
        )
        model = Autoencoder()
        trainer.fit(model, train, validate)
        print(f"loss {trainer.callback_metrics['loss']:.6f}")


if __name__ == "__main__":
    main()
