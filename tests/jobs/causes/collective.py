"""Jobs whose collectives are late, slow, too many, or in each other's way."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.jobs.names import draw_dialect
from tests.jobs.pipeline import fit_pipeline
from tests.jobs.plan import US, Cause, Plan, Spot
from tests.jobs.writer import COMM

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tests.jobs.program import Host
    from tests.jobs.writer import Writer


class ManySmallCollectives(Cause):
    """Every parameter's gradient is reduced on its own (mini_trainer#71, DeepSpeed#3151)."""

    name = "many_small_collectives"
    min_ranks = 2
    max_ranks = 4
    shares = (0.08, 0.5)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.count = rng.randint(24, 40)
        self.kernel_ns = rng.uniform(12, 25) * US
        self.size = rng.choice([16, 64, 128]) * 1024

    @classmethod
    def fit(cls, plan: Plan) -> Plan:
        return replace(plan, steps=5, layers=4, compute_ns=plan.compute_ns // 6)

    def tune(self, plan: Plan) -> Plan:
        return plan.with_knobs(no_buckets=True)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place != "post_backward":
            return
        each = max(25 * US, self.strength / self.count)
        stays = 2 * writer.plan.physics.event_ns if writer.plan.knob("event_waits_stay") else 0
        for index in range(self.count):
            ns = self.plan.jitter(self.kernel_ns, 0.02, "small", rank, step, index)
            writer.operator(host, ["aten::div_"], [writer.kernel(writer.dialect.elementwise[1], ns + stays)])
            if not self.removed:
                self._reduce(writer, host, (step, index), each, self.size)
        if self.removed:
            self._reduce(writer, host, (step, "all"), each + self.count * self.size / 200, self.count * self.size)

    def _reduce(self, writer: Writer, host: Host, key: tuple[Any, ...], ns: float, size: int) -> None:
        writer.record(host, ("small", *key))
        moves = self.plan.jitter(ns, 0.03, "reduce", *key)
        writer.collective(host, "all_reduce", ("small", *key), moves, after=("small", *key), size=size, host_ns=4 * US)
        writer.wait(host, (("small", *key), "done"))

    def alternatives(self) -> list[dict[str, Any]]:
        return [{"event_waits_stay": True}]


class ExposedLastBucket(Cause):
    """The gradients of the first layers are reduced when nothing is left to hide it (pytorch#48880)."""

    name = "exposed_last_bucket"
    min_ranks = 2
    shares = (0.06, 0.35)
    stays = True

    def tune(self, plan: Plan) -> Plan:
        return plan.with_knobs(last_bucket=0.0 if self.removed else self.strength / plan.compute_ns)


class LateIssue(Cause):
    """Parameters are gathered only once the layer before has run (fairscale#623, pytorch#163153)."""

    name = "late_issue"
    templates = ("fsdp",)
    min_ranks = 2
    shares = (0.06, 0.15)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.phases = rng.choice(["forward", "forward", "forward backward"])
        self.family = rng.choice([1, 2])

    def start(self, share: float) -> float:
        passes = len(self.phases.split())
        return super().start(share) / (self.plan.layers - 1) / passes

    def tune(self, plan: Plan) -> Plan:
        return plan.with_knobs(
            gathers_wait=not self.removed,
            late=self.phases,
            family=self.family,
            gather=plan.knob("gather_ns", self.strength) / plan.compute_ns,
        )

    def alternatives(self) -> list[dict[str, Any]]:
        return [{"gather_ns": 1000.0}]


class HostSyncLimiter(Cause):
    """The host may issue a gather only once an older layer is freed, and then has work to do (pytorch#108234)."""

    name = "host_sync_limiter"
    templates = ("fsdp",)
    min_ranks = 2
    shares = (0.05, 0.25)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.family = rng.choice([1, 1, 2])

    def start(self, share: float) -> float:
        return share * self.plan.compute_ns

    def tune(self, plan: Plan) -> Plan:
        return plan.with_knobs(family=self.family)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step, layer = spot.place, spot.writer, spot.host, spot.rank, spot.step, spot.layer
        if place != "unshard" or layer == 0:
            return
        if not self.removed:
            if self.family == 1:
                host.open("FullyShardedDataParallel.rate_limiter", "user_annotation")
            host.sync(writer.runtime["event_sync"], event=("forward", step, layer - 1))
            if self.family == 1:
                host.close()
        host.work(self.plan.jitter(self.strength / (self.plan.layers - 1), 0.05, "limit", rank, step, layer))


class SlowLink(Cause):
    """One group of ranks moves the same bytes more slowly than its siblings (nccl-tests#106, nccl#325)."""

    name = "slow_link"
    templates = ("train", "train", "pipeline")
    min_ranks = 4
    shares = (0.06, 0.4)
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        if plan.template == "pipeline":
            first = rng.randrange(plan.ranks - 1)
            self.culprits = frozenset({first, first + 1})
            return
        half = plan.ranks // 2
        ranks = rng.sample(range(plan.ranks), plan.ranks)
        if rng.random() < 0.6:
            ranks = list(range(plan.ranks))
        self.groups = {"7": tuple(sorted(ranks[:half])), "8": tuple(sorted(ranks[half : 2 * half]))}
        self.slow = rng.choice(["7", "8"])
        self.culprits = frozenset(self.groups[self.slow])

    stays = True

    @classmethod
    def fit(cls, plan: Plan) -> Plan:
        return fit_pipeline(plan)

    def start(self, share: float) -> float:
        return super().start(share) / (4 if self.plan.template == "pipeline" else self.plan.layers)

    def tune(self, plan: Plan) -> Plan:
        if plan.template == "pipeline":
            assert self.culprits is not None
            extra = 0.0 if self.removed else self.strength
            return plan.with_knobs(slow_pair=tuple(sorted(self.culprits)), slow_pair_ns=extra)
        return plan.with_knobs(groups={"0": tuple(range(plan.ranks)), **self.groups})

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step, layer = spot.place, spot.writer, spot.host, spot.rank, spot.step, spot.layer
        if place != "forward" or self.plan.template == "pipeline":
            return
        writer.groups.update(self.groups)
        group = next((name for name, ranks in self.groups.items() if rank in ranks), None)
        if group is None:
            return
        base = 0.001 * self.plan.compute_ns
        extra = self.strength if group == self.slow and not self.removed else 0.0
        key = ("tensor parallel", step, layer, group)
        ns = self.plan.jitter(base + extra, 0.02, *key)
        size = writer.transfer_bytes("all_reduce", round(base), len(self.groups[group]))
        writer.record(host, ("partial", step, layer))
        stream = COMM + 2
        writer.collective(
            host, "all_reduce", key, ns, after=("partial", step, layer), stream=stream, group=group, size=size
        )
        writer.wait(host, (key, "done"))


class Protocol(Cause):
    """Large all-reduces run with the low-latency protocol (tokenspeed#1127, nccl#1453)."""

    name = "protocol"
    templates = ("serve",)
    min_ranks = 2
    max_ranks = 4
    shares = (0.15, 0.5)
    stays = True
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.rate = rng.uniform(60, 110)
        self.faster = rng.uniform(2.0, 3.0)

    @classmethod
    def fit(cls, plan: Plan) -> Plan:
        """Return the plan with an NCCL whose kernels' names say the protocol; RCCL's do not."""
        dialects = (draw_dialect(random.Random(plan.seed + more)) for more in itertools.count())
        dialect = next(one for one in dialects if one.vendor == "nvidia")
        return replace(plan, dialect=replace(dialect, nccl="2.19"))

    def tune(self, plan: Plan) -> Plan:
        factor = 2 * (plan.ranks - 1) / plan.ranks
        each = self.strength / plan.layers
        size = int(each * self.rate / factor) // 1024 * 1024
        ns = self.strength / (self.faster if self.removed else 1.0)
        return plan.with_knobs(reduces=1, reduce_share=ns / plan.compute_ns, reduce_bytes=size)


class CommunicatorSetup(Cause):
    """The first collective of a group creates its communicator, on the host (pytorch#135267, nccl#1487)."""

    name = "communicator_setup"
    min_ranks = 2
    statistic = "one_off"
    shares = (1.5, 12.0)
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.step = rng.choice([0, 0, 2])
        self.late_group = self.step > 0

    stays = True

    def start(self, share: float) -> float:
        return share * self.plan.compute_ns

    def tune(self, plan: Plan) -> Plan:
        every = tuple(range(plan.ranks))
        return plan.with_knobs(groups={"0": every, "3": every} if self.late_group else {"0": every})

    def at(self, spot: Spot) -> None:
        place, writer, host, step = spot.place, spot.writer, spot.host, spot.step
        if place == "post_backward" and self.late_group and step >= self.step:
            writer.groups["3"] = tuple(range(self.plan.ranks))
            key = ("norm", step)
            writer.record(host, key)
            ns = self.plan.jitter(22 * US, 0.05, *key)
            writer.collective(host, "all_reduce", key, ns, after=key, stream=COMM + 3, group="3", size=4)
            writer.wait(host, (key, "done"))

    def inside(self, host: Host, key: Hashable) -> None:
        first = ("norm", self.step) if self.late_group else ("bucket", 0, 0)
        if key == first and not self.removed:
            host.work(self.plan.jitter(self.strength, 0.005, "create", host.rank))


class Contention(Cause):
    """Kernels and collectives that overlap slow each other down."""

    name = "contention"
    min_ranks = 2
    max_ranks = 4
    shares = (0.056, 0.09)  # times 0.9 and more when calibrated: a long pole costs 5 % of the period
    stays = True
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.moving = rng.uniform(0.4, 1.0)

    def start(self, share: float) -> float:
        return share * 2.5

    def tune(self, plan: Plan) -> Plan:
        pace = None if self.removed else (1 + self.strength, 1 + self.strength * self.moving)
        # Slowed as they are, they stay hidden: no trace tells how long they would take alone.
        share = 0.4 * 0.63 / plan.buckets
        return plan.with_knobs(physics=replace(plan.physics, contention=pace), bucket=share)


class QueueOrder(Cause):
    """With one hardware queue, backward waits for all-reduces that it does not need (pytorch#143890, verl#6976)."""

    name = "queue_order"
    min_ranks = 2
    max_ranks = 4
    shares = (0.05, 0.18)
    stays = True
    pairs = False

    def start(self, share: float) -> float:
        return super().start(share) / max(1, self.plan.buckets - 1)

    def tune(self, plan: Plan) -> Plan:
        physics = replace(plan.physics, one_queue=not self.removed)
        return plan.with_knobs(physics=physics, bucket=self.strength / plan.compute_ns)


class EarlyReceive(Cause):
    """A receive that is posted early holds up the all-to-all behind it on its stream (torchtitan#2209)."""

    name = "queue_order"
    min_ranks = 2
    max_ranks = 2
    shares = (0.06, 0.3)
    stays = True
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.receiver = rng.randrange(2)
        self.layers = sorted(rng.sample(range(plan.layers), 2))

    def start(self, share: float) -> float:
        return super().start(share) / 2

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step, layer = spot.place, spot.writer, spot.host, spot.rank, spot.step, spot.layer
        if place != "forward" or layer not in self.layers:
            return
        routed = ("routed", step, layer)
        writer.record(host, routed)
        exchange = ("experts", step, layer)
        moves = self.plan.jitter(0.004 * self.plan.compute_ns, 0.02, *exchange)
        early = rank == self.receiver and not self.removed
        if early:
            self._hand_over(writer, host, step, layer)
        writer.collective(host, "all_to_all", exchange, moves, after=routed, stream=COMM + 2)
        if rank != self.receiver:
            # What is sent is made meanwhile, on a stream of its own.
            writer.wait(host, routed, 15)
            ns = self.plan.jitter(self.strength, 0.02, "chunk", step, layer)
            writer.operator(host, ["aten::bmm"], [writer.kernel(writer.dialect.gemms[0], ns, 15)])
            writer.record(host, ("chunk", step, layer), 15)
            self._hand_over(writer, host, step, layer)
        elif not early:
            self._hand_over(writer, host, step, layer)
        writer.wait(host, (exchange, "done"))

    def _hand_over(self, writer: Writer, host: Host, step: int, layer: int) -> None:
        key = ("activation", step, layer)
        ns = self.plan.jitter(0.002 * self.plan.compute_ns, 0.02, *key)
        sends = host.rank != self.receiver
        after = ("chunk", step, layer) if sends else None
        stream = COMM + 4 if sends else COMM + 2
        kind = "send" if sends else "recv"
        members = (1 - self.receiver, self.receiver)
        peer = members[1] if sends else members[0]
        writer.collective(host, kind, key, ns, after=after, stream=stream, members=members, peer=peer)


class ExtraCollective(Cause):
    """Every step has a collective that the job does not need: buffers are broadcast, gradients reduced twice."""

    name = "extra_collective"
    min_ranks = 2
    shares = (0.06, 0.3)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.kind = rng.choice(["broadcast", "again"])

    def at(self, spot: Spot) -> None:
        place, writer, host, step = spot.place, spot.writer, spot.host, spot.step
        if self.kind == "broadcast" and place == "pre_forward":
            self._collective(writer, host, "broadcast", step, 0, self.strength)
        elif self.kind == "again" and place == "post_backward":
            for bucket in range(self.plan.buckets):
                self._collective(writer, host, "all_reduce", step, bucket, self.strength / self.plan.buckets)

    def _collective(self, writer: Writer, host: Host, kind: str, step: int, index: int, ns: float) -> None:
        key = ("extra", step, index)
        writer.record(host, key)
        moves = max(20 * US, self.plan.jitter(ns, 0.02, *key))
        writer.collective(host, kind, key, moves, after=key)
        writer.wait(host, (key, "done"))
