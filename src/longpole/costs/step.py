"""How long a training step takes, and what of: computing, exposed communication, bubble, optimizer.

A stage's passes are its layers' operators (`operators.py`) with the messages that nothing hides (`step_traffic.py`);
the schedule of the pipeline is run (`schedules.py`); then come what is left of the gradients' reduction, and the
optimizer. The parts are those of the busiest stage, and add up to the step exactly.

    busiest stage   ├ F ┤├ F ┤├ B ┤├ F ┤├ B ┤   idle   ├ B ┤├ reduce ┤├ optimizer ┤
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.costs.calibration import Calibration
from longpole.costs.collective_bytes import step_messages
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.formula import Formula
from longpole.costs.memory_states import ELEMENT_BYTES, held_by_stage, optimizer_of
from longpole.costs.operators import (
    PassTime,
    embedding_operators,
    head_operators,
    layer_operators,
    predictor_operators,
    shard_of,
    time_of,
)
from longpole.costs.schedules import Times, estimate_seconds, step_seconds
from longpole.costs.step_traffic import DIMENSIONS, Prices, Software, StageTraffic, stage_traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.costs.architecture import Architecture
    from longpole.costs.cluster import Cluster
    from longpole.costs.layout import Layout, Recompute, Work
    from longpole.costs.memory_states import Held
    from longpole.costs.operators import Rates, Shard

OPTIMIZER_S: Final = Formula(
    "parameters*(gradient + 2*state + weight)/memory_bytes_per_s",
    "s",
    "bytes of each parameter that a device updates: the gradient is read, the optimizer's state, with the weight in 32"
    " bits, is read and written, and the weight in 16 bits is written",
)
STEP_S: Final = Formula(
    "compute + recompute + exposed + contention + bubble + optimizer",
    "s",
    "what the busiest stage spends a step on",
)
_ALIKE: Final = 1e-9  # of times that differ by rounding only
_ROUNDS_UNSETTLED: Final = 5  # of a micro-batch for every stage, until unequal parts have settled
WAITS_IN_ORDER: Final = ("gpipe", "1f1b", "interleaved")
"""Schedules whose last backward passes go from stage to stage, so that later stages reduce gradients meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """A step, split by what the busiest stage spends it on, in seconds.

    Attributes:
        compute_s: Forward and backward.
        recompute_s: What is computed again.
        exposed_s: By dimension, communication that nothing hides; only dimensions that there are.
        hidden_s: By dimension, communication beside computation; no part of the total.
        contention_s: What hidden communication slows computation by.
        bubble_s: Waiting for other stages.
        optimizer_s: The update.
        tokens: Of the step.
        micro_batches: Of the step, m.
        stage: The busiest, counted from 0.
        stages_s: Per stage, what one micro-batch keeps it busy, exposed communication included.
        spent_s: `compute_s` and `recompute_s` by what they run at: `matmul`, `attention`, `memory`, `launch`.
        calibration: What the constants are.
    """

    compute_s: float
    recompute_s: float
    exposed_s: Mapping[str, float]
    hidden_s: Mapping[str, float]
    contention_s: float
    bubble_s: float
    optimizer_s: float
    tokens: int
    micro_batches: int
    stage: int
    stages_s: tuple[float, ...]
    spent_s: Mapping[str, float]
    calibration: Calibration

    @property
    def parts_s(self) -> dict[str, float]:
        """The parts by name, a dimension's under `exposed_` and its name; they add up to `total_s`."""
        return {
            "compute": self.compute_s,
            "recompute": self.recompute_s,
            **{f"exposed_{dimension}": spent for dimension, spent in self.exposed_s.items()},
            "contention": self.contention_s,
            "bubble": self.bubble_s,
            "optimizer": self.optimizer_s,
        }

    @property
    def total_s(self) -> float:
        """The step: the sum of its parts."""
        return sum(self.parts_s.values())

    @property
    def tokens_per_s(self) -> float:
        """Tokens of a step over its time, of all devices together."""
        return self.tokens / self.total_s

    @property
    def limits(self) -> tuple[str, float]:
        """What the step spends most on, and its share: a kind of `spent_s`, or a part other than computing."""
        spent = {name: part for name, part in self.parts_s.items() if name not in ("compute", "recompute")}
        name, most = max({**self.spent_s, **spent}.items(), key=lambda item: item[1])
        return name, most / self.total_s


