"""A Trainer of Hugging Face: a tiny GPT-2 made from a configuration, on random tokens, with accumulated gradients."""

from __future__ import annotations

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Tokens(Dataset):
    """Random sequences of tokens."""

    def __len__(self):
        return 512

    def __getitem__(self, index):
        tokens = torch.randint(0, 512, (64,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    """Train for 40 steps of two micro-batches each."""
    set_seed(0)
    torch.set_num_threads(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=2, n_head=4))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=40,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            logging_steps=10,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=Tokens())
        trainer.train()
        print(f"last loss {trainer.state.log_history[-2]['loss']}")


if __name__ == "__main__":
    main()
