"""Jobs whose host holds them up: waits for the device, pauses, allocations, compilers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.jobs.plan import US, Cause, Plan, Spot
from tests.jobs.program import COMPUTE, Host, Task

if TYPE_CHECKING:
    import random

    from tests.jobs.writer import Writer

READ_OUTS = [
    ("aten::item", "aten::_local_scalar_dense"),
    ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"),
    ("aten::nonzero",),
    ("aten::to", "aten::_to_copy", "aten::copy_"),
]


def read_out(writer: Writer, host: Host, names: tuple[str, ...], *, blocking: bool) -> None:
    """Read a scalar back through operators of these names."""
    for name in names:
        host.open(name)
        host.work(writer.host_ns(host, 2500))
    copy = Task(writer.dialect.copy_name("dtoh", pinned=False), COMPUTE, 1800, "gpu_memcpy", {"bytes": 4})
    writer.launch(host, copy, call="copy")
    host.work(800)
    if blocking:
        host.sync(writer.runtime["stream_sync"], stream=COMPUTE)
    for _ in names:
        host.work(1200)
        host.close()


class HostSync(Cause):
    """The loss or the gradient's norm is read back once a step; then the queue is empty (torchtune#522)."""

    name = "host_sync"
    shares = (0.05, 0.18)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.place = rng.choice(["post_forward", "post_backward", "pre_optimizer"])
        self.names = rng.choice(READ_OUTS[:2])

    def start(self, share: float) -> float:
        return share * self.plan.compute_ns

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place == self.place:
            read_out(writer, host, self.names, blocking=not self.removed)
            host.work(self.plan.jitter(self.strength, 0.05, "after", rank, step))


class HostSyncMany(Cause):
    """A value is read back many times a step, after nearly every layer (style-based-gan-pytorch#50)."""

    name = "host_sync_many"
    shares = (0.05, 0.3)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.names = rng.choice(READ_OUTS)
        self.each = rng.randint(2, 3)

    def start(self, share: float) -> float:
        return max(0.0, share * self.plan.compute_ns - self.each * self.plan.layers * 30 * US)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step, layer = spot.place, spot.writer, spot.host, spot.rank, spot.step, spot.layer
        if place == "forward" or (place == "backward" and self.each == 3):
            for index in range(2 if place == "forward" else 1):
                read_out(writer, host, self.names, blocking=not self.removed)
                ns = self.strength / self.each / self.plan.layers
                host.work(self.plan.jitter(ns, 0.1, "after", rank, step, layer, place, index))


class ThreadContention(Cause):
    """Another thread holds the interpreter's lock while the queue runs dry (pytorch#77139, #180500)."""

    name = "thread_contention"
    shares = (0.05, 0.4)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.place = rng.choice(["forward", "post_forward", "begin"])
        if plan.ranks > 1 and rng.random() < 0.3:
            self.culprits = frozenset({rng.randrange(plan.ranks)})

    def at(self, spot: Spot) -> None:
        place, host, rank, step, layer = spot.place, spot.host, spot.rank, spot.step, spot.layer
        if self.culprits is not None and rank not in self.culprits:
            return
        if place == self.place and layer in (-1, 1):
            host.put(("busy", step))
            host.work(20 * US)
            if not self.removed:
                host.lock("interpreter")
                host.unlock("interpreter")

    def threads(self, writer: Writer, rank: int) -> dict[str, Host]:
        if self.culprits is not None and rank not in self.culprits:
            return {}
        name, chain = writer.dialect.other_thread
        host = Host(rank, name)
        for step in range(self.plan.steps):
            host.get(("busy", step))
            host.lock("interpreter")
            with writer.activity(host, chain):
                host.work(self.plan.jitter(self.strength, 0.05, "hold", rank, step))
            host.unlock("interpreter")
        return {name: host}


