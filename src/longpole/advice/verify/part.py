"""Whether the part that a change was to shrink has shrunk, and where the time went that it gave up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.verify.effect import enough_units, interval_of
from longpole.advice.verify.sides import PREFIXES, part_of_run, part_of_side, part_of_unit, parts_known
from longpole.advice.verify.wording import part_noun, span_of, where_to
from longpole.errors import UsageError
from longpole.records.ledger import Unknown
from longpole.records.verdict import Effect, Moved, Part, PartChange
from longpole.stats.resampling import Resampled
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS
from longpole.whatif.selector import ALL_STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.verify.differences import Comparison
    from longpole.advice.verify.effect import Design
    from longpole.advice.verify.sides import Side
    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings
    from longpole.stats.intervals import Interval

_TOOK_MOST: Final = 0.2  # of what the part gave up: a part that grew by less is not where it went
_WAITED: Final = 0.5  # of the growth: communication grew because ranks wait
_STAGE: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}", re.IGNORECASE | re.ASCII)  # records may have stages of their own
_FIELDS: Final = ["exposed time by object in each unit"]


def parse_part(text: str) -> str:
    """Read the name of a part.

    Raises:
        UsageError: There is no such part.
    """
    prefix, colon, name = text.partition(":")
    if not colon and prefix in OBJECTS:
        return text
    if prefix == "stage" and _STAGE.fullmatch(name):
        return text
    if prefix == "idle" and name in IDLE_REASONS:
        return text
    expected = {
        "stage": f"the name of a stage, such as {', '.join(ALL_STAGES)}",
        "idle": f"one of the idle reasons {', '.join(IDLE_REASONS)}",
    }.get(prefix if colon else "", f"an object ({', '.join(OBJECTS)}), stage:NAME or idle:REASON")
    msg = f"--part {text}: expected {expected}"
    raise UsageError(msg)


def measure_part(comparison: Comparison, design: Design, settings: Settings, part: str, chosen: str) -> Part:
    """Say whether a part takes less time in as many items.

    Args:
        comparison: The sides.
        design: How runs are compared.
        settings: `verify_part_min_share`.
        part: What must shrink; empty for the object that fell most.
        chosen: How the part was chosen.
    """
    if not part:
        part, chosen = _fell_most(comparison), "fell most"
    if not part:
        return _unknown_part("", chosen, Unknown("the records do not say what a unit is made of", _FIELDS))
    before, after = (part_of_side(side, part) for side in (comparison.before, comparison.after))
    if part.startswith("stage:") and part not in _known(comparison):
        return _unknown_part(part, chosen, Unknown(f"no unit has a stage {part.partition(':')[2]}", ["time by stage"]))
    if before is None or after is None:
        side = "before" if before is None else "after"
        return _unknown_part(part, chosen, Unknown(f"what {part_noun(part)} takes is not recorded {side}", _FIELDS))
    # The part that fell most of several is picked by its fall, so that it must be larger to mean something.
    least = design.threshold if chosen == "fell most" else settings.verify_part_min_share
    least_ns = least * _period(comparison)
    interval: list[int] | Unknown
    why = enough_units(comparison, settings)
    if why:
        interval, shrank = Unknown(why), "unsettled" if before - after >= least_ns else "no"
    else:
        found = _interval(comparison, design, part)
        interval = [round(found.low), round(found.high)]
        shrank = _shrank(found, least_ns)
    words = {"yes": "fell", "no": "did not shrink:", "unsettled": "may have shrunk:"}[shrank]
    return Part(
        part=part,
        chosen=chosen,
        before_ns=round(before),
        after_ns=round(after),
        change_ns=round(after) - round(before),
        interval_ns=interval,
        shrank=shrank,
        says=f"{part_noun(part)} {words} {span_of(before, after)}",
    )


def _shrank(found: Interval, least_ns: float) -> str:
    if found.high < 0 and -found.estimate >= least_ns:
        return "yes"
    return "unsettled" if -found.low >= least_ns and -found.estimate > 0 else "no"


def _interval(comparison: Comparison, design: Design, part: str) -> Interval:
    def of_run(side: Side, run: RunRecord) -> float:
        return part_of_run(side, run, part) or 0.0

    def resampled(side: Side) -> Resampled:
        run = side.runs[0]
        values = np.array([float(part_of_unit(unit, part) or 0) for unit in run.counted()])
        weights = np.array(side.weights(run))
        return Resampled(len(values), lambda draw: values[draw].sum(axis=1) / weights[draw].sum(axis=1))

    found = interval_of(comparison, design, of_run, resampled)
    if max(len(comparison.before.runs), len(comparison.after.runs)) > 1:
        return found
    larger = max(of_run(side, side.runs[0]) for side in (comparison.before, comparison.after))
    return found.widened(design.run_spread * larger)


def _fell_most(comparison: Comparison) -> str:
    """Return the object that fell most, empty where no object is known; where none fell, the one that grew least."""
    names = [name for name in OBJECTS if name in _known(comparison, prefixes=())]
    changes = {}
    for name in names:
        before, after = (part_of_side(side, name) for side in (comparison.before, comparison.after))
        if before is not None and after is not None:
            changes[name] = after - before
    return min(changes, key=lambda name: changes[name]) if changes else ""


def is_sporadic(comparison: Comparison, part: Part, threshold: float) -> bool:
    """Tell whether a part lies in few units: on a side, its mean and its median differ by the threshold of a period."""
    if ":" in part.part and not part.part.startswith(("stage:", "idle:")):
        return False
    least_ns = threshold * _period(comparison)
    for side in (comparison.before, comparison.after):
        values = [part_of_unit(unit, part.part) for run in side.runs for unit in run.counted() if part.part]
        known = [value for value in values if value is not None]
        if known and abs(float(np.mean(known)) - float(np.median(known))) / side.ratio >= least_ns:
            return True
    return False


def _unknown_part(part: str, chosen: str, why: Unknown) -> Part:
    return Part(part, chosen, why, why, why, why, "unsettled", why.unknown)


def _period(comparison: Comparison) -> float:
    return float(np.median(comparison.before.medians()))


def _known(comparison: Comparison, prefixes: Sequence[str] = PREFIXES) -> list[str]:
    names = dict.fromkeys([*parts_known(comparison.before), *parts_known(comparison.after)])
    return [name for name in names if ":" not in name or name.partition(":")[0] + ":" in prefixes]


def changes_of(comparison: Comparison) -> list[PartChange]:
    """Return how every part changed that both sides know, for as many items as a unit has before."""
    found = []
    for name in _known(comparison):
        before, after = (part_of_side(side, name) for side in (comparison.before, comparison.after))
        if before is not None and after is not None:
            found.append(PartChange(name, round(before), round(after), round(after) - round(before)))
    return found


def find_moved(comparison: Comparison, part: Part, effect: Effect, settings: Settings) -> Moved:
    """Say where the time went that a part gave up, where the item is not shorter for it.

    Args:
        comparison: The sides.
        part: What shrank.
        effect: What the item did.
        settings: `verify_part_min_share`, below which a change is not shown.
    """
    least_ns = settings.verify_part_min_share * _period(comparison)
    changes = changes_of(comparison)
    fell = sorted((c for c in changes if -c.change_ns >= least_ns), key=lambda c: c.change_ns)
    grew = sorted((c for c in changes if c.change_ns >= least_ns), key=lambda c: -c.change_ns)
    if part.shrank != "yes" or not isinstance(part.change_ns, int) or effect.answer == "faster":
        return Moved(fell, grew, "", "")
    to = _destination(part, changes, -part.change_ns)
    return Moved(fell, grew, to, _moved_sentence(comparison, part, effect, to, {c.part: c for c in changes}))


def _destination(part: Part, changes: Sequence[PartChange], gave_up_ns: int) -> str:
    """Return the object that took most of it, or what within it did: a kind of collective, an idle reason, a stage."""
    objects = [c for c in changes if ":" not in c.part and c.part != part.part]
    most = max(objects, key=lambda c: c.change_ns, default=None)
    if most is None or most.change_ns < _TOOK_MOST * gave_up_ns:
        return ""
    inside = {"collective": "collective:", "host": "idle:"}.get(most.part)
    if inside is None:
        return most.part
    within = [c for c in changes if c.part.startswith(inside) and c.part != part.part]
    if most.part == "host":
        within = [c for c in within if c.part.removeprefix("idle:").startswith(("host.", "launch", "kernel_gap"))]
    finer = max(within, key=lambda c: c.change_ns, default=None)
    return finer.part if finer is not None and finer.change_ns >= most.change_ns / 2 else most.part


def _moved_sentence(comparison: Comparison, part: Part, effect: Effect, to: str, changes: dict[str, PartChange]) -> str:
    assert isinstance(part.before_ns, int)
    assert isinstance(part.after_ns, int)
    noun = "item" if comparison.batch_changed else comparison.before.runs[0].unit_kind
    shorter = "is longer" if effect.answer == "slower" else "is not shorter"
    begin = f"{part_noun(part.part)} fell {span_of(part.before_ns, part.after_ns)} but the {noun} {shorter}"
    if not to:
        return f"{begin}: no other part took that time, so something beside it holds the {noun} up"
    # Operations of one kind may run at once, so that their sum exceeds what they cost: the object's figure is shown.
    change = changes.get("collective" if to.startswith("collective:") else to)
    waited = ""
    if change is not None and to.startswith("collective:"):
        waiting = changes.get("waiting:" + to.removeprefix("collective:"))
        if waiting is not None and waiting.change_ns >= _WAITED * change.change_ns:
            waited = ", where ranks wait for the last one"
    grown = f" ({span_of(change.before_ns, change.after_ns)})" if change is not None else ""
    return f"{begin}: the wait moved to {where_to(to)}{waited}{grown}"
