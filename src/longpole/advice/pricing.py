"""What a cause costs: the median replayed period less the one without it, else what the ledger charges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longpole.digest.steady import real_units
from longpole.whatif.predict import measure_effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.scene import Scene
    from longpole.advice.suspect import Removal, Suspect


@dataclass(frozen=True, slots=True)
class Price:
    """What a suspect costs.

    Attributes:
        cost_ns: Per unit; 0 for what only marked units pay.
        statistic: `median`, `mean` or `one_off`.
        basis: `replay` or `ledger`.
        ceiling_ns: The most that its removal could buy per unit.
        weight_ns: What it costs on average over the recorded units, one-offs included: for the order of findings.
        otherwise_ns: What it costs if it is what the record cannot tell it from; None where that is told, or as much.
        share: The cost, of a one-off its mean, as a share of the median period; of the mean one where a mean is told.
    """

    cost_ns: int
    statistic: str
    basis: str
    ceiling_ns: int
    weight_ns: int
    share: float
    otherwise_ns: int | None = None


def price(scene: Scene, suspect: Suspect, given: Sequence[Removal] = ()) -> Price:
    """Return what a suspect costs.

    Args:
        scene: The run.
        suspect: What a rule saw.
        given: Changes that are taken as made already: what remains to be saved is the cost.
    """
    if suspect.once_ns is not None:
        n_units = max(len(scene.steady.completion), 1)
        mean_ns = suspect.once_ns // n_units
        return Price(0, "one_off", "ledger", mean_ns, mean_ns, mean_ns / _mean_ns(scene))
    saving = _saving(scene, suspect, given)
    ceiling_ns = suspect.ledger_ns if suspect.ceiling_ns is None else suspect.ceiling_ns
    if saving is None:
        own_ns = suspect.ledger_ns
        statistic = "mean" if own_ns else "median"  # what costs no time does so in every unit
        return Price(own_ns, statistic, "ledger", max(ceiling_ns, own_ns), own_ns, own_ns / scene.mean_period_ns)
    cost_ns, mean_ns = saving
    statistic = "median"
    # A stall in fewer than half of the units shows in no median; a hair's breadth in the median is no sign of one.
    if cost_ns * _HAIR < mean_ns and cost_ns < scene.settings.finding_min_share * scene.period_ns:
        cost_ns, statistic = mean_ns, "mean"
    period_ns = scene.mean_period_ns if statistic == "mean" else scene.period_ns
    weight_ns, otherwise_ns = max(cost_ns, mean_ns), _otherwise(scene, suspect, given, cost_ns, statistic)
    ceiling_ns = max(ceiling_ns, cost_ns, otherwise_ns or 0)
    return Price(cost_ns, statistic, "replay", ceiling_ns, weight_ns, cost_ns / period_ns, otherwise_ns)


def _otherwise(scene: Scene, suspect: Suspect, given: Sequence[Removal], cost_ns: int, statistic: str) -> int | None:
    """Return what a suspect costs if it is the other thing that it may be; None where it is none, or costs as much."""
    if not suspect.otherwise:
        return None
    saving = _saving(scene, replace(suspect, remove=suspect.otherwise), given)
    if saving is None:
        return None
    other_ns = saving[1 if statistic == "mean" else 0]
    return other_ns if abs(other_ns - cost_ns) > _ALIKE * max(cost_ns, other_ns) else None


_ALIKE = 0.05  # our choice: costs that differ by less are told as one


def _mean_ns(scene: Scene) -> int:
    """Return the mean length of the recorded units, marked ones included."""
    done = list(scene.steady.completion.values())
    starts = [scene.steady.at(d.rank, u.start_ns) for d in scene.digests for u in real_units(d.rows[0].units)[:1]]
    return max((done[-1] - min(starts)) // len(done), 1) if done and starts else scene.period_ns


_HAIR = 20  # our choice: a median saving below a twentieth of the mean one is jitter


def _saving(scene: Scene, suspect: Suspect, given: Sequence[Removal]) -> tuple[int, int] | None:
    """Return by how much the median and the mean of the periods fall, in ns; None where no replay can tell."""
    if scene.ground is None or not suspect.remove or scene.ground.replayed.why_refused:
        return None
    ground = scene.ground if suspect.cost is None else replace(scene.ground, cost=suspect.cost)
    effect = measure_effect(ground, [*given, *suspect.remove])
    if effect.refused:
        return None
    saving_ns, mean_ns = effect.saving_ns, effect.mean_saving_ns
    if given:
        already = measure_effect(ground, given)
        saving_ns, mean_ns = saving_ns - already.saving_ns, mean_ns - already.mean_saving_ns
    return max(saving_ns, 0), max(mean_ns, 0)
