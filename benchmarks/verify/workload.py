"""The recorded program: the predictions' training with a batch, a loss and a memory that a contract can speak of.

    python workload.py < plans

`record` starts it once and writes a plan a run. For each, it forks a fresh process a rank, before PyTorch has done
anything but be imported: on busy cores importing takes ten times as long as a run. Each rank writes its trace and
what else it saw. Needs PyTorch, which the package itself does not. Model, saver and costs are those of
`benchmarks.predictions.workload`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # so that it runs as a script, from any folder

from benchmarks.predictions.knobs import N_RANKS
from benchmarks.predictions.workload import (
    BYTES_PER_MB,
    N_CLASSES,
    Gather,
    Model,
    Saver,
    in_range,
    read_machine_busy_s,
    read_own_busy_s,
    sleep_ms,
)
from benchmarks.verify.setting import Setting, parse_setting

LEARNING_RATE = 0.002
SIGNAL = 12.0  # of a row's class, over noise of 1: seventeen steps learn most of it
N_HELD_OUT = 256
BYTES_PER_KIB = 1024
RUN_LIMIT_S = 60.0  # a run takes about two seconds


class Store:
    """A data set whose items are whole batches that can be learned from, behind a cache or without one."""

    def __init__(self, setting: Setting, rank: int, n_batches: int, seed: int) -> None:
        """Make the batches; the time to fetch one is slept when it is asked for.

        Args:
            setting: the configuration.
            rank: of this process; its rows are its own.
            n_batches: how many there are.
            seed: of the rows.
        """
        generator = torch.Generator().manual_seed(seed * N_RANKS + rank)
        self.rows, self.labels = make_rows((n_batches, setting.batch), setting.width, generator)
        self.fetch = setting.fetch
        self.fetch_ms = setting.loader_ms[rank]
        self.memory = torch.ones(int(setting.cache_mb * BYTES_PER_MB), dtype=torch.uint8)  # resident, as a cache is
        self.kept: tuple[torch.Tensor, torch.Tensor] | None = None

    def __len__(self) -> int:
        """Count the batches."""
        return len(self.rows)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Fetch one."""
        if self.fetch == "stale" and self.kept is not None:
            return self.kept
        if self.fetch != "cached":
            sleep_ms(self.fetch_ms)
        self.kept = self.rows[place], self.labels[place]
        return self.kept


