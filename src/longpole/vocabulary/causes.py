"""The vocabulary of causes: what a finding may say, and which object the wait is charged to (REPORT-JSON, Causes)."""

from __future__ import annotations

from typing import Final

CAUSES: Final[dict[str, str]] = {
    "data_loader": "input",
    "data_loader_periodic": "input",
    "pageable_copy": "input",
    "host_preparation": "input",
    "host_sync": "host",
    "host_sync_many": "host",
    "host_sync_limiter": "host",
    "launch_bound": "host",
    "thread_contention": "host",
    "gc": "host",
    "gc_and_empty_cache": "host",
    "host_pause_rotating": "host",
    "allocator_retries": "host",
    "per_shape_search": "host",
    "recompilation": "host",
    "many_small_collectives": "collective",
    "exposed_last_bucket": "collective",
    "late_issue": "collective",
    "slow_link": "collective",
    "protocol": "collective",
    "communicator_setup": "collective",
    "contention": "collective",
    "queue_order": "collective",
    "extra_collective": "collective",
    "work_imbalance": "compute",
    "slow_rank": "compute",
    "slow_stage": "compute",
    "profiler_start_skew": "unknown",
    "checkpoint_on_one_rank": "output",
    "checkpoint_blocking": "output",
    "checkpoint_staging": "output",
    "logging": "output",
    "offload_exposed": "state",
    "cold_start": "artifact",
    "backpressure": "output",
    "fragmentation": "host",
    "leak": "host",
    "gpu_work": "compute",
    "unknown_incomplete_trace": "unknown",
}
"""Cause -> the object that it is charged to, in the order of REPORT-JSON."""

NO_WAIT: Final = "gpu_work"
"""The device is the long pole: nothing waits."""

NO_VERDICT: Final = "unknown_incomplete_trace"
"""The evidence does not carry a verdict."""
