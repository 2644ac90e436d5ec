"""Jobs that wait for what they write, or for state that they keep elsewhere, or that have only just begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.jobs.plan import US, Cause, Plan, Spot
from tests.jobs.program import Host, Task

if TYPE_CHECKING:
    import random

    from tests.jobs.names import Chain
    from tests.jobs.writer import Writer

STAGING: list[Chain] = [
    (("python_function", "torch/distributed/checkpoint/staging.py(238): stage"),),
    (("python_function", "torch/distributed/checkpoint/state_dict_saver.py(290): stage_state_dict"),),
    (("user_annotation", "checkpoint_staging"),),
]
STAGING_WAITS: list[Chain] = [
    (("python_function", "torchtitan/components/checkpoint.py(640): maybe_wait_for_staging"),),
    (("user_annotation", "wait_for_checkpoint_staging"),),
    (("user_annotation", "checkpoint.wait_for_staging"),),
]
OFFLOADS: list[Chain] = [
    (("user_annotation", "cpu_offload"),),
    (("python_function", "torch/autograd/graph.py(312): pack_to_cpu"),),
    (("python_function", "torchtune/training/_activation_offloading.py(183): offload_tensor"),),
    (("user_annotation", "activation_offloading"),),
    (("python_function", "megatron/core/extensions/cpu_offload.py(190): bulk_offload_group"),),
]
ONLOADS: list[Chain] = [
    (("user_annotation", "onload_activations"),),
    (("python_function", "torch/autograd/graph.py(324): unpack_from_cpu"),),
    (("python_function", "torchtune/training/_activation_offloading.py(254): onload_tensor"),),
    (("user_annotation", "activation_reload (offloaded)"),),
    (("python_function", "megatron/core/extensions/cpu_offload.py(231): bulk_reload_group"),),
]
ARTIFACTS: list[Chain] = [
    (("user_annotation", "load_model"),),
    (("python_function", "transformers/modeling_utils.py(4421): from_pretrained"),),
    (
        ("python_function", "vllm/model_executor/model_loader/loader.py(402): load_model"),
        ("user_annotation", "load_weights"),
    ),
    (("python_function", "safetensors/torch.py(381): load_file"),),
    (("user_annotation", "load_checkpoint"),),
    (("python_function", "torch/serialization.py(1319): load"),),
    (("user_annotation", "deserialize_engine"),),
]


def choose(rng: random.Random, plan: Plan, chains: list[Chain]) -> Chain:
    """Draw a chain whose names are recorded in this job."""
    return rng.choice([one for one in chains if plan.dialect.stacks or one[0][0] != "python_function"])


class CheckpointOnOneRank(Cause):
    """One rank saves alone, the others wait for it in the next collective (torchtune#2093, accelerate#157)."""

    name = "checkpoint_on_one_rank"
    statistic = "mean"
    min_ranks = 2
    shares = (0.06, 0.6)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.culprits = frozenset({rng.randrange(plan.ranks) if rng.random() < 0.5 else 0})
        self.steps = frozenset(rng.sample(range(1, plan.steps - 1), rng.choice([1, 1, 2])))
        self.place = rng.choice(["begin", "end"])

    def start(self, share: float) -> float:
        return super().start(share) * (self.plan.steps - 1) / len(self.steps)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place != self.place or step not in self.steps:
            return
        if self.culprits is None or rank in self.culprits:
            with writer.activity(host, writer.dialect.checkpoint):
                copies = 2 if self.culprits is None else 1
                for index in range(copies):
                    ns = self.plan.jitter(0.1 * self.strength, 0.05, "state", rank, step, index)
                    size = int(ns * 10)
                    name = writer.dialect.copy_name("dtoh", pinned=False)
                    writer.launch(host, Task(name, 7, ns, "gpu_memcpy", {"bytes": size}), call="copy", blocking=True)
                    host.work(30 * US)
                host.work(self.plan.jitter(self.strength * (1 - 0.1 * copies), 0.03, "write", rank, step))


class CheckpointBlocking(CheckpointOnOneRank):
    """All ranks write their shards in the training loop, and wait until they are written (titan#1287)."""

    name = "checkpoint_blocking"
    min_ranks = 1

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.culprits = None


class CheckpointStaging(Cause):
    """The copies of an asynchronous save are not done when the optimizer wants to go on (torchtitan#1287)."""

    name = "checkpoint_staging"
    statistic = "mean"
    shares = (0.06, 0.35)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.step = rng.randrange(1, plan.steps - 2)
        self.stage = choose(rng, plan, STAGING)
        self.wait = choose(rng, plan, STAGING_WAITS)
        self.copies = rng.randint(6, 12)

    def start(self, share: float) -> float:
        return self.plan.compute_ns * 0.9 + super().start(share) * (self.plan.steps - 1)

    def at(self, spot: Spot) -> None:
        place, writer, host, step = spot.place, spot.writer, spot.host, spot.step
        if place == "end" and step == self.step:
            host.open("async_save", "user_annotation")
            host.work(80 * US)
            writer.record(host, "state is final")
            host.put("stage")
            host.close()
        if place == "pre_optimizer" and step == self.step + 1:
            with writer.activity(host, self.wait):
                host.get("staged")

    def threads(self, writer: Writer, rank: int) -> dict[str, Host]:
        host = Host(rank, "async_checkpoint")
        host.get("stage")
        with writer.activity(host, self.stage):
            writer.wait(host, "state is final", 40)
            for index in range(self.copies):
                ns = 1000 if self.removed else self.plan.jitter(self.strength / self.copies, 0.05, "stage", rank, index)
                name = writer.dialect.copy_name("dtoh")
                host.open("aten::copy_")
                host.work(6 * US)
                writer.launch(host, Task(name, 40, ns, "gpu_memcpy", {"bytes": ns * 12}), call="copy")
                host.work(2 * US)
                host.close()
            host.sync(writer.runtime["stream_sync"], stream=40)
        host.put("staged")
        return {"async_checkpoint": host}


class Logging(Cause):
    """Metrics are written in the training loop, on the first rank or on all (wandb, TensorBoard, print)."""

    name = "logging"
    shares = (0.05, 0.4)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.every = rng.choice([1, 1, 3])
        self.statistic = "median" if self.every == 1 else "mean"
        self.place = rng.choice(["end", "post_forward"])
        if plan.ranks > 1 and rng.random() < 0.7:
            self.culprits = frozenset({rng.choice([0, 0, plan.ranks - 1])})

    def start(self, share: float) -> float:
        return self.every * super().start(share)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place != self.place or step % self.every != self.every - 1:
            return
        if self.culprits is None or rank in self.culprits:
            with writer.activity(host, writer.dialect.logger):
                host.work(self.plan.jitter(self.strength, 0.08, "log", rank, step))


class OffloadExposed(Cause):
    """Activations go to the host's memory and come back too slowly for the backward pass (torchtune, Megatron)."""

    name = "offload_exposed"
    shares = (0.06, 0.4)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        pick = rng.choice(
            [place for place, one in enumerate(OFFLOADS) if plan.dialect.stacks or one[0][0] != "python_function"]
        )
        self.out, self.back = OFFLOADS[pick], ONLOADS[pick]

    def start(self, share: float) -> float:
        return 0.63 * self.plan.compute_ns + super().start(share)

    def _copy(self, writer: Writer, host: Host, step: int, layer: int, direction: str, stream: int) -> None:
        share = 1.0 if direction == "htod" else 0.3
        ns = self.plan.jitter(
            self.strength * share / self.plan.layers, 0.02, "offload", host.rank, step, layer, direction
        )
        ns = 1000 if self.removed else max(1000, ns)
        writer.launch(
            host, Task(writer.dialect.copy_name(direction), stream, ns, "gpu_memcpy", {"bytes": ns * 20}), call="copy"
        )

    def at(self, spot: Spot) -> None:
        place, writer, host, step, layer = spot.place, spot.writer, spot.host, spot.step, spot.layer
        if place == "forward" and layer > 0:
            with writer.activity(host, self.out):
                writer.record(host, ("activations", step, layer - 1))
                writer.wait(host, ("activations", step, layer - 1), 30)
                self._copy(writer, host, step, layer - 1, "dtoh", 30)
        elif place == "backward" and layer < self.plan.layers - 1:
            with writer.activity(host, self.back):
                self._copy(writer, host, step, layer, "htod", 31)
                writer.record(host, ("back", step, layer), 31)
            writer.wait(host, ("back", step, layer))


class ColdStart(Cause):
    """The first step loads what the others find: weights, an engine (vLLM, Transformers)."""

    name = "cold_start"
    templates = ("serve", "train")
    statistic = "one_off"
    shares = (2.0, 15.0)
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.chain = choose(rng, plan, ARTIFACTS)
        self.copies = rng.randint(4, 10)

    def start(self, share: float) -> float:
        return share * self.plan.compute_ns

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place != "begin" or step != 0:
            return
        with writer.activity(host, self.chain):
            for index in range(self.copies):
                host.work(self.plan.jitter(0.7 * self.strength / self.copies, 0.1, "read", rank, index))
                ns = max(30 * US, self.plan.jitter(0.3 * self.strength / self.copies, 0.1, "upload", rank, index))
                name = writer.dialect.copy_name("htod", pinned=False)
                host.open("aten::copy_")
                host.work(5 * US)
                writer.launch(host, Task(name, 7, ns, "gpu_memcpy", {"bytes": ns * 6}), call="copy", blocking=True)
                host.close()


class Backpressure(Cause):
    """Results are written more slowly than they are made: the queue is full, and the loop waits for room."""

    name = "backpressure"
    templates = ("serve", "train")
    max_ranks = 2
    shares = (0.06, 0.45)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.room = rng.choice([1, 2])
        sinks: list[Chain] = [
            (("python_function", "storage/writer.py(71): write_records"),),
            (("python_function", "pyarrow/parquet/core.py(1120): write_table"),),
            (("user_annotation", "write_results"),),
        ]
        self.sink = choose(rng, plan, sinks)

    def start(self, share: float) -> float:
        return self.plan.compute_ns / max(0.05, 1 - share)

    def at(self, spot: Spot) -> None:
        place, writer, host, step = spot.place, spot.writer, spot.host, spot.step
        if place != "end":
            return
        host.put(("item", step))
        if step >= self.room and not self.removed:
            with writer.activity(host, writer.dialect.writer):
                host.get(("drained", step - self.room))

    def threads(self, writer: Writer, rank: int) -> dict[str, Host]:
        host = Host(rank, "output_writer")
        for step in range(self.plan.steps):
            host.get(("item", step))
            with writer.activity(host, self.sink):
                host.work(self.plan.jitter(self.strength, 0.02, "drain", rank, step))
            host.put(("drained", step))
        return {"output_writer": host}
