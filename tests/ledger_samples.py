"""Declared ledgers whose pages are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.pipeline.declared_ledger import declared_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.report.declared_ledger import DeclaredLedger

STEP: Final[list[Mapping[str, Any]]] = [
    {
        "name": "batch from object storage",
        "object": "input",
        "bytes": 25_000_000,
        "bandwidth_gbps": 0.8,
        "fixed_latency_ms": 12,
        "frequency": 4,
        "overlap_window_ms": 60,
        "blocking_dependency": False,
        "serialization_ms": 6,
    },
    {
        "name": "weights at cold start",
        "object": "artifact",
        "bytes": 14_000_000_000,
        "bandwidth_gbps": 2.5,
        "fixed_latency_ms": 150,
        "serialization_ms": 900,
        "per": "run",
    },
    {
        "name": "KV blocks to decode",
        "object": "state",
        "bytes": 131_072,
        "bandwidth_gbps": 20,
        "fixed_latency_ms": 0.03,
        "frequency": 90,
        "per": "request",
    },
    {
        "name": "checkpoint",
        "object": "output",
        "bytes": 4_000_000_000,
        "stored_bytes": 3_000_000_000,
        "bandwidth_gbps": 12,
        "fixed_latency_ms": 3,
        "serialization_ms": 80,
        "production_gbps": 6,
        "drain_gbps": 1.5,
        "queue_bytes": 2_000_000_000,
        "duration_ms": 700,
    },
]
ORACLE: Final[list[Mapping[str, Any]]] = [
    {"object": "artifact", "bytes": 10**9, "bandwidth_gbps": 1.0, "frequency": 1, "blocking_dependency": True},
    {
        "object": "state",
        "bytes": 10**8,
        "bandwidth_gbps": 10.0,
        "frequency": 4,
        "overlap_window_ms": 6.0,
        "blocking_dependency": False,
    },
]


def step() -> DeclaredLedger:
    """All four objects, all four periods, a queue."""
    ledger = declared_ledger(STEP, requests_per_unit=10, units_per_run=500)
    return msgspec.structs.replace(ledger, source="step.toml", longpole="0")


def oracle() -> DeclaredLedger:
    """The two events of DESIGN 3.5."""
    return msgspec.structs.replace(declared_ledger(ORACLE), longpole="0")


def hidden() -> DeclaredLedger:
    """Nothing is waited for."""
    events = [{**ORACLE[1], "overlap_window_ms": 20.0, "name": "weights to rollout"}]
    return msgspec.structs.replace(declared_ledger(events), longpole="0")


SAMPLES: Final[dict[str, Callable[[], DeclaredLedger]]] = {"step": step, "oracle": oracle, "hidden": hidden}