class GarbageCollection(Cause):
    """The job collects garbage itself, in every step or in every n-th (torchtitan#148)."""

    name = "gc"
    shares = (0.05, 0.4)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.every = rng.choice([1, 1, 3])
        self.statistic = "median" if self.every == 1 else "mean"
        self.place = rng.choice(["begin", "end", "post_forward"])
        if plan.ranks > 1 and rng.random() < 0.3:
            self.culprits = frozenset({rng.randrange(plan.ranks)})

    def start(self, share: float) -> float:
        return self.every * super().start(share)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place != self.place or step % self.every != self.every - 1:
            return
        if self.culprits is None or rank in self.culprits:
            with writer.activity(host, writer.dialect.collector):
                host.work(self.plan.jitter(self.strength, 0.08, "collect", rank, step))


class GcAndEmptyCache(Cause):
    """Garbage is collected and the allocator's cache emptied in every step (peft#2894, transformers#31372)."""

    name = "gc_and_empty_cache"
    shares = (0.08, 0.5)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.blocks = rng.randint(8, 20)
        self.collects = rng.uniform(0.3, 0.6)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step, layer = spot.place, spot.writer, spot.host, spot.rank, spot.step, spot.layer
        rest = self.strength * (1 - self.collects) / 2 / self.blocks
        if place == "end":
            with writer.activity(host, writer.dialect.collector):
                host.work(self.plan.jitter(self.strength * self.collects, 0.05, "collect", rank, step))
            with writer.activity(host, writer.dialect.empty_cache):
                host.sync(writer.runtime["free"], own_ns=rest)
                for index in range(self.blocks - 1):
                    host.work(3000)
                    host.call(writer.runtime["free"], self.plan.jitter(rest, 0.1, "free", rank, step, index))
        if place == "forward" and layer == 0 and step > 0:
            for index in range(self.blocks):
                host.open("aten::empty")
                host.work(4000)
                host.call(writer.runtime["malloc"], self.plan.jitter(rest, 0.1, "malloc", rank, step, index))
                host.work(2000)
                host.close()


class HostPauseRotating(Cause):
    """Automatic collection strikes the ranks at other times: every step another rank is silent (torchtitan#148)."""

    name = "host_pause_rotating"
    pace = "step"
    min_ranks = 3
    shares = (0.05, 0.45)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.order = rng.sample(range(plan.ranks), plan.ranks)
        self.place = rng.choice(["begin", "pre_forward", "post_forward"])
        self.culprits = frozenset(range(plan.ranks))

    def at(self, spot: Spot) -> None:
        place, host, rank, step = spot.place, spot.host, spot.rank, spot.step
        if place == self.place and self.order[step % self.plan.ranks] == rank:
            host.work(self.plan.jitter(self.strength, 0.08, "pause", step))


class AllocatorRetries(Cause):
    """The device's memory is full: the allocator frees what it had cached, waits, and allocates anew."""

    name = "allocator_retries"
    shares = (0.08, 0.45)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.blocks = rng.randint(5, 14)
        self.layer = rng.randrange(1, plan.layers - 1)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step, layer = spot.place, spot.writer, spot.host, spot.rank, spot.step, spot.layer
        if place != "forward" or layer != self.layer:
            return
        each = self.strength / (2 * self.blocks + 1)
        host.open("aten::empty_like")
        host.work(3000)
        host.open("aten::empty_strided")
        host.work(3000)
        host.call(writer.runtime["malloc"], min(each, 90 * US))
        host.sync(writer.runtime["free"], own_ns=each)
        for index in range(self.blocks - 1):
            host.work(2000)
            host.call(writer.runtime["free"], self.plan.jitter(each, 0.1, "free", rank, step, index))
        for index in range(self.blocks):
            host.work(2000)
            host.call(writer.runtime["malloc"], self.plan.jitter(each, 0.1, "malloc", rank, step, index))
        host.close()
        host.work(1000)
        host.close()


TRIALS = [
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int, int)",
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(cudnn::winograd_nonfused::Params)",
    "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4",
    "void fft2d_r2c_32x32<float, false, 1u, false>(float2*, float const*, int, int)",
    "void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, false, float>(cudnnTensorStruct)",
    "cutlass_tensorop_s1688fprop_optimized_tf32_256x128_16x4_nhwc_align4",
]