def make_rows(shape: tuple[int, ...], width: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Make rows whose class can be learned, and their classes.

    Args:
        shape: of the classes.
        width: of a row.
        generator: of the random numbers.

    Returns:
        The rows, noise with the column of their class raised; and the classes.
    """
    labels = torch.randint(N_CLASSES, shape, generator=generator)
    rows = torch.randn(*shape, width, generator=generator)
    return rows + SIGNAL * torch.nn.functional.one_hot(labels, width), labels


class Pace:
    """A rate limiter: `wait` returns no sooner than a set time after it last returned."""

    def __init__(self, pace_ms: float) -> None:
        """Start; the first wait is none.

        Args:
            pace_ms: between two returns.
        """
        self.pace_ms = pace_ms
        self.last_s = -float("inf")

    def wait(self) -> None:
        """Wait for the turn."""
        with in_range("rate_limiter", self.pace_ms):
            sleep_ms(max(0.0, self.pace_ms - (time.perf_counter() - self.last_s) * 1e3))
        self.last_s = time.perf_counter()


class Training:
    """Model, optimizer and data of one run on one rank."""

    def __init__(self, setting: Setting, rank: int, n_steps: int, seed: int) -> None:
        """Build them.

        Args:
            setting: the configuration.
            rank: of this process.
            n_steps: how many steps there will be.
            seed: of the weights and the data.
        """
        torch.manual_seed(seed)
        self.setting, self.rank = setting, rank
        bare = Model(setting, rank, Gather(0.0))
        self.model = torch.nn.parallel.DistributedDataParallel(bare)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE, foreach=True)
        self.measure_loss = torch.nn.CrossEntropyLoss()
        self.store = Store(setting, rank, n_steps, seed)
        self.saver = Saver()
        self.pace = Pace(setting.pace_ms)

    def run(self, profiler: Any) -> list[float]:
        """Train.

        Args:
            profiler: told of the end of each step.

        Returns:
            The loss of each step, on this rank's rows.
        """
        losses = []
        batches = torch.utils.data.DataLoader(self.store, batch_size=None, num_workers=self.setting.workers)
        for place, (rows, labels) in enumerate(batches):
            losses.append(self.step(rows, labels))
            self.put_out(place)
            profiler.step()
        self.saver.finish()
        return losses

    def step(self, rows: torch.Tensor, labels: torch.Tensor) -> float:
        """Take one step of the optimizer, and return its loss."""
        cost_ms = self.setting.preprocess_ms[self.rank] + self.setting.item_ms * len(rows)
        with in_range("preprocess_batch", cost_ms):
            sleep_ms(cost_ms)
        self.optimizer.zero_grad()
        loss = self.measure_loss(self.model(rows), labels)
        loss.backward()
        self.pace.wait()
        self.optimizer.step()
        return float(loss.item())

    def put_out(self, place: int) -> None:
        """Write metrics and the checkpoint of a step, and meet the other rank where that is set."""
        log_ms = self.setting.log_ms[self.rank] if place % self.setting.log_every == 0 else 0.0
        with in_range("log_metrics", log_ms):
            sleep_ms(log_ms)
        if self.setting.save_ms[self.rank] > 0:
            self.saver.save(self.setting.save_ms[self.rank], in_thread=self.setting.save_in_thread)
            if self.setting.save_joined:
                self.saver.finish()
        if self.setting.barrier:
            dist.barrier()

    def measure_held_out(self, seed: int) -> float:
        """Measure the loss on rows that no step has seen, the same on every rank and in every run of the seed."""
        generator = torch.Generator().manual_seed(1_000_003 + seed)
        rows, labels = make_rows((N_HELD_OUT,), self.setting.width, generator)
        with torch.no_grad():
            return float(self.measure_loss(self.model.module(rows), labels).item())


def read_delay_s() -> float:
    """Read how long this process's threads have been ready to run while no core was free, from the scheduler."""
    files = Path("/proc/self/task").glob("*/schedstat")  # time run, time waited (both ns), and turns
    return sum(int(file.read_text().split()[1]) for file in files) / 1e9


def record_run(plan: dict[str, Any], rank: int) -> dict[str, Any]:
    """Record one run of one configuration on this rank.

    Args:
        plan: as `record` writes it.
        rank: of this process.

    Returns:
        What the trace does not hold: losses, peak memory (bytes), the machine's load, who caused it, and how long this
        rank waited for a core (seconds).
    """
    setting, seed = parse_setting(plan["setting"]), plan["seed"]
    n_steps = plan["n_warmup"] + plan["n_recorded"]
    training = Training(setting, rank, n_steps, seed)
    load = os.getloadavg()[0]
    dist.barrier()
    start_s, own_s, machine_s = time.perf_counter(), read_own_busy_s(), read_machine_busy_s()
    delay_s = read_delay_s()
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=plan["n_warmup"], active=plan["n_recorded"], repeat=1),
        record_shapes=True,  # sizes of collectives, which gloo says nowhere else
    ) as profiler:
        losses = training.run(profiler)
    dist.barrier()
    seen = {
        "load": round(load, 2),
        "wall_s": round(time.perf_counter() - start_s, 3),
        "own_cpu_s": round(read_own_busy_s() - own_s, 3),
        "machine_cpu_s": round(read_machine_busy_s() - machine_s, 3),
        "delay_s": round(read_delay_s() - delay_s, 4),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BYTES_PER_KIB,
        "losses": losses[plan["n_warmup"] :],
        "held_out_loss": training.measure_held_out(seed),
        "dtype": str(next(training.model.parameters()).dtype).removeprefix("torch."),
    }
    profiler.export_chrome_trace(str(Path(plan["folder"]) / f"rank{rank}.json.gz"))
    return seen


def main(plan: dict[str, Any], rank: int) -> None:
    """Record the run of a plan, and write down what this rank saw."""
    torch.set_num_threads(1)
    if plan["realtime"]:  # threads that start later inherit it
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    dist.init_process_group("gloo", init_method=f"file://{plan['store']}", rank=rank, world_size=N_RANKS)
    seen = record_run(plan, rank)
    dist.barrier()  # both traces are written
    (Path(plan["folder"]) / f"seen-{rank}.json").write_text(json.dumps(seen))
    dist.destroy_process_group()


def start_rank(plan: dict[str, Any], rank: int) -> int:
    """Start the process of a rank, and return its id; what it says goes to a file in the plan's folder."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        with (Path(plan["folder"]) / f"said-{rank}.txt").open("w") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        main(plan, rank)
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:  # a child ends here, and never goes on with its parent's loop
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_plan(plan: dict[str, Any]) -> str:
    """Run the ranks of a plan, and return the last words of one that failed; empty where all went well."""
    ranks = {start_rank(plan, rank): rank for rank in range(N_RANKS)}
    end_s = time.monotonic() + RUN_LIMIT_S
    first = None
    while ranks:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process:
            rank = ranks.pop(process)
            first = rank if status and first is None else first
        else:
            time.sleep(0.05)
        if first is not None or time.monotonic() > end_s:  # its peer would wait for it
            for other in ranks:
                os.kill(other, signal.SIGKILL)
        if time.monotonic() > end_s and first is None:
            return "it did not end in time"
    return "" if first is None else (Path(plan["folder"]) / f"said-{first}.txt").read_text(errors="replace")[-1500:]


def serve() -> None:
    """Run every plan that comes in, a line each, and answer each with a line: a failure, or an empty text."""
    for line in sys.stdin:
        print(json.dumps(run_plan(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
