"""What may lie behind a change: differences between two records, each a hypothesis for a person to try.

Nothing here is a finding: two things changed, and that the one made the other is not shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.verify.sides import part_of_side, parts_known
from longpole.bench.gate.stages import write_change
from longpole.records.gate import GateReason
from longpole.records.ledger import Unknown
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.verify.sides import Side
    from longpole.bench.gate.sides import Gated
    from longpole.records.run_record import RecordCollective, RunRecord

_LEAST_SHARE: Final = 0.005  # of the period: a smaller change explains nothing that a gate would flag
_COUNT_SHARE: Final = 0.01  # of a count or a size: less is how they are counted
_SHOWN: Final = 4

_IDLE: Final = {
    "idle:host.sync": ("synchronisation", "the host waits longer for the device: more synchronisations, or longer"),
    "idle:host.alloc": ("allocator", "the device is idle longer while the host allocates or frees memory"),
    "idle:host.gc": ("garbage_collection", "the device is idle longer while the host collects garbage"),
    "idle:host.compile": ("compilation", "the device is idle longer while the host compiles or captures"),
    "idle:launch_call": ("synchronisation", "launch calls take longer: the queue may be full, or launches dearer"),
}
_OBJECTS: Final = ("input", "artifact", "state", "output")
_TOPOLOGY: Final = ("NCCL_", "topology", "nccl", "world_size", "interconnect")


def find_reasons(gated: Gated, base: Sequence[RunRecord], new: Sequence[RunRecord]) -> list[GateReason]:
    """Return differences between the sides that may lie behind a change of time, the most direct first.

    Args:
        gated: Both sides.
        base: Records of the baseline.
        new: Records of the other side.
    """
    before, after = gated.sides()
    least_ns = _LEAST_SHARE * _period_ns(before)
    found = _grown(before, after, least_ns)
    found += _collectives(base[0], new[0])
    found += _shapes(base[0], new[0])
    found += _settings(base[0], new[0])
    return found


def _period_ns(side: Side) -> float:
    medians = side.medians()
    return sum(medians) / len(medians)


def _grown(before: Side, after: Side, least_ns: float) -> list[GateReason]:
    """Find idle reasons and objects that take more of a unit than before."""
    known = {*parts_known(before), *parts_known(after)}
    found: list[tuple[float, GateReason]] = []
    for part in (*_IDLE, *_OBJECTS):
        if part not in known:
            continue
        times = part_of_side(before, part), part_of_side(after, part)
        if times[0] is None or times[1] is None or times[1] - times[0] < least_ns:
            continue
        cause, words = _IDLE.get(part, (part, f"a unit waits longer for {part}"))
        says = f"{words}: {write_change(times[1] - times[0], Unknown(''))} a unit"
        found.append((times[1] - times[0], GateReason(cause, says, format_ns(times[0]), format_ns(times[1]))))
    return [reason for _, reason in sorted(found, key=lambda entry: -entry[0])]


def _collectives(base: RunRecord, new: RunRecord) -> list[GateReason]:
    """Find collectives that are more, larger, or that ranks wait longer in."""
    sides = [_by_kind(record) for record in (base, new)]
    found = []
    for kind in dict.fromkeys([*sides[0], *sides[1]]):
        one, other = sides[0].get(kind), sides[1].get(kind)
        if one is None or other is None:
            if base.collectives and new.collectives:
                which = "appears" if one is None else "is gone"
                texts = ("none" if one is None else "recorded", "none" if other is None else "recorded")
                found.append(GateReason("collectives", f"{kind} {which}: other communication than before", *texts))
            continue
        for name, words in (("count", "operations"), ("bytes", "bytes")):
            values = one[name], other[name]
            if None in values or not values[0]:
                continue
            if abs(values[1] / values[0] - 1) > _COUNT_SHARE:  # type: ignore[operator]  # both known, see above
                says = f"{kind}: another number of {words} in a unit, {values[0]:,.6g} before and {values[1]:,.6g} now"
                found.append(GateReason("collectives", says, f"{values[0]:,.6g}", f"{values[1]:,.6g}"))
    return found


def _by_kind(record: RunRecord) -> dict[str, dict[str, float | None]]:
    """Return kind -> operations and bytes of a unit, summed over roles; None where one role does not say."""
    found: dict[str, dict[str, float | None]] = {}
    for entry in record.collectives:
        own = found.setdefault(entry.kind or "collective", {"count": 0.0, "bytes": 0.0})
        for name in ("count", "bytes"):
            own[name] = _plus(own[name], entry, name)
    return found


def _plus(so_far: float | None, entry: RecordCollective, name: str) -> float | None:
    value = getattr(entry, name)
    return None if so_far is None or isinstance(value, Unknown) else so_far + float(value)


def _shapes(base: RunRecord, new: RunRecord) -> list[GateReason]:
    """Find operators and kernels that only one side has, or that have other shapes."""
    one, other = base.contract.shapes, new.contract.shapes
    if one is None or other is None or one == other:
        return []
    gone, come = sorted(one.keys() - other.keys()), sorted(other.keys() - one.keys())
    if gone or come:
        parts = [f"gone: {_listed(gone)}" if gone else "", f"new: {_listed(come)}" if come else ""]
        says = f"another set of operators computes a unit ({'; '.join(part for part in parts if part)})"
        return [GateReason("shapes", says, _listed(gone), _listed(come))]
    changed = [name for name in one if one[name] != other[name]]
    says = f"operators have other input shapes: {_listed(changed)}"
    return [GateReason("shapes", says, "", "")]


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


def _settings(base: RunRecord, new: RunRecord) -> list[GateReason]:
    """Find settings that differ: of communication first."""
    found = []
    for which in ("must_match", "should_match"):
        one, other = getattr(base.environment, which), getattr(new.environment, which)
        for key, before, after in _changed(one, other):
            topology = any(mark in key for mark in _TOPOLOGY)
            cause = "topology" if topology else "versions" if which == "must_match" else "settings"
            says = f"{key} differs: {before or 'not set'} before, {after or 'not set'} now"
            found.append((not topology, GateReason(cause, says, before, after)))
    if (
        base.contract.layout is not None
        and new.contract.layout is not None
        and base.contract.layout != new.contract.layout
    ):
        texts = str(base.contract.layout), str(new.contract.layout)
        found.append(
            (False, GateReason("topology", f"another layout of ranks: {texts[0]} before, {texts[1]} now", *texts))
        )
    return [reason for _, reason in sorted(found, key=lambda entry: entry[0])]


def _changed(one: dict[str, object], other: dict[str, object], prefix: str = "") -> list[tuple[str, str, str]]:
    """Return (key, before, after) of what differs, keys of tables inside joined by a point."""
    found = []
    for key in sorted(one.keys() | other.keys()):
        before, after = one.get(key), other.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            found += _changed(before, after, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", _text(before), _text(after)))
    return found


def _text(value: object) -> str:
    return "" if value is None else str(value)