class PerShapeSearch(Cause):
    """With benchmark mode on, each new size of input starts a search for the fastest algorithm (pytorch#2759)."""

    name = "per_shape_search"
    statistic = "one_off"
    shares = (1.0, 8.0)
    stays = True
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        new = sorted(rng.sample(range(1, plan.steps), rng.randint(2, 3)))
        self.new = [0, *new] if rng.random() < 0.5 else new
        self.sizes: list[int] = []
        size = 224
        for step in range(plan.steps):
            if step in new:
                size = 224 + 32 * (new.index(step) + 1)
                self.sizes.append(size)
            else:
                self.sizes.append(rng.choice([*self.sizes, size]) if self.sizes else size)
        self.calls = rng.choice([("aten::cudnn_convolution",), ("aten::miopen_convolution",)])
        if plan.dialect.vendor != "amd":
            self.calls = ("aten::cudnn_convolution",)

    def start(self, share: float) -> float:
        return share * self.plan.compute_ns

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place != "pre_forward":
            return
        size = self.sizes[step]
        host.open("aten::conv2d", "cpu_op", {"Input Dims": [[32, 3, size, size], [64, 3, 7, 7], [64]]})
        host.work(writer.host_ns(host, 5000))
        host.open("aten::_convolution")
        host.work(3000)
        host.open(self.calls[0], "cpu_op", {"Input Dims": [[32, 3, size, size], [64, 3, 7, 7]]})
        host.work(5000)
        if step in self.new and not self.removed:
            self._search(writer, host, step)
        ns = self.plan.jitter(0.01 * self.plan.compute_ns, 0.01, "conv", rank, step)
        writer.launch(host, writer.kernel(TRIALS[2], ns))
        for _ in range(3):
            host.work(2000)
            host.close()

    def _search(self, writer: Writer, host: Host, step: int) -> None:
        each = self.strength / len(TRIALS)
        for index, name in enumerate(TRIALS):
            host.call(writer.runtime["malloc"], self.plan.jitter(each * 0.25, 0.2, "workspace", step, index))
            host.work(20 * US)
            ns = self.plan.jitter(each * 0.5, 0.3, "trial", step, index)
            writer.launch(host, writer.kernel(name, ns))
            host.sync(writer.runtime["event_sync"] if index % 2 else writer.runtime["device_sync"])
            host.work(10 * US)
            host.sync(writer.runtime["free"], own_ns=each * 0.2)


COMPILERS = [
    (
        ("python_function", "torch/_dynamo/convert_frame.py(1182): __call__"),
        ("python_function", "torch/_dynamo/convert_frame.py(715): _compile"),
        ("python_function", "torch/_inductor/compile_fx.py(1550): compile_fx"),
    ),
    (
        ("user_annotation", "_compile.compile_inner (dynamo_timed)"),
        ("user_annotation", "OutputGraph.call_user_compiler (dynamo_timed)"),
        ("user_annotation", "compile_fx.<locals>.fw_compiler_base (dynamo_timed)"),
    ),
    (("user_annotation", "_compile.compile_inner (dynamo_timed)"),),
    (
        ("python_function", "torch/_dynamo/eval_frame.py(465): _fn"),
        ("python_function", "torch/_dynamo/convert_frame.py(715): _compile"),
    ),
]


class Recompilation(Cause):
    """Shapes or values that were taken for constant change: a graph is compiled again (pytorch#188150)."""

    name = "recompilation"
    statistic = "one_off"
    shares = (1.0, 10.0)
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.again = sorted(rng.sample(range(1, plan.steps), rng.randint(1, 3)))
        self.chain = rng.choice([one for one in COMPILERS if plan.dialect.stacks or one[0][0] != "python_function"])

    def start(self, share: float) -> float:
        return share * self.plan.compute_ns

    def at(self, spot: Spot) -> None:
        place, writer, host, step = spot.place, spot.writer, spot.host, spot.step
        if place != "pre_forward" or step not in self.again:
            return
        host.open("TorchDynamo Cache Lookup")
        host.work(30 * US)
        host.close()
        with writer.activity(host, self.chain):
            ns = self.plan.jitter(self.strength, 0.2, "compile", step)
            host.work(ns)
