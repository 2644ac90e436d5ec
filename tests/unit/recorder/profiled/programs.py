"""Programs to be recorded: ordinary ones, each with one thing that may happen in the life of a program."""

from __future__ import annotations

from typing import Final

TRAIN: Final = """
import os, signal, sys
import torch

torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)


def train(n_steps, at=None, then=None):
    for step in range(n_steps):
        loss = model(torch.ones(4, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        if step == at:
            then()
    print(f"loss {loss.item():.6f}")
"""

PLAIN: Final = TRAIN + "train(12)\n"
EXITS_WITH_3: Final = TRAIN + "train(12)\nsys.exit(3)\n"
RAISES_IN_WINDOW: Final = TRAIN + "def fail():\n    raise ValueError('on purpose')\ntrain(12, 6, fail)\n"
TOO_SHORT: Final = TRAIN + "train(2)\n"


def killed(name: str) -> str:
    """A program that gets a signal in the middle of the window."""
    return TRAIN + f"train(12, 6, lambda: os.kill(os.getpid(), signal.{name}))\n"


FORKS_IN_WINDOW: Final = (
    TRAIN
    + """
def fork():
    child = os.fork()
    if not child:
        optimizer.step()
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

sys.stdout.reconfigure(line_buffering=True)
train(12, 6, fork)
"""
)

OWN_PROFILER: Final = (
    TRAIN
    + """
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as own:
    train(12)
print(len([event for event in own.events() if event.name == "aten::linear"]))
"""
)

OWN_PROFILER_IN_WINDOW: Final = (
    TRAIN
    + """
from torch.profiler import ProfilerActivity, profile
own = profile(activities=[ProfilerActivity.CPU])
train(12, 6, own.start)
own.stop()
print(len([event for event in own.events() if event.name == "aten::linear"]))
"""
)

INFERS: Final = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU())
with torch.inference_mode():
    for _ in range(12):
        model(torch.ones(4, 16))
"""

RANKS: Final = (
    TRAIN
    + """
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
train(12)
dist.destroy_process_group()
"""
)

STUCK: Final = (
    TRAIN
    + """
import hashlib
def hang():
    print("stuck", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 10**9)
train(12, 6, hang)
"""
)
