"""Which changes of the catalogue are worth trying on a run, and what each would bring (DESIGN 3.11).

Every change is replayed alone, and those that do not exclude each other are replayed together: savings overlap, so
their sum is no prediction.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.advice.catalogue import conflicts_of, load_catalogue
from longpole.advice.figures import compute_figures, run_view, steady_ledgers
from longpole.advice.fillings import fill, fillings_of
from longpole.advice.judge import APPLIES, judge
from longpole.errors import UsageError
from longpole.records.findings import CandidateEntry
from longpole.records.ledger import Unknown
from longpole.whatif.change import parse_change
from longpole.whatif.pairs import kind_of, spread_of
from longpole.whatif.replay import median_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.catalogue import Row
    from longpole.advice.figures import Figures, RunView, Value
    from longpole.advice.judge import Judgement
    from longpole.advice.scene import Scene
    from longpole.records.findings import CauseFinding
    from longpole.whatif.change import Change
    from longpole.whatif.predict import Effect, Replayable

_EFFORTS: Final = ("low", "medium", "high")
_HAIR: Final = 20  # our choice: a median saving below a twentieth of the mean one is jitter
_ONCE: Final = "only marked units pay for it, once, and the replay covers the steady ones"
_OF_SOME_UNITS: Final = "in the mean: only some units are concerned, and the median unit is none of them"


@dataclass(frozen=True, slots=True)
class Gain:
    """What the replay predicts of one candidate.

    Attributes:
        changes: What was replayed; empty where nothing could be.
        period_ns: The period with the changes, or why it is not known.
        saving_ns: By how much it is shorter; negative where it is longer.
        base_ns: The replayed period without the changes.
        of_some_units: Periods are means: the median unit is not concerned.
        of_finding: The finding whose cost it is, where the change as it is written could not be replayed.
    """

    changes: list[Change]
    period_ns: int | Unknown
    saving_ns: int = 0
    base_ns: int = 0
    of_some_units: bool = False
    of_finding: str = ""

    @property
    def share(self) -> float | Unknown:
        """The saving as a share of the period."""
        if isinstance(self.period_ns, Unknown):
            return self.period_ns
        return self.saving_ns / self.base_ns if self.base_ns else 0.0


@dataclass(slots=True)
class Together:
    """The candidates that do not exclude each other, and what they bring at once.

    Attributes:
        ids: The candidates, the most gainful first.
        changes: Their changes, in that order.
        sum_ns: Sum of their single savings.
        saving_ns: What all of them bring together, or why it is not known; replays overlap, so it differs from the sum.
        left_out: Candidates with a gain that one of `ids` excludes, or that change nothing else.
    """

    ids: list[str]
    changes: list[Change]
    sum_ns: int
    saving_ns: int | Unknown
    left_out: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Proposal:
    """What is worth trying on a run.

    Attributes:
        entries: The candidates, ranked: by predicted gain, then without a prediction by ceiling, then what gains
            nothing, then what only records.
        judgements: Whether each row of the catalogue applies, by id.
        together: None where fewer than two candidates gain anything.
        figures: What the conditions looked at.
    """

    entries: list[CandidateEntry]
    judgements: dict[str, Judgement]
    together: Together | None
    figures: dict[str, Value]


def candidates_of(
    scene: Scene, findings: Sequence[CauseFinding], why_no_ground: Unknown, paths: Sequence[str] = ()
) -> list[CandidateEntry]:
    """Return the candidates of the shipped catalogue for a run that was diagnosed, as a report stores them.

    Args:
        scene: The run as rules see it.
        findings: The causes found.
        why_no_ground: Why there is no replay, where there is none.
        paths: The traces, for commands that can be typed.
    """
    return propose(load_catalogue(), run_view(scene, findings), scene.ground or why_no_ground, paths).entries


def propose(rows: Sequence[Row], view: RunView, ground: Replayable | Unknown, paths: Sequence[str] = ()) -> Proposal:
    """Find the changes that apply to a run, predict each alone and all together, and rank them.

    Args:
        rows: The catalogue.
        view: The run.
        ground: Its unchanged replay, on which changes can be tried, or why there is none.
        paths: The traces, for commands that can be typed.
    """
    figures = compute_figures(view)
    judgements = {row.id: judge(row, figures, view.findings or []) for row in rows}
    applying = [judgement for judgement in judgements.values() if judgement.verdict == APPLIES]
    fillings = fillings_of(view)
    gains = {j.row.id: _gain(j, fillings, ground) for j in applying}
    on_cpu = not figures["run.on_device"]
    period_ns = _period_ns(figures, view)
    made = [
        (j.row, gains[j.row.id], _entry(j, gains[j.row.id], _ceiling_ns(j, figures, period_ns), on_cpu=on_cpu))
        for j in applying
    ]
    made.sort(key=lambda one: _rank(*one))
    for _, gain, entry in made:
        entry.changes = [change.to_text() for change in gain.changes]
        entry.command = _command(paths, entry.changes) if gain.changes else ""
    together = _together(rows, [(row, gain) for row, gain, _ in made], ground)
    return Proposal([entry for _, _, entry in made], judgements, together, figures)


def _gain(judgement: Judgement, fillings: dict[str, str | Unknown], ground: Replayable | Unknown) -> Gain:
    """Replay a row's change alone."""
    changes = _changes(judgement, fillings)
    if isinstance(changes, Unknown):
        # A row that never changes anything says why itself.
        is_once = bool(judgement.row.change) and _only_paid_once(judgement)
        return Gain([], Unknown(_ONCE) if is_once else changes)
    if isinstance(ground, Unknown):
        return Gain(changes, ground)
    if ground.why_refused:
        return Gain(changes, Unknown(f"the replay is refused: {ground.why_refused}"))
    if _only_paid_once(judgement):
        return Gain(changes, Unknown(_ONCE))
    found = _measured(changes, ground.effect(changes), ground)
    if not isinstance(found.period_ns, Unknown):
        return found
    return _of_findings(judgement, changes, ground) or found


