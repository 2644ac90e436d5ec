"""What a job is before it runs: its size, its names, its machine, and what is wrong with it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tests.jobs.machine import Physics
from tests.jobs.names import Dialect, draw_dialect

if TYPE_CHECKING:
    import random
    from collections.abc import Hashable

    from tests.jobs.program import Host
    from tests.jobs.writer import Writer

MS = 1_000_000
US = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job without anything wrong.

    Attributes:
        template: How its program is built: `train`, `fsdp`, `pipeline`, or `serve`.
        compute_ns: Kernels of one step, on every rank.
        pace: How far the host runs ahead: to the `step`'s own end, or to the end of the step before (`lag`).
        op_ns: Host time around a launch.
        buckets: How many all-reduces carry the gradients.
        last_bucket: How long the last of them takes, as a share of `compute_ns`.
        bus_gb_per_s: Bus bandwidth of the collectives.
        knobs: What causes switch.
    """

    seed: int
    template: str
    ranks: int
    steps: int
    layers: int
    compute_ns: int
    pace: str
    op_ns: int
    buckets: int
    last_bucket: float
    bus_gb_per_s: float
    dialect: Dialect
    physics: Physics
    tokens: int
    hidden: int
    first_step: int
    knobs: dict[str, Any] = field(default_factory=dict)

    def noise(self, *key: object) -> float:
        """Return a number from -1 to 1 that depends on the seed and the key alone."""
        return zlib.crc32(f"{self.seed}|{key}".encode()) / (1 << 31) - 1.0

    def jitter(self, ns: float, share: float, *key: object) -> int:
        return max(1, round(ns * (1.0 + share * self.noise(*key))))

    def knob(self, name: str, default: Any = None) -> Any:
        return self.knobs.get(name, default)

    def with_knobs(self, **knobs: Any) -> Plan:
        return replace(self, knobs=self.knobs | knobs)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a program: where causes may insert instructions, or a kernel is about to be launched."""

    place: str
    writer: Writer
    host: Host
    rank: int
    step: int
    layer: int


class Cause:
    """One thing that is wrong with a job: what it inserts, and what it switches.

    A job is built twice from the same plan, with the cause and without it; nothing that a cause draws may depend on
    which of the two is being built.

    Attributes:
        name: In the vocabulary of causes.
        templates: Programs that it can be put into.
        min_ranks: A smaller job cannot have it.
        statistic: Which figure its cost is: `median`, `mean`, `one_off` or `none`.
        shares: Costs that are drawn, as shares of the period.
        scalable: Its cost follows its strength, so that any share can be asked for.
        pairs: It may be drawn together with another cause.
        pace: The only pace of the host at which it shows.
        strength: What scales its cost; nanoseconds for most.
    """

    name = ""
    templates: tuple[str, ...] = ("train",)
    min_ranks = 1
    max_ranks = 8
    statistic = "median"
    shares = (0.06, 0.6)
    scalable = True
    pairs = True
    pace: str | None = None
    culprits: frozenset[int] | None = None
    stays = False
    """Something of it is there even without it: its methods are called, and look at `removed`."""

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        self.plan = plan
        self.rng = rng
        self.strength = 0.0
        self.removed = False

    @classmethod
    def fit(cls, plan: Plan) -> Plan:
        """Return the plan as this cause needs it: of the size and the pace at which it shows."""
        return plan if cls.pace is None else replace(plan, pace=cls.pace)

    def start(self, share: float) -> float:
        """Return a first guess of the strength that costs this share of the period."""
        return share / max(0.05, 1.0 - share) * self.plan.compute_ns

    def tune(self, plan: Plan) -> Plan:
        """Return the plan with this cause's switches thrown."""
        return plan

    def scale(self, spot: Spot) -> float:  # noqa: ARG002 (for those that have an opinion)
        """Return how many times longer a kernel of a pass (`place`) takes because of this cause."""
        return 1.0

    def at(self, spot: Spot) -> None:
        """Insert instructions at a place of the program."""

    def inside(self, host: Host, key: Hashable) -> None:
        """Insert instructions into the operator that issues a collective."""

    def threads(self, writer: Writer, rank: int) -> dict[str, Host]:  # noqa: ARG002 (for those that add some)
        """Return threads that this cause adds to a rank."""
        return {}

    def alternatives(self) -> list[dict[str, Any]]:
        """Return other ways to be without the cause, as switches; a cost between all of them is right."""
        return []


def draw_plan(rng: random.Random, template: str, min_ranks: int, max_ranks: int) -> Plan:
    """Draw a job without anything wrong."""
    ranks = rng.randint(min_ranks, max(min_ranks, min(max_ranks, rng.choice([1, 1, 2, 2, 3, 4, 4, 8]))))
    layers = rng.randint(4, 7)
    steps = rng.randint(6, 9)
    return Plan(
        seed=rng.getrandbits(32),
        template=template,
        ranks=ranks,
        steps=steps,
        layers=layers,
        compute_ns=round(70 * MS * 10 ** rng.uniform(-0.52, 0.48)),
        pace=rng.choice(["step", "lag"]),
        op_ns=round(rng.uniform(8, 25) * US),
        buckets=rng.randint(2, 4),
        last_bucket=rng.uniform(0.002, 0.006),
        bus_gb_per_s=rng.uniform(25, 220),
        dialect=draw_dialect(rng),
        physics=Physics(
            launch_ns=rng.randint(4500, 8500),
            gap_ns=rng.randint(600, 1600),
            event_ns=rng.randint(1000, 3500),
            return_ns=rng.randint(4000, 9000),
            floor_ns=rng.randint(2000, 4000),
        ),
        tokens=rng.choice([512, 1024, 2048, 4096]),
        hidden=rng.choice([768, 1024, 2048, 4096]),
        first_step=rng.choice([0, 3, 10, 205]),
    )