class _Stage(NamedTuple):
    """One device of the pipeline: what one micro-batch takes on it."""

    chunks: tuple[PassTime, ...]
    passes: PassTime
    traffic: StageTraffic
    forward_s: float
    backward_s: float


def step_time(
    model: Architecture,
    cluster: Cluster | CollectiveCosts,
    layout: Layout,
    work: Work,
    calibration: Calibration | None = None,
    software: Software | None = None,
) -> StepTime:
    """Return how long a step takes. The layout must divide (`layout.check`).

    *Definition:* `STEP_S`. *Assumes* devices that are all alike, experts that are all equally popular, input that is
    always there, and steps that follow each other. Expected deviation: decision 0034.

    Args:
        model: What is trained.
        cluster: On what; for many layouts of a cluster its costs of collectives, which are looked up once.
        layout: How it is divided.
        work: What a step processes.
        calibration: What the devices reach; None for the shipped constants.
        software: What the framework lets hide; None for what current ones do.

    Raises:
        UsageError: The device has no peak of this type, or a group needs a link that the cluster does not have.
    """
    return _step(model, cluster, layout, work, (calibration or Calibration(), software or Software()), step_seconds)


def estimate_step_time(
    model: Architecture,
    cluster: Cluster | CollectiveCosts,
    layout: Layout,
    work: Work,
    calibration: Calibration | None = None,
    software: Software | None = None,
) -> StepTime:
    """Return about how long a step takes: as `step_time`, but no schedule is simulated.

    For searches: many layouts are put in order by it, and a few of them are timed by `step_time`.

    Args, Raises:
        As `step_time`.
    """
    return _step(model, cluster, layout, work, (calibration or Calibration(), software or Software()), estimate_seconds)


def _step(
    model: Architecture,
    cluster: Cluster | CollectiveCosts,
    layout: Layout,
    work: Work,
    constants: tuple[Calibration, Software],
    seconds_of: Callable[..., float],
) -> StepTime:
    """Return a step's time, given what says how long a pipeline takes."""
    calibration, software = constants
    costs = cluster if isinstance(cluster, CollectiveCosts) else CollectiveCosts(cluster)
    device = costs.cluster.device
    calibration = calibration.on(device, flash=work.flash)
    rates = calibration.rates(device, work.dtype)
    prices = Prices(costs, layout, calibration)
    policies = work.recompute_layers or (work.recompute,)
    chunks = _chunks(model, shard_of(layout, work), layout.chunks(model.layers), policies, rates)
    stages = _stages(model, layout, work, software, prices, chunks)
    share = 0.5 if layout.schedule == "dualpipe" else 1.0
    m = work.micro_batches(layout)
    busy_s = [share * m * (stage.forward_s + stage.backward_s) for stage in stages]
    at = max(range(len(stages)), key=busy_s.__getitem__)
    period_s = _pipeline_s(layout, m, stages, seconds_of)
    optimizer_s = _optimizer_s(model, layout, work, software, rates)
    times = share * m
    passes, traffic = stages[at].passes, stages[at].traffic
    exposed_s, hidden_s = _told(times, traffic, *_tail(layout, stages))
    return StepTime(
        compute_s=times * (passes.forward_s + passes.backward_s),
        recompute_s=times * passes.recompute_s,
        exposed_s=exposed_s,
        hidden_s=hidden_s,
        contention_s=times * traffic.contention_s + traffic.contention_last_s,
        bubble_s=max(period_s - busy_s[at], 0.0),
        optimizer_s=optimizer_s,
        tokens=work.tokens,
        micro_batches=m,
        stage=at,
        stages_s=tuple(busy / m for busy in busy_s),
        spent_s={
            "matmul": times * passes.matmul_s,
            "attention": times * passes.attention_s,
            "memory": times * passes.memory_s,
            "launch": times * passes.launch_s,
        },
        calibration=calibration,
    )


