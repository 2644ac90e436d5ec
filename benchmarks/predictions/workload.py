"""The recorded program: data-parallel training on two ranks with gloo, its costs slept and set by knobs.

    python workload.py PLAN RANK

`record` starts one process a rank. Both run the configurations of the plan one after another, each with a model, a
loader and a profiler of its own, and write one trace each a configuration; so a process start is paid once. Needs
PyTorch, which the package itself does not.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function, schedule

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # so that it runs as a script, from any folder

from benchmarks.predictions.knobs import N_RANKS, Knobs, parse_knobs

BATCH = 16
N_CLASSES = 10
N_ATTENTION = 4  # calls a step, whatever the number of blocks
BYTES_PER_MB = 1_000_000
BYTES_PER_FLOAT = 4


def sleep_ms(duration_ms: float) -> None:
    """Sleep; a cost of zero costs nothing, not even the call to the system."""
    if duration_ms > 0:
        time.sleep(duration_ms / 1e3)


def take_time(x: torch.Tensor, duration_ms: float) -> torch.Tensor:
    """Sleep, and pass the input on."""
    sleep_ms(duration_ms)
    return x.clone()


attention = torch.library.custom_op("bench::attention", take_time, mutates_args=())  # an operator of the trace
attention.register_autograd(lambda _, grad: (grad, None))


class Batches:
    """A data set whose items are whole batches, each fetched in a known time."""

    def __init__(self, n_batches: int, width: int, fetch_ms: float) -> None:
        """Hold what `__getitem__` needs.

        Args:
            n_batches: how many there are.
            width: of a row.
            fetch_ms: what fetching one takes.
        """
        self.n_batches = n_batches
        self.fetch_ms = fetch_ms
        self.rows = torch.zeros(BATCH, width)
        self.labels = torch.zeros(BATCH, dtype=torch.long)

    def __len__(self) -> int:
        """Count the batches."""
        return self.n_batches

    def __getitem__(self, place: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Fetch one."""
        sleep_ms(self.fetch_ms)
        return self.rows, self.labels


class Gather:
    """An all-gather of a known size, and whether it is under way."""

    def __init__(self, size_mb: float) -> None:
        """Get the buffers ready.

        Args:
            size_mb: what each rank gives.
        """
        n_floats = int(size_mb * BYTES_PER_MB / BYTES_PER_FLOAT)
        self.mine = torch.zeros(n_floats)
        self.all = [torch.zeros(n_floats) for _ in range(N_RANKS)]
        self.work: Any = None

    def issue(self) -> None:
        """Start it."""
        self.work = dist.all_gather(self.all, self.mine, async_op=True)

    def finish(self) -> None:
        """Wait for it, after starting it where nobody has."""
        if self.work is None:
            self.issue()
        self.work.wait()
        self.work = None


