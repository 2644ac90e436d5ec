"""What rules look at, made of scripts; and a job of a few spans whose times tests choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.advice.scene import Scene, Tables
from longpole.digest.steady import find_steady
from longpole.digest.transfer_costs import transfer_costs
from longpole.settings import Settings
from longpole.whatif.predict import Ground
from tests.build import LOADER, VOCABULARY, Script
from tests.run_graphs import replayed

if TYPE_CHECKING:
    from collections.abc import Sequence

LATE_US = 400.0
"""From the end of loading to the end of a step of `loading_job`, without its kernel's own time of 100 µs."""


def scene_of(*scripts: Script, settings: Settings | None = None) -> Scene:
    """Return the scene of a run of scripts, one a rank, without tables of collectives."""
    settings = settings or Settings()
    run = replayed(*scripts, settings=settings)
    cost = transfer_costs(run.across, {d.rank: d.rows[0].device_name for d in run.digests}, settings)
    ground = Ground(run.graph, run.replayed, run.instances, cost, settings)
    steady = find_steady(run.digests, settings, run.across.clocks if run.across is not None else None)
    return Scene(run.digests, steady, run.across, Tables(), ground, settings, VOCABULARY)


def loading_job(*load_us: float, kernel_us: float = 100.0, rank: int = 0, world: int = 1) -> Script:
    """Draw steps that load, launch a kernel, and wait for it.

    main     ├ loader ┤ 50 ├ launch ┤├─ sync ─┤ 195 ┤
    device                     ├ gemm ┤
    """
    script = Script(rank=rank, base_ns=0, world_size=world, path=f"rank{rank}.json")
    at = 0.0
    for number, load in enumerate(load_us):
        ready = at + 100 + load
        if load:
            script.span(LOADER, at + 50, at + 50 + load)
        script.kernel(ready + 10, ready + 10 + kernel_us, script.launch(ready, ready + 5))
        script.sync(ready + 20, ready + 15 + kernel_us, name="cudaDeviceSynchronize")
        end = at + LATE_US + load + kernel_us
        script.step(number, at, end)
        at = end
    return script


def team(compute_us: Sequence[float], *, steps: int = 4, transfer_us: float = 20.0) -> list[Script]:
    """Draw ranks that compute, meet in an all-reduce that the autograd thread launches, and wait for it.

    main      ├ launch ┤                             ├─── sync ───┤
    autograd             ├ all-reduce's launch ┤
    stream 7     ══ gemm ══
    stream 13              ········ waits ········ ══ moves ══
    """
    world = len(compute_us)
    scripts = [Script(rank=r, base_ns=0, world_size=world, path=f"rank{r}.json") for r in range(world)]
    for number in range(steps):
        at = number * (max(compute_us) + transfer_us + 100)
        done = at + 12 + max(compute_us) + transfer_us
        for script, own in zip(scripts, compute_us, strict=True):
            script.kernel(at + 10, at + 10 + own, script.launch(at + 2, at + 6))
            script.backward("autograd::engine::evaluate_function: MulBackward0", at + 8, at + 12)
            script.collective(at + 12 + own, done, script.launch(at + 20, at + 24, thread="autograd"))
            script.sync(at + 30, done + 5, name="cudaDeviceSynchronize")
            script.step(number, at, at + max(compute_us) + transfer_us + 100)
    return scripts
