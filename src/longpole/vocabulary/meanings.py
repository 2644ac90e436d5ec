"""What a name can mean: one frozen value for each of the four questions that `Vocabulary` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CopyDirection = Literal["htod", "dtoh", "dtod", "ptop", "htoh", "memset", "unknown"]
StepKind = Literal["step", "request", "iteration", "engine"]


@dataclass(frozen=True, slots=True)
class KernelMeaning:
    """What the name of a device span says about communication.

    Attributes:
        is_collective: A collective or point-to-point transfer, so rung 2 of the ledger (DESIGN 3.3).
        kind: One of `objects.COLLECTIVE_KINDS`; empty where the name names no kind, as NCCL's `SendRecv` does
            not (DESIGN 3.8).
        family: The library the name belongs to: `nccl`, `rccl`, `hccl`, `deepep`, ..., `custom`, or empty.
        protocol: `LL`, `LL128`, `SIMPLE` or empty: what the name claims. NCCL 2.12 and later name the entry
            kernel, not the protocol that ran, so this proves nothing by itself (DESIGN 3.8).
        is_task: A small part of a collective that has a row of its own (HCCL); it belongs to that collective
            and is not another one.
        is_fused: Computes and communicates in one kernel: charged to compute, counted in the collective's
            service (DESIGN 3.3). `is_collective` is false then.
    """

    is_collective: bool
    kind: str = ""
    family: str = ""
    protocol: str = ""
    is_task: bool = False
    is_fused: bool = False


@dataclass(frozen=True, slots=True)
class CopyMeaning:
    """What the name of a device span says about a copy.

    Attributes:
        direction: Which way the bytes move; `unknown` where the name does not say.
        pageable: The host side is pageable memory; None where the name does not say.
        pinned: The host side is page-locked memory; None where the name does not say.
        is_copy: The name is one of a copy or memset at all; for rows that carry no category.
    """

    direction: CopyDirection
    pageable: bool | None = None
    pinned: bool | None = None
    is_copy: bool = True


@dataclass(frozen=True, slots=True)
class HostMeaning:
    """What the name of an operator, an annotation, a Python frame or a runtime call says.

    Attributes:
        object: The object of an object activity in the sense of DESIGN 3.4, or empty.
        activity: Which activity that is (`data_loader`, `checkpoint_save`, ...), or empty.
        call: One of `objects.CALLS`.
        stage: One of `objects.STAGES` where the name itself decides it, else empty. That an operator on the
            thread means `forward` is the analysis's knowledge, not the name's.
        is_collective_op: Issues or awaits a collective, so it is no operator in the CPU rules of DESIGN 3.3.
        kind: One of `objects.COLLECTIVE_KINDS` for such an operation.
        backend: The communication library of a backend span such as `gloo:all_reduce`, or empty.
        loader_workers: True where the loader has worker processes, False where it loads in this process, None
            where the name does not say.
        carries: The object that copies launched inside it carry, where it is no activity itself; or empty.
    """

    object: str = ""
    activity: str = ""
    call: str = ""
    stage: str = ""
    is_collective_op: bool = False
    kind: str = ""
    backend: str = ""
    loader_workers: bool | None = None
    carries: str = ""


@dataclass(frozen=True, slots=True)
class StepMeaning:
    """What a marker of the unit of work says.

    Attributes:
        kind: What it counts.
        ordinal: The number in the name, or None.
        priority: Which markers win where a trace has several (DESIGN 3.2): 1 the profiler's steps, 2 the one
            that the user names, 3 an engine's iterations, 4 the optimizer's step.
    """

    kind: StepKind
    ordinal: int | None
    priority: int
