"""Longpole names the wait that holds up an AI job."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longpole.bench.step import benchmark
    from longpole.costs.balance.sampler import BalancedBatchSampler
    from longpole.pipeline.balance import balance_sequences as balance
    from longpole.pipeline.declared_ledger import declared_ledger
    from longpole.pipeline.plan import plan
    from longpole.pipeline.run import Run
    from longpole.pipeline.run import open_run as open
    from longpole.pipeline.scaling import scaling
    from longpole.pipeline.verify import VerifyOptions, verify

__all__ = [
    "BalancedBatchSampler",
    "Run",
    "VerifyOptions",
    "balance",
    "benchmark",
    "declared_ledger",
    "open",
    "plan",
    "scaling",
    "verify",
]

_HOMES = {
    "BalancedBatchSampler": ("longpole.costs.balance.sampler", "BalancedBatchSampler"),
    "balance": ("longpole.pipeline.balance", "balance_sequences"),
    "declared_ledger": ("longpole.pipeline.declared_ledger", "declared_ledger"),
    "benchmark": ("longpole.bench.step", "benchmark"),
    "Run": ("longpole.pipeline.run", "Run"),
    "open": ("longpole.pipeline.run", "open_run"),
    "plan": ("longpole.pipeline.plan", "plan"),
    "scaling": ("longpole.pipeline.scaling", "scaling"),
    "VerifyOptions": ("longpole.pipeline.verify", "VerifyOptions"),
    "verify": ("longpole.pipeline.verify", "verify"),
}


def __getattr__(name: str) -> Any:
    """Resolve public names when they are first used, so that importing the package loads nothing heavy."""
    if name == "record":  # a module, which `from longpole import record` finds by itself
        return import_module("longpole.record")
    if name not in _HOMES:
        msg = f"module 'longpole' has no attribute {name!r}"
        raise AttributeError(msg)
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