@lru_cache(maxsize=4096)
def _chunks(
    model: Architecture, shard: Shard, counts: tuple[int, ...], policies: tuple[Recompute, ...], rates: Rates
) -> tuple[PassTime, ...]:
    """Return what each part of the model computes for one micro-batch, in the order of the layers.

    Args:
        model: Whose parts.
        shard: Shapes on one device.
        counts: Layers of each part.
        policies: What is computed again: of each layer, or one for all of them.
        rates: What the device reaches.
    """
    layers = [(model.has_experts(at), policies[at if len(policies) > 1 else 0]) for at in range(model.layers)]
    of_kind = {kind: time_of(layer_operators(model, shard, experts=kind[0]), rates, kind[1]) for kind in set(layers)}
    found = []
    start = 0
    for count in counts:
        total = PassTime()
        for kind, times in Counter(layers[start : start + count]).items():
            total = total.plus(of_kind[kind], times)
        found.append(total)
        start += count
    found[0] = found[0].plus(time_of(embedding_operators(model, shard), rates))
    found[-1] = found[-1].plus(_after_layers(model, shard, rates, of_kind[layers[-1]]))
    return tuple(found)


def _after_layers(model: Architecture, shard: Shard, rates: Rates, layer: PassTime) -> PassTime:
    """Return the head and the loss, and again for each further token that is predicted, with a layer of its own."""
    head = time_of(head_operators(model, shard), rates)
    found = head
    for _ in range(model.predicted_tokens):
        found = found.plus(head).plus(layer).plus(time_of(predictor_operators(model, shard), rates))
    return found


def _stages(
    model: Architecture,
    layout: Layout,
    work: Work,
    software: Software,
    prices: Prices,
    chunks: Sequence[PassTime],
) -> list[_Stage]:
    """Return what each device of the pipeline does for one micro-batch."""
    counts = layout.chunks(model.layers)
    known: dict[tuple[object, ...], tuple[PassTime, StageTraffic]] = {}
    found = []
    for at, owned in enumerate(_owned(layout.schedule, layout.pp, layout.vp)):
        own = tuple(chunks[chunk] for chunk in owned)
        # Inner stages of the same computation have the same messages.
        key = (own, at == 0, at == layout.pp - 1, 0 in owned, len(chunks) - 1 in owned)
        if key not in known:
            passes = own[0]
            for one in own[1:]:
                passes = passes.plus(one)
            messages = step_messages(model, layout, work, software.wiring, stage=at)
            if layout.schedule == "dualpipe":
                # Counted for each micro-batch, of which a device sees half in either of its stages; here for both.
                messages = [replace(one, per_micro_batch=2 * one.per_micro_batch) for one in messages]
            layers = sum(counts[chunk] for chunk in owned)
            known[key] = passes, stage_traffic(messages, prices, software, passes, layers)
        passes, traffic = known[key]
        found.append(
            _Stage(
                own,
                passes,
                traffic,
                passes.forward_s + traffic.forward_s,
                passes.backward_s + passes.recompute_s + traffic.backward_s,
            )
        )
    return found


@lru_cache(maxsize=1024)
def _owned(schedule: str, pp: int, vp: int) -> tuple[tuple[int, ...], ...]:
    """Return the parts of the model that each device has, by their place in the order of the layers."""
    if schedule == "dualpipe":
        return tuple((stage, pp - 1 - stage) for stage in range(pp))
    owned: list[list[int]] = [[] for _ in range(pp)]
    for chunk in range(pp * vp):
        lap, place = divmod(chunk, pp)
        owned[pp - 1 - place if schedule == "zbv" and lap % 2 else place].append(chunk)
    return tuple(tuple(chunks) for chunks in owned)


def _pipeline_s(
    layout: Layout, micro_batches: int, stages: Sequence[_Stage], seconds_of: Callable[..., float]
) -> float:
    """Return how long all passes of a step take, from the schedule."""
    if layout.pp == 1:
        return micro_batches * (stages[0].forward_s + stages[0].backward_s)
    times: dict[int, Times] = {}
    for owned, stage in zip(_owned(layout.schedule, layout.pp, layout.vp), stages, strict=True):
        share = 1.0 / len(owned)
        for chunk, passes in zip(owned, stage.chunks, strict=True):
            times[chunk] = Times(
                forward_s=passes.forward_s + stage.traffic.forward_s * share,
                backward_s=passes.backward_s + passes.recompute_s + stage.traffic.backward_s * share,
                weight_s=passes.weight_s,
            )
    schedule = layout.schedule
    if schedule in ("1f1b", "interleaved"):
        schedule = "interleaved" if layout.vp > 1 else "1f1b"
    in_order = [times[chunk] for chunk in sorted(times)]
    transfer_s = max(stage.traffic.transfer_s for stage in stages)
    simulated = min(micro_batches, _simulated(schedule, layout.pp, micro_batches, in_order))
    period_s = seconds_of(schedule, layout.pp, simulated, in_order, layout.vp, transfer_s)
    busiest_s = max(stage.forward_s + stage.backward_s for stage in stages)
    return period_s + (micro_batches - simulated) * busiest_s


