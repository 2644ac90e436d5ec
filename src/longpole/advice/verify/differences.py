"""What tells the two sides apart, and whether time per item can still be compared (DESIGN 3.11, 3.12)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from longpole.advice.verify.shapes import batch_ratio, is_other_model
from longpole.advice.verify.sides import Side, items_of_side, part_of_side
from longpole.records.ledger import Unknown
from longpole.records.verdict import Difference
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings

_MORE_WORK: Final = 1.2  # times the elements: more than what other operators for the same work account for
_SAME: Final = 0.005  # of a ratio: counts that differ by less are counted differently, not changed
_ORDER: Final = ("void", "warn", "note")
_PROMISED: Final = ("dtype", "sampler", "length_distribution")
_DEVICES: Final = ("devices", "device_kind", "hardware", "cpu")
_VOIDS_SHOWN: Final = 3
_ITEMS: Final = "items per unit, before and after (--items before=N --items after=M)"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides, brought to the same items where that is possible.

    Attributes:
        before, after: The sides.
        differences: The gravest first.
        obstacle: Why time per item cannot be compared, None where it can.
        batch_changed: The after side's units hold other items.
        allowed: Differences that were declared to be the change.
    """

    before: Side
    after: Side
    differences: list[Difference]
    obstacle: Unknown | None
    batch_changed: bool
    allowed: frozenset[str] = field(default=frozenset())

    def items_obstacle(self) -> bool:
        """Tell whether it is the items that are lacking, and nothing else that differs."""
        return self.obstacle is not None and not any(entry.severity == "void" for entry in self.differences)


def compare_sides(
    before: Sequence[RunRecord],
    after: Sequence[RunRecord],
    settings: Settings,
    allowed: frozenset[str] = frozenset(),
) -> Comparison:
    """Find what differs, and bring the after side to the items of the before side.

    Args:
        before: The runs before, at least one.
        after: The runs after, at least one.
        settings: `scaling_compute_factor`.
        allowed: Keys whose difference is the change itself: of what must match, of the contract, or `ranks`.
    """
    found: list[Difference] = []
    found += _units(before, after)
    found += _environment(before, after, allowed)
    found += _ranks(before, after)
    found += _layout(before, after)
    found += _within(before, "before")
    found += _within(after, "after")
    found += _records([*before, *after])
    if {run.run_id for run in before if run.run_id} & {run.run_id for run in after}:
        found.append(Difference("record", "warn", "run_id", "", "", "one run stands on both sides"))
    one, other = Side("before", before, items_of_side(before)), Side("after", after, items_of_side(after))
    batch = _compare_batches(one, other, settings, allowed)
    found += batch.differences
    found.sort(key=lambda entry: _ORDER.index(entry.severity))
    voids = [entry for entry in found if entry.severity == "void"]
    obstacle = batch.obstacle
    if voids:
        obstacle = Unknown("; ".join(entry.says for entry in voids[:_VOIDS_SHOWN]), [entry.key for entry in voids])
    one = replace(one, per_item=batch.per_item)
    other = replace(other, per_item=batch.per_item, ratio=batch.ratio)
    changed = abs(batch.ratio - 1) > _SAME
    return Comparison(one, other, found, obstacle, changed, allowed)