def _only_paid_once(judgement: Judgement) -> bool:
    """Tell whether a row rests on one-offs alone: what its change finds in steady units is then something else."""
    steady = judgement.wanted and all(check.holds for check in judgement.wanted)
    return bool(judgement.findings) and all(found.once for found in judgement.findings) and not steady


def _of_findings(judgement: Judgement, changes: list[Change], ground: Replayable) -> Gain | None:
    """Take what a replayed finding costs for what a row saves that removes its cause; None without such a finding."""
    costs = [found for found in _removed(judgement) if found.basis == "replay" and found.cost_ns_per_unit > 0]
    if not costs:
        return None
    found = max(costs, key=lambda found: found.cost_ns_per_unit)
    of_some = found.cost_statistic == "mean"
    replayed_ns = ground.replayed_ns
    base_ns = round(float(replayed_ns.mean())) if of_some else median_ns(replayed_ns)
    saving_ns = min(found.cost_ns_per_unit, base_ns)
    return Gain(changes, base_ns - saving_ns, saving_ns, base_ns, of_some_units=of_some, of_finding=found.id)


def _measured(changes: list[Change], effect: Effect, ground: Replayable) -> Gain:
    if effect.refused:
        return Gain(changes, Unknown(f"refused: {effect.refused}"))
    base_ns = median_ns(ground.replayed_ns)
    if abs(effect.saving_ns) * _HAIR < abs(effect.mean_saving_ns):
        mean_ns = round(float(ground.replayed_ns.mean()))
        return Gain(changes, mean_ns - effect.mean_saving_ns, effect.mean_saving_ns, mean_ns, of_some_units=True)
    return Gain(changes, base_ns - effect.saving_ns, effect.saving_ns, base_ns)


def _changes(judgement: Judgement, fillings: dict[str, str | Unknown]) -> list[Change] | Unknown:
    """Return what is to be replayed for a row, or why nothing can be."""
    row = judgement.row
    texts = list(dict.fromkeys(text for found in _removed(judgement) for text in found.what_if))
    if texts:
        return [parse_change(text) for text in texts]
    if not row.change:
        return Unknown(row.no_change)
    changes = []
    for text in row.change:
        filled = fill(text, fillings)
        if isinstance(filled, Unknown):
            return filled
        try:
            changes.append(parse_change(filled))
        except UsageError as error:
            return Unknown(f"the change cannot be written for this run: {error}")
    return changes


def _removed(judgement: Judgement) -> list[CauseFinding]:
    """Return the findings whose causes a row removes altogether."""
    return [found for found in judgement.findings if found.cause in judgement.row.of_finding]


def _period_ns(figures: Figures, view: RunView) -> int:
    period_ns = figures["unit.period_ns"]
    if isinstance(period_ns, int):
        return period_ns
    walls = [ledger.wall_ns for ledger in steady_ledgers(view)]
    return sum(walls) // max(len(walls), 1)