def _simulated(schedule: str, pp: int, micro_batches: int, parts: Sequence[Times]) -> int:
    """Return how many micro-batches are simulated; each further one takes what it takes the busiest device.

    That is exact once the schedule has settled. It has at once where inner parts are alike and the last one, with the
    head, takes longest (tests/unit/costs/test_step.py compares with whole simulations); elsewhere a few rounds leave
    less than 1 %. Of gpipe and 1f1b `schedules.step_seconds` knows that itself; dualpipe has two flows.
    """
    if schedule in ("gpipe", "1f1b", "dualpipe"):
        return micro_batches
    first, last, inner = parts[0].forward_s, parts[-1].forward_s, parts[1:-1]
    alike = all(abs(one.forward_s - inner[0].forward_s) <= _ALIKE * one.forward_s for one in inner)
    settled = schedule == "interleaved" and alike and last >= first * (1 - _ALIKE)
    return (1 if settled else _ROUNDS_UNSETTLED) * pp + micro_batches % pp


def _optimizer_s(model: Architecture, layout: Layout, work: Work, software: Software, rates: Rates) -> float:
    """Return what the update takes on the stage that holds most: all stages wait for each other before it."""
    optimizer = optimizer_of(software.optimizer)
    own = max(updated_parameters(held, layout) for held in set(held_by_stage(model, layout)))
    return OPTIMIZER_S(
        parameters=own,
        gradient=work.gradient_bytes,
        state=optimizer.state_bytes(work.dtype),
        weight=ELEMENT_BYTES[work.dtype],
        memory_bytes_per_s=rates.memory_bytes_per_s,
    )


def updated_parameters(held: Held, layout: Layout) -> float:
    """Return how many of the parameters that a device holds it updates: from ZeRO stage 1 on, its share of them."""
    if not layout.zero:
        return held.total
    return held.dense / (layout.dp * layout.cp) + held.routed / layout.expert_dp


def _tail(layout: Layout, stages: Sequence[_Stage]) -> tuple[dict[str, float], dict[str, float]]:
    """Return by dimension what is sent once a step, exposed and hidden, on the stage that is last to be done.

    Stages that finish their last backward pass earlier reduce while the ones before them still compute.
    """
    waits = layout.schedule in WAITS_IN_ORDER
    slack_s = 0.0
    worst: tuple[float, StageTraffic, float] | None = None
    for stage in stages:
        late_s = sum(stage.traffic.last_s.values()) - slack_s
        if worst is None or late_s > worst[0]:
            worst = (late_s, stage.traffic, slack_s)
        slack_s += stage.backward_s / layout.vp if waits else 0.0
    assert worst is not None
    _, traffic, slack_s = worst
    exposed, hidden = dict(traffic.last_s), dict(traffic.hidden_last_s)
    for dimension, spent_s in exposed.items():
        saved_s = min(spent_s, slack_s)
        slack_s -= saved_s
        exposed[dimension] = spent_s - saved_s
        hidden[dimension] = hidden.get(dimension, 0.0) + saved_s
    return exposed, hidden


def _told(
    times: float, traffic: StageTraffic, last_s: Mapping[str, float], hidden_last_s: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return exposed and hidden communication of a step by dimension, in their order."""
    exposed: dict[str, float] = defaultdict(float)
    hidden: dict[str, float] = defaultdict(float)
    for dimension in DIMENSIONS:
        exposed[dimension] = times * traffic.exposed_s.get(dimension, 0.0) + last_s.get(dimension, 0.0)
        hidden[dimension] = times * traffic.hidden_s.get(dimension, 0.0) + hidden_last_s.get(dimension, 0.0)
    present = [dimension for dimension in DIMENSIONS if exposed[dimension] or hidden[dimension]]
    return {name: exposed[name] for name in present}, {name: hidden[name] for name in present}