def _units(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> list[Difference]:
    found = []
    kinds = _texts(run.unit_kind for run in before), _texts(run.unit_kind for run in after)
    if kinds[0] != kinds[1]:
        says = f"other units of work: {kinds[0]} before, {kinds[1]} after"
        found.append(Difference("units", "void", "unit_kind", *kinds, says))
    items = _texts(run.item_kind for run in before), _texts(run.item_kind for run in after)
    if all(items) and items[0] != items[1]:
        says = f"other items are counted: {items[0]} before, {items[1]} after"
        found.append(Difference("items", "void", "item_kind", *items, says))
    for name, runs in (("before", before), ("after", after)):
        for run in runs:
            if run.unit_kind == "trace":
                says = f"{_name(run)} ({name}): no steps are marked, so the whole record is one unit"
                found.append(Difference("units", "void", "step marker (--step)", "", "", says))
    return found


def _environment(before: Sequence[RunRecord], after: Sequence[RunRecord], allowed: frozenset[str]) -> list[Difference]:
    found = []
    one, other = before[0].environment, after[0].environment
    for key in sorted(one.must_match.keys() | other.must_match.keys()):
        values = _text(one.must_match.get(key)), _text(other.must_match.get(key))
        if values[0] == values[1]:
            continue
        what = "devices" if key in _DEVICES else "versions"
        if not all(values):
            side = "before" if not values[0] else "after"
            says = f"{key} is not recorded {side}, so whether it matches is not known"
            found.append(Difference(what, "warn", key, *values, says))
        elif key in allowed:
            found.append(
                Difference(what, "note", key, *values, f"{key} is the change: {values[0]} before, {values[1]} after")
            )
        else:
            says = f"{key} must match and does not: {values[0]} before, {values[1]} after"
            found.append(Difference(what, "void", key, *values, says))
    for key in sorted(one.should_match.keys() | other.should_match.keys()):
        values = _text(one.should_match.get(key)), _text(other.should_match.get(key))
        if values[0] != values[1]:
            says = f"{key} may shift figures: {values[0] or 'not recorded'} before, {values[1] or 'not recorded'} after"
            found.append(Difference("environment", "warn" if all(values) else "note", key, *values, says))
    return found


def _ranks(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> list[Difference]:
    found = []
    worlds = _world(before[0]), _world(after[0])
    if all(worlds) and worlds[0] != worlds[1]:
        says = f"{format_count(worlds[0], 'rank')} before, {worlds[1]} after; time per item is compared, not per device"
        found.append(Difference("ranks", "warn", "world_size", str(worlds[0]), str(worlds[1]), says))
    for run in (*before, *after):
        world, present = _world(run), len(run.ranks_present)
        if present and world > present:
            says = f"{_name(run)}: {world - present} of {world} ranks not recorded; parts are means over the others"
            found.append(Difference("record", "warn", "ranks_present", "", "", says))
    return found


def _layout(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> list[Difference]:
    one, other = before[0].contract.layout, after[0].contract.layout
    if one is None or other is None or one == other:
        return []
    texts = _text(one), _text(other)
    return [Difference("layout", "warn", "layout", *texts, f"another layout: {texts[0]} before, {texts[1]} after")]


def _within(runs: Sequence[RunRecord], name: str) -> list[Difference]:
    """Notice runs of one side that are not runs of one thing: their spread would be taken for noise."""
    found = []
    first = runs[0]
    for run in runs[1:]:
        pairs = [
            ("world_size", _world(first), _world(run)),
            *(
                (key, first.environment.must_match.get(key), run.environment.must_match.get(key))
                for key in first.environment.must_match.keys() | run.environment.must_match.keys()
            ),
        ]
        declared = [(key, getattr(first.contract, key), getattr(run.contract, key)) for key in _PROMISED]
        pairs += [(key, one, other) for key, one, other in declared if one is not None and other is not None]
        for key, one, other in pairs:
            if _text(one) != _text(other):
                says = f"the runs {name} differ among themselves: {key} is {_text(one)} and {_text(other)}"
                found.append(Difference("record", "void", key, _text(one), _text(other), says))
    ids = [run.run_id for run in runs if run.run_id]
    if len(set(ids)) < len(ids):
        says = f"one run is named twice {name}: it is no second sample"
        found.append(Difference("record", "void", "run_id", "", "", says))
    return found


def _records(runs: Iterable[RunRecord]) -> list[Difference]:
    """Say what limits the records: a record that withdraws its periods has none to compare."""
    found = []
    for run in runs:
        if not run.counted():
            why = next((u.period_ns.unknown for u in run.units if isinstance(u.period_ns, Unknown)), "all are left out")
            says = f"{_name(run)}: no unit has a period that counts: {why}"
            found.append(Difference("record", "void", "period_ns", "", "", says))
            continue
        voids = [note for note in run.integrity if note.severity == "void"]
        found += [
            Difference("record", "warn", n.code, "", "", f"{_name(run)}: {n.message}") for n in voids[:_VOIDS_SHOWN]
        ]
    return found


@dataclass(frozen=True, slots=True)
class _Batch:
    ratio: float
    differences: list[Difference]
    obstacle: Unknown | None = None
    per_item: bool = False


def _compare_batches(before: Side, after: Side, settings: Settings, allowed: frozenset[str]) -> _Batch:
    """Find out how many items a unit holds after for each one before: declared, else read from shapes."""
    one, other = before.runs[0].contract, after.runs[0].contract
    seen = batch_ratio(one.shapes or {}, other.shapes or {})
    worlds = _world(before.runs[0]), _world(after.runs[0])
    more_ranks = all(worlds) and worlds[0] != worlds[1]
    found = _batch_signs(before, after, allowed)
    if isinstance(before.items, float) and isinstance(after.items, float):
        ratio = after.items / before.items
        texts = f"{before.items:g}", f"{after.items:g}"
        if abs(ratio - 1) > _SAME:
            says = f"the batch changed: {texts[0]} items a unit before, {texts[1]} after; time per item is compared"
            found.append(Difference("batch", "warn", "items", *texts, says))
        if seen is not None and not more_ranks and abs(seen / ratio - 1) > _SAME:
            says = (
                f"items are declared {_times(ratio)}, and shapes say {_times(seen)};"
                " one of the two does not describe these runs"
            )
            found.append(Difference("items", "warn", "shapes", *texts, says))
        return _Batch(ratio, found, per_item=True)
    if seen is not None and not more_ranks:
        if abs(seen - 1) > _SAME:
            says = f"the batch changed: operators process {_times(seen)} many rows; items are read from shapes"
            found.append(Difference("batch", "warn", "shapes", "1", f"{seen:g}", says))
        return _Batch(seen, found)
    grown = _more_compute(before, after, settings)
    return _undeclared(before, after, [*found, *grown], more_ranks=more_ranks)


def _undeclared(before: Side, after: Side, found: list[Difference], *, more_ranks: bool) -> _Batch:
    """Decide what holds where neither declarations nor shapes tell the items."""
    missing = next(side for side in (after, before) if isinstance(side.items, Unknown))
    assert isinstance(missing.items, Unknown)
    signs = [entry for entry in found if entry.what == "batch"]
    if more_ranks:
        why = "the number of ranks changed, and how many items a unit holds is not known"
    elif signs:
        why = f"{signs[0].says}; how many items a unit holds is not known"
    elif isinstance(before.items, float) or isinstance(after.items, float):
        why = f"items are known on one side only: {missing.items.unknown}"
    else:
        says = "the items of a unit are not declared and no shapes tell them; the same are assumed on both sides"
        found.append(Difference("items", "note", "items", "", "", says))
        return _Batch(1.0, found)
    return _Batch(1.0, found, Unknown(why, [_ITEMS]))


def _batch_signs(before: Side, after: Side, allowed: frozenset[str]) -> list[Difference]:
    """Find what else says that a unit computes something else: fields of the contract, sizes, bytes."""
    one, other = before.runs[0].contract, after.runs[0].contract
    found = []
    if is_other_model(one.shapes or {}, other.shapes or {}) and "shapes" not in allowed:
        says = "these are not one job: no weight of the one has the shape of a weight of the other"
        found.append(Difference("shapes", "void", "shapes", "", "", says))
    for key in ("global_batch", "micro_batch"):
        values = getattr(one, key), getattr(other, key)
        if None not in values and values[0] != values[1]:
            says = f"{key.replace('_', ' ')}: {values[0]} before, {values[1]} after"
            found.append(Difference("batch", "warn", key, str(values[0]), str(values[1]), says))
    for key, words in (
        ("input_bytes_per_unit", "bytes copied in as input"),
        ("elements_per_unit", "elements of inputs"),
    ):
        values = getattr(one, key), getattr(other, key)
        if None in values or not values[0]:
            continue
        ratio = values[1] / values[0]
        if abs(ratio - 1) > _SAME:
            # Bytes of the input are the batch; what operators work on shrinks too where operators are joined.
            is_batch = key == "input_bytes_per_unit" or ratio > _MORE_WORK
            says = f"{words} in a unit: {_times(ratio)} many"
            what, severity = ("batch", "warn") if is_batch else ("shapes", "note")
            found.append(Difference(what, severity, key, str(values[0]), str(values[1]), says))
    return found


def _more_compute(before: Side, after: Side, settings: Settings) -> list[Difference]:
    """Notice that a unit computes far longer: without items or shapes, that may be a larger batch or slower work."""
    times = [part_of_side(side, "compute") for side in (before, after)]
    if None in times or not times[0] or not times[1]:
        return []
    ratio = times[1] / times[0]
    if ratio < settings.scaling_compute_factor:
        return []
    says = f"a unit computes {_times(ratio)} long, which may be a larger batch"
    return [Difference("batch", "warn", "compute", format_ns(times[0]), format_ns(times[1]), says)]


def _world(run: RunRecord) -> int:
    present = len(set(run.ranks_present)) or len({row.rank for row in run.rows})
    return max(run.world_size, present) if isinstance(run.world_size, int) else present


def _name(run: RunRecord) -> str:
    return run.label or run.run_id or "a run"


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times as"


def _texts(values: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(_text(value) for value in values if value not in (None, "")))


def _text(value: Any) -> str:
    """Write a value of a record; empty for none."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(inner)}" for key, inner in sorted(value.items()))
    if isinstance(value, list | tuple):
        return ", ".join(_text(inner) for inner in value)
    return str(value)