class Model(torch.nn.Module):  # type: ignore[misc]  # the checked environment has no PyTorch
    """Blocks of two linear layers with an attention before each of the first four, then a head."""

    def __init__(self, knobs: Knobs, rank: int, gather: Gather) -> None:
        """Build the layers.

        Args:
            knobs: the configuration.
            rank: of this process.
            gather: what `late` and `early` wait for before the head.
        """
        super().__init__()
        wide = 2 * knobs.width
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(knobs.width, wide), torch.nn.ReLU(), torch.nn.Linear(wide, knobs.width))
            for _ in range(knobs.blocks)
        )
        self.head = torch.nn.Linear(knobs.width, N_CLASSES)
        self.call_ms = knobs.attention_ms[rank] / N_ATTENTION
        self.knobs = knobs
        self.gather = gather

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the blocks, then the head."""
        if self.knobs.gather == "early":
            self.gather.issue()
        for place, block in enumerate(self.blocks):
            if place < N_ATTENTION and self.call_ms > 0:
                x = attention(x, self.call_ms)
            x = block(x)
        if self.knobs.gather in ("late", "early"):
            self.gather.finish()
        return self.head(x)


class Saver:
    """Saves on the training thread, or in a thread of its own, one save at a time."""

    def __init__(self) -> None:
        """Start without a save under way."""
        self.under_way: threading.Thread | None = None

    def save(self, duration_ms: float, *, in_thread: bool) -> None:
        """Save, or start to.

        Args:
            duration_ms: what it takes.
            in_thread: return before it is done.
        """
        if not in_thread:
            with record_function("save_checkpoint"):
                sleep_ms(duration_ms)
            return
        self.finish()
        self.under_way = threading.Thread(target=sleep_ms, args=(duration_ms,))
        self.under_way.start()

    def finish(self) -> None:
        """Wait for the save under way."""
        if self.under_way is not None:
            self.under_way.join()
            self.under_way = None


def train(knobs: Knobs, rank: int, n_steps: int, profiler: Any) -> None:
    """Run the training loop of one configuration.

    Args:
        knobs: the configuration.
        rank: of this process.
        n_steps: how many steps.
        profiler: told of the end of each step.
    """
    gather = Gather(knobs.gather_mb)
    model = torch.nn.parallel.DistributedDataParallel(
        Model(knobs, rank, gather), bucket_cap_mb=knobs.bucket_mb if knobs.bucket_mb > 0 else None
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    measure_loss = torch.nn.CrossEntropyLoss()
    batches = Batches(n_steps, knobs.width, knobs.loader_ms[rank])
    saver = Saver()
    for rows, labels in torch.utils.data.DataLoader(batches, batch_size=None, num_workers=knobs.workers):
        sleep_ms(knobs.pause_ms[rank])
        with in_range("preprocess_batch", knobs.preprocess_ms[rank]):
            sleep_ms(knobs.preprocess_ms[rank])
        optimizer.zero_grad()
        measure_loss(model(rows), labels).backward()
        optimizer.step()
        if knobs.gather == "extra":
            gather.finish()
        with in_range("log_metrics", knobs.log_ms[rank]):
            sleep_ms(knobs.log_ms[rank])
        if knobs.save_ms[rank] > 0:
            saver.save(knobs.save_ms[rank], in_thread=knobs.save_in_thread)
        profiler.step()
    saver.finish()


def in_range(name: str, duration_ms: float) -> contextlib.AbstractContextManager[Any]:
    """Open a named range of the trace where it will take time; a program without the cost has no such range."""
    return record_function(name) if duration_ms > 0 else contextlib.nullcontext()


def read_machine_busy_s() -> float:
    """Read how long the machine's cores have worked for anybody since it started, from /proc/stat."""
    with Path("/proc/stat").open() as lines:
        user, nice, system, _idle, _iowait, irq, softirq, *_ = (int(field) for field in lines.readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def read_own_busy_s() -> float:
    """Read how long this process and the loader processes that it ended have worked."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def record_one(knobs: Knobs, rank: int, n_warmup: int, n_recorded: int, path: Path) -> dict[str, Any]:
    """Record one configuration.

    Args:
        knobs: the configuration.
        rank: of this process.
        n_warmup: steps under the profiler that it does not keep.
        n_recorded: steps that it keeps.
        path: of the trace.

    Returns:
        What else was seen: load before it, wall time, and CPU time of this process and of the whole machine meanwhile.
    """
    gc.collect()
    load = os.getloadavg()[0]
    dist.barrier()
    start_s, own_s, machine_s = time.perf_counter(), read_own_busy_s(), read_machine_busy_s()
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=n_warmup, active=n_recorded, repeat=1),
        record_shapes=True,  # sizes of collectives, which gloo says nowhere else
    ) as profiler:
        train(knobs, rank, n_warmup + n_recorded, profiler)
    dist.barrier()
    seen = {
        "load": round(load, 2),
        "wall_s": round(time.perf_counter() - start_s, 3),
        "own_cpu_s": round(read_own_busy_s() - own_s, 3),
        "machine_cpu_s": round(read_machine_busy_s() - machine_s, 3),
    }
    profiler.export_chrome_trace(str(path))
    return seen


def run_plan(plan: dict[str, Any], rank: int) -> None:
    """Record every configuration of a plan, and say after each that it is there.

    Args:
        plan: as `record` writes it.
        rank: of this process.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{plan['store']}", rank=rank, world_size=N_RANKS)
    record_one(Knobs(), rank, plan["n_warmup"], 2, Path(plan["folder"]) / f"first-{rank}.json.gz")  # costs of a start
    with (Path(plan["folder"]) / f"done-{rank}.jsonl").open("w") as done:
        for run in plan["runs"]:
            knobs = parse_knobs(run["knobs"])
            seen = record_one(
                knobs, rank, plan["n_warmup"], plan["n_recorded"], Path(run["folder"]) / f"rank{rank}.json.gz"
            )
            dist.barrier()  # both traces are written
            done.write(json.dumps({"name": run["name"], **seen}) + "\n")
            done.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    run_plan(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2]))
