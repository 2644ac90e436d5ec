"""Every row of the catalogue: a job where it applies and what the replay says of it, and one where it is silenced.

What the replay says is `shorter`, `longer` (what is bought is memory), or the beginning of the reason why there is no
prediction. Jobs are drawn from data (tests/catalogue_runs.py); where a row answers a cause that is no matter of the
ledger, the finding is given.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from longpole.advice.catalogue import load_catalogue
from longpole.advice.judge import APPLIES, SILENCED
from longpole.records.ledger import Unknown
from tests.catalogue_runs import (
    GEMM,
    OWN_LOADER,
    WORKER_LOADER,
    Collective,
    Job,
    finding,
    late_gathers,
    proposed,
    run_of,
)

if TYPE_CHECKING:
    from longpole.advice.propose import Proposal
    from longpole.pipeline.replays import RunReplay
    from longpole.records.findings import CandidateEntry

SHORTER, LONGER = "shorter", "longer"
MEASURES = "it is a measurement"
MARKED = "the units that load are marked"

FLASH = "flash_bwd_dq_dk_dv_loop_kernel"
SGEMM = "volta_sgemm_128x64_nn"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"
TRANSPOSE = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float>"

PLAIN = Job()
LOADING = Job(before=((OWN_LOADER, 8000.0),))
WITH_WORKERS = Job(before=((WORKER_LOADER, 4000.0),))
RESTARTING = Job(before=((WORKER_LOADER, 100.0), ("torch/utils/data/dataloader.py(1042): __init__", 900.0)))
PAGEABLE = Job(copies=(("htod pageable", 2000.0, True),), every=60.0, kernels=((GEMM, 30.0),) * 40)
PINNED = Job(copies=(("htod", 2000.0, False),))
UNEVEN = Job(
    ranks=2,
    slow={1: 1.6},
    shapes={0: "[[8, 128]]", 1: "[[8, 205]]"},
    collectives=(Collective(kind="all_reduce", dur=20.0),),
)
SLOW = Job(ranks=3, slow={1: 1.6}, shapes=dict.fromkeys(range(3), "[[8, 128]]"), collectives=UNEVEN.collectives)
EVEN = Job(ranks=2, shapes={0: "[[8, 128]]", 1: "[[8, 128]]"}, collectives=UNEVEN.collectives)
STARTING = Job(head=(("load_state_dict", 9000.0),))
SAVING = Job(after=(("save_checkpoint", 8000.0),), rare=3)
LOGGING = Job(after=(("log_metrics", 1500.0),))
OFFLOADING = Job(before=(("offload_optimizer", 1500.0),))
SERVING = Job(ranks=2, before=(("kv_transfer", 1500.0),), kind="inference")
SERVING_ALONE = Job(before=(("kv_transfer", 1500.0),), kind="inference")
SHORT_KERNELS = Job(kernels=((GEMM, 5.0),) * 40, every=40.0)
SMALL = Job(ranks=2, collectives=tuple(Collective(kind="all_reduce", dur=60.0, bytes=10**n) for n in range(3, 7)) * 4)
LARGE = Job(ranks=2, collectives=(Collective(kind="all_reduce", dur=2000.0),))
GATHERING = Job(ranks=2, collectives=(Collective(kind="all_gather", dur=2000.0),), hosts=("a", "b"))
SKEWED = Job(ranks=2, slow={1: 3.0}, collectives=(Collective(kind="all_reduce", dur=20.0),))
MOE = Job(ranks=2, collectives=(Collective(kind="all_to_all", dur=100.0),))
MOE_BOUND = Job(ranks=2, collectives=(Collective(kind="all_to_all", dur=4000.0),))
BACKWARD = Job(kernels=((FLASH, 2000.0), (GEMM, 1000.0)), backward=True, before=((OWN_LOADER, 1500.0),))
BUSY_BACKWARD = Job(kernels=((FLASH, 20000.0), (GEMM, 1000.0)), backward=True)
FULL = {"memory.peak_share": 0.97}


@dataclass(frozen=True)
class Fixture:
    """A job, with findings and figures that it does not tell by itself."""

    job: Job | str
    causes: tuple[str, ...] = ()
    known: dict[str, Any] = field(default_factory=dict)
    what_if: tuple[str, ...] = ()
    once: bool = False

    def propose(self) -> Proposal:
        run = _late() if self.job == "late gathers" else _run(self.job)
        findings = [finding(cause, what_if=self.what_if, once=self.once) for cause in self.causes]
        return proposed(run, findings, self.known)


_RUNS: dict[int, RunReplay] = {}


def _run(job: Job | str) -> RunReplay:
    assert isinstance(job, Job)
    if id(job) not in _RUNS:
        _RUNS[id(job)] = run_of(job)
    return _RUNS[id(job)]


@functools.cache
def _late() -> RunReplay:
    gather = Collective(kind="all_gather", dur=420.0)
    return run_of(Job(ranks=2, collectives=(gather,)), scripts=late_gathers())


def _kernels(*names: str) -> Job:
    return Job(kernels=((GEMM, 2000.0), *((name, 2000.0) for name in names)))


def _after(name: str) -> Job:
    return Job(after=((name, 1500.0),))


POINTWISE_JOB, TRANSPOSE_JOB, WIDE_JOB, ATTENTION_JOB = (
    _kernels(POINTWISE),
    _kernels(TRANSPOSE),
    _kernels(SGEMM),
    _kernels("flash_fwd_kernel"),
)
COLLECTING, EMPTYING = _after("gc.collect"), _after("torch/cuda/memory.py(222): empty_cache")
REDUCER = Job(ranks=2, after=(("torch.distributed.ddp.reducer::copy_bucket_to_grad", 1500.0),))

APPLIES_AND: Final[dict[str, tuple[Fixture, str]]] = {
    "input.prefetch": (Fixture(LOADING), SHORTER),
    "input.add_workers": (Fixture(WITH_WORKERS), SHORTER),
    "input.keep_workers": (Fixture(RESTARTING), SHORTER),
    "input.cache": (Fixture(LOADING), SHORTER),
    "input.pin_memory": (Fixture(PAGEABLE), SHORTER),
    "input.pack": (Fixture(UNEVEN), SHORTER),
    "input.move_preprocessing": (Fixture(LOADING), SHORTER),
    "input.trace_path": (Fixture(LOADING), MEASURES),
    "artifact.change_format": (Fixture(STARTING), MARKED),
    "artifact.load_lazily": (Fixture(STARTING), MARKED),
    "artifact.warm_up": (Fixture(PLAIN, ("cold_start",), known={"run.kind": "inference"}), "only units outside"),
    "artifact.cache_compiled": (
        Fixture(COLLECTING, ("recompilation",), {"compile.share": 0.2}, ("--remove name:collect",)),
        SHORTER,
    ),
    "artifact.trace_load": (Fixture(STARTING), MEASURES),
    "state.overlap_offload": (Fixture(OFFLOADING), SHORTER),
    "state.split_pools": (Fixture(SERVING), "how requests queue"),
    "state.compress": (Fixture(OFFLOADING), SHORTER),
    "state.checkpoint_attention": (Fixture(BACKWARD, known=FULL), LONGER),
    "state.checkpoint_full": (Fixture(BACKWARD, known=FULL), LONGER),
    "state.route_kv": (Fixture(SERVING), "which requests share"),
    "state.trace_handoff": (Fixture(OFFLOADING), MEASURES),
    "state.trace_refresh": (Fixture(OFFLOADING, known={"run.kind": "posttraining"}), MEASURES),
    "output.buffer": (Fixture(LOGGING), SHORTER),
    "output.batch_writes": (Fixture(LOGGING), SHORTER),
    "output.async_checkpoint": (Fixture(SAVING), SHORTER),
    "output.async_log": (Fixture(LOGGING), SHORTER),
    "output.limit_rate": (Fixture(LOGGING, ("backpressure",)), SHORTER),
    "output.trace_drain": (Fixture(LOGGING), MEASURES),
    "compute.capture_graph": (Fixture(SHORT_KERNELS), SHORTER),
    "compute.fuse_kernels": (Fixture(POINTWISE_JOB), SHORTER),
    "compute.fix_layout": (Fixture(TRANSPOSE_JOB), SHORTER),
    "compute.lower_precision": (Fixture(WIDE_JOB), SHORTER),
    "compute.mend_slow_rank": (Fixture(SLOW), SHORTER),
    "collective.set_bucket_size": (Fixture(LARGE), SHORTER),
    "collective.view_gradients": (Fixture(REDUCER, known={"reducer.copy_share": 0.2}), SHORTER),
    "collective.fuse_small": (Fixture(SMALL), SHORTER),
    "collective.split_coarse": (Fixture(LARGE), SHORTER),
    "collective.split_buckets": (Fixture(LARGE), SHORTER),
    "collective.split_fused": (Fixture(LARGE), SHORTER),
    "collective.choose_algorithm": (Fixture(LARGE, ("protocol",)), SHORTER),
    "collective.mend_topology": (
        Fixture(LARGE, ("slow_link",), {"collective.slow_link_factor": 3.0}, ("--set kind:all_reduce=0.4x",)),
        SHORTER,
    ),
    "collective.shard_within_host": (Fixture(GATHERING, known={"memory.peak_share": 0.4}), SHORTER),
    "collective.balance_load": (Fixture(UNEVEN), SHORTER),
    "collective.issue_earlier": (Fixture("late gathers"), SHORTER),
    "collective.order_queues": (Fixture("late gathers", ("queue_order",)), SHORTER),
    "collective.limit_overlap": (Fixture(LARGE, ("contention",)), "how much slower"),
    "collective.drop_extra": (Fixture(LARGE, ("extra_collective",), {}, ("--remove kind:all_reduce",)), SHORTER),
    "collective.create_early": (Fixture(LARGE, ("communicator_setup",), once=True), "only the unit that creates"),
    "host.sync_less": (Fixture(SHORT_KERNELS, ("host_sync",), {}, ("--set host=0.5x",)), SHORTER),
    "host.control_gc": (Fixture(COLLECTING), SHORTER),
    "host.keep_cache": (Fixture(EMPTYING), SHORTER),
    "host.stop_recompiling": (Fixture(COLLECTING, ("recompilation",), {}, ("--remove name:collect",)), SHORTER),
    "host.limit_threads": (Fixture(COLLECTING, ("thread_contention",)), "which threads would give way"),
    "state.shard": (Fixture(EVEN, known=FULL), "the sharded run"),
    "compute.split_tensors": (Fixture(EVEN, known=FULL | {"collective.slow_link_factor": 1.0}), "the split run"),
    "compute.split_layers": (Fixture(EVEN, known=FULL), "the stages' hand-offs"),
    "compute.split_experts": (Fixture(MOE), "which tokens"),
    "state.split_sequence": (Fixture(ATTENTION_JOB), "the ring's traffic"),
}
"""Row -> a job where it applies, and what the replay says of it."""

SILENCED_BY: Final[dict[str, tuple[Fixture, str]]] = {
    "input.prefetch": (Fixture(WITH_WORKERS), "worker processes prefetch already"),
    "input.add_workers": (Fixture(LOADING, ("data_loader",)), "no workers to add to"),
    "input.keep_workers": (Fixture(LOADING, ("data_loader_periodic",)), "no workers that could be kept"),
    "input.cache": (Fixture(PAGEABLE, ("data_loader",)), "copy from pageable memory"),
    "input.pin_memory": (Fixture(PINNED, ("pageable_copy",)), "nothing is copied from pageable"),
    "input.pack": (Fixture(SLOW, ("slow_rank", "work_imbalance")), "no other batches change that"),
    "input.move_preprocessing": (Fixture(PLAIN, ("host_preparation",)), "compute-bound"),
    "input.trace_path": (Fixture(PLAIN, ("data_loader",)), "nothing that fetches input"),
    "artifact.change_format": (Fixture(PLAIN, ("cold_start",)), "less than a thousandth"),
    "artifact.load_lazily": (Fixture(PLAIN, ("cold_start",)), "less than a thousandth"),
    "artifact.warm_up": (Fixture(PLAIN, ("cold_start",)), "saves nothing"),
    "artifact.cache_compiled": (Fixture(PLAIN, ("cold_start",)), "less than a thousandth"),
    "artifact.trace_load": (Fixture(PLAIN, ("cold_start",)), "less than a thousandth"),
    "state.overlap_offload": (
        Fixture(Job(before=(("offload_optimizer", 9000.0),), kernels=((GEMM, 500.0),))),
        "too little computation",
    ),
    "state.split_pools": (Fixture(SERVING_ALONE), "no two pools"),
    "state.compress": (Fixture(PLAIN, ("offload_exposed",)), "compute-bound"),
    "state.checkpoint_attention": (Fixture(BUSY_BACKWARD, known=FULL), "compute-bound"),
    "state.checkpoint_full": (Fixture(BUSY_BACKWARD, known=FULL), "compute-bound"),
    "state.route_kv": (Fixture(SERVING_ALONE), "one place only"),
    "state.trace_handoff": (Fixture(OFFLOADING, known={"run.on_device": False}), "no device"),
    "state.trace_refresh": (Fixture(PLAIN, known={"run.kind": "posttraining"}), "holds nobody up"),
    "output.buffer": (Fixture(LOGGING, ("leak",)), "grows with it"),
    "output.batch_writes": (Fixture(LOGGING, ("checkpoint_blocking",)), "nothing to join"),
    "output.async_checkpoint": (Fixture(PLAIN, ("checkpoint_blocking",)), "saving holds nobody up"),
    "output.async_log": (Fixture(LOGGING, ("backpressure",)), "pile up"),
    "output.limit_rate": (Fixture(PLAIN, ("backpressure",)), "output holds nobody up"),
    "output.trace_drain": (Fixture(PLAIN, ("logging",)), "output holds nobody up"),
    "compute.capture_graph": (Fixture(PLAIN, ("launch_bound",)), "the host is ahead already"),
    "compute.fuse_kernels": (Fixture(POINTWISE_JOB, known={"run.on_device": False}), "no kernels of a device"),
    "compute.fix_layout": (Fixture(TRANSPOSE_JOB, known={"run.on_device": False}), "no kernels of a device"),
    "compute.lower_precision": (Fixture(WIDE_JOB, known={"run.on_device": False}), "no kernels of a device"),
    "compute.mend_slow_rank": (Fixture(UNEVEN, ("slow_rank", "work_imbalance")), "none is slow"),
    "collective.set_bucket_size": (Fixture(SKEWED, ("exposed_last_bucket",)), "waiting for a late rank"),
    "collective.view_gradients": (Fixture(PLAIN, known={"reducer.copy_share": 0.1}), "nobody to exchange"),
    "collective.fuse_small": (Fixture(SKEWED, ("many_small_collectives",)), "waiting for a late rank"),
    "collective.split_coarse": (Fixture(SKEWED), "waiting for a late rank"),
    "collective.split_buckets": (Fixture(SKEWED), "waiting for a late rank"),
    "collective.split_fused": (Fixture(SKEWED), "waiting for a late rank"),
    "collective.choose_algorithm": (Fixture(SKEWED, ("protocol",)), "waiting for a late rank"),
    "collective.mend_topology": (
        Fixture(LARGE, ("slow_link",), {"collective.slow_link_factor": 1.1}),
        "all pairs of ranks move bytes alike",
    ),
    "collective.shard_within_host": (Fixture(GATHERING, known=FULL), "more of the state than it has room for"),
    "collective.balance_load": (Fixture(SLOW, ("slow_rank",)), "leaves the reason in place"),
    "collective.issue_earlier": (Fixture("late gathers", ("late_issue",), FULL), "no room"),
    "collective.order_queues": (Fixture(LARGE, ("queue_order",), {"run.on_device": False}), "no device"),
    "collective.limit_overlap": (Fixture(LARGE, ("contention",), {"run.on_device": False}), "no device"),
    "collective.drop_extra": (Fixture(PLAIN, ("extra_collective",)), "nobody to wait for"),
    "collective.create_early": (Fixture(PLAIN, ("communicator_setup",)), "needs no communicator"),
    "host.sync_less": (Fixture(PLAIN, ("host_sync",)), "compute-bound"),
    "host.control_gc": (Fixture(COLLECTING, ("leak",)), "grows faster"),
    "host.keep_cache": (Fixture(EMPTYING, known={"run.on_device": False}), "no device"),
    "host.stop_recompiling": (Fixture(Job(steps=2), ("recompilation",)), "so few units"),
    "host.limit_threads": (Fixture(PLAIN, ("thread_contention",)), "the host holds nobody up"),
    "state.shard": (Fixture(MOE_BOUND, known=FULL), "communication-bound"),
    "compute.split_tensors": (Fixture(LARGE, known=FULL), "communication-bound"),
    "compute.split_layers": (Fixture(EVEN, known=FULL | {"pipeline.bubble_share": 0.3}), "wait longer"),
    "compute.split_experts": (Fixture(MOE, known={"work.imbalance": 0.5}), "balance the router first"),
    "state.split_sequence": (Fixture(ATTENTION_JOB, known={"collective.moving_share": 0.5}), "communication-bound"),
}
"""Row -> a job where it would apply but for a condition of `not_when`, and what that condition says."""

IDS: Final = [row.id for row in load_catalogue()]


def test_every_row_has_its_fixtures() -> None:
    assert list(APPLIES_AND) == list(SILENCED_BY)
    assert set(APPLIES_AND) == set(IDS)


def _entry(found: Proposal, row: str) -> CandidateEntry:
    assert found.judgements[row].verdict == APPLIES, found.judgements[row].because()
    return next(entry for entry in found.entries if entry.id == row)


@pytest.mark.parametrize("row", IDS)
def test_it_applies_and_its_gain_has_the_right_sign(row: str) -> None:
    fixture, expected = APPLIES_AND[row]

    entry = _entry(fixture.propose(), row)

    assert entry.because
    if expected in (SHORTER, LONGER):
        assert entry.refused == ""
        assert isinstance(entry.predicted_gain_share, float)
        assert isinstance(entry.predicted_period_ns, int)
        assert entry.changes
        assert entry.command.startswith("longpole whatif PATH --")
        assert (entry.predicted_gain_share > 0.01) if expected == SHORTER else (entry.predicted_gain_share < -0.01)
    else:
        assert isinstance(entry.predicted_gain_share, Unknown)
        assert entry.refused.startswith(expected)


@pytest.mark.parametrize("row", IDS)
def test_a_condition_silences_it(row: str) -> None:
    fixture, why = SILENCED_BY[row]

    found = fixture.propose()

    assert found.judgements[row].verdict == SILENCED, found.judgements[row].because()
    assert any(why in text for text in found.judgements[row].because())
    assert row not in {entry.id for entry in found.entries}