def _ceiling_ns(judgement: Judgement, figures: Figures, period_ns: int) -> int | Unknown:
    """Return the most that a row could save per unit: what its part is charged, or what its findings could save."""
    sort, _, name = judgement.row.part.partition(":")
    figure = {"idle": f"idle.{name}", "stage": f"stage.{name}_share"}.get(sort, f"{sort}.exposed_share")
    share = figures[figure]
    charged_ns = round(share * period_ns) if isinstance(share, float | int) else 0
    most_ns = max([charged_ns, *(found.ceiling_ns for found in judgement.findings)])
    return most_ns or Unknown(f"the ledger charges nothing to {judgement.row.part} in the steady units")


def _entry(judgement: Judgement, gain: Gain, ceiling_ns: int | Unknown, *, on_cpu: bool) -> CandidateEntry:
    row = judgement.row
    assumes = list(row.assumes) if gain.changes else []
    if gain.of_some_units:
        assumes.append(_OF_SOME_UNITS)
    if gain.of_finding:
        assumes.append(
            f"the cause is gone altogether: the saving is what {gain.of_finding} costs, for the change as it is"
            " written cannot be replayed"
        )
    if row.buys == "memory":
        assumes.append("it buys memory, and pays with time")
    return CandidateEntry(
        id=row.id,
        object=row.object,
        stage=row.stage,
        says=row.says,
        because=judgement.because(),
        findings=[found.id for found in judgement.findings],
        predicted_period_ns=gain.period_ns,
        predicted_gain_share=gain.share,
        ceiling_ns=max(ceiling_ns, gain.saving_ns) if isinstance(ceiling_ns, int) else gain.saving_ns or ceiling_ns,
        error_share=_error_share(gain, on_cpu=on_cpu),
        effort=row.effort,
        costs=list(row.costs),
        must_record=list(row.must_record),
        missing=judgement.missing,
        proved_by=list(row.proved_by),
        cannot_replace=row.cannot_replace,
        assumptions=assumes,
        part=row.part,
        refused=gain.period_ns.unknown if isinstance(gain.period_ns, Unknown) else "",
        references=list(row.references),
        check_with=list(row.check_with),
    )


def _error_share(gain: Gain, *, on_cpu: bool) -> float | Unknown:
    """Return how far nine in ten predictions of this kind were off where reality was measured too."""
    if isinstance(gain.period_ns, Unknown):
        return gain.period_ns
    kind = kind_of(gain.changes)
    spread = spread_of(kind, "cpu-gloo") if on_cpu else None
    if spread is not None:
        return spread.p90_share
    where = "" if on_cpu else " on devices"
    return Unknown(
        f"no pairs of recordings exist for this kind of change ({kind}){where}",
        ["two recordings of one job, before and after a change of this kind"],
    )


def _rank(row: Row, gain: Gain, entry: CandidateEntry) -> tuple[int, float, int, str]:
    effort = _EFFORTS.index(row.effort)
    ceiling_ns = entry.ceiling_ns if isinstance(entry.ceiling_ns, int) else 0
    if row.table == "scenario":
        return 3, -ceiling_ns, effort, row.id
    if isinstance(gain.period_ns, Unknown):
        return 1, -ceiling_ns, effort, row.id
    return (0 if gain.saving_ns > 0 else 2), -gain.saving_ns, effort, row.id


def _command(paths: Sequence[str], changes: Sequence[str]) -> str:
    """Return a command that replays changes, quoted for a shell."""
    words = ["longpole", "whatif", *map(shlex.quote, paths or ["PATH"])]
    for text in changes:
        option, _, value = text.partition(" ")
        words += [option, shlex.quote(value)] if value else [option]
    return " ".join(words)


def _together(rows: Sequence[Row], made: list[tuple[Row, Gain]], ground: Replayable | Unknown) -> Together | None:
    """Replay the candidates that gain something and do not exclude each other, the most gainful first."""
    excluded = conflicts_of(rows)
    chosen: list[tuple[Row, Gain]] = []
    left_out = []
    for row, gain in made:
        if gain.saving_ns <= 0 or isinstance(gain.period_ns, Unknown):
            continue
        done = {change for _, other in chosen for change in other.changes}
        if gain.of_finding or done.issuperset(gain.changes) or any(other.id in excluded[row.id] for other, _ in chosen):
            left_out.append(row.id)
        else:
            chosen.append((row, gain))
    if len(chosen) < 2 or isinstance(ground, Unknown):
        return None
    changes = list(dict.fromkeys(change for _, gain in chosen for change in gain.changes))
    found = _measured(changes, ground.effect(changes), ground)
    saving = found.period_ns if isinstance(found.period_ns, Unknown) else found.saving_ns
    return Together([row.id for row, _ in chosen], changes, sum(gain.saving_ns for _, gain in chosen), saving, left_out)
