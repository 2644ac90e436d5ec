"""Checks of the evidence that need links and units: what was launched and not recorded, and the like (DESIGN 3.13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.name_book import CALL_CODE
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.integrity import Example, Finding, Severity
from longpole.timeline.intervals import covered_before, union
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.timeline.boundaries import Unit
    from longpole.timeline.timeline import Timeline

_SPAN: Final = ["@/device_span/busy_ns", "@/device_span/idle_ns"]
_IDLE: Final = ["@/ledger/device/idle_ns", "@/ledger/idle_ns", "@/device_span/idle_ns"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the checks say.

    Attributes:
        findings: In no particular order.
        incomplete: Places of units that miss device spans.
        verdict_withheld: Why no bottleneck can be named, empty where one can.
    """

    findings: list[Finding]
    incomplete: frozenset[int]
    verdict_withheld: str


def check_evidence(timeline: Timeline, book: NameBook, units: list[Unit]) -> Evidence:
    """Check one rank's record."""
    findings: list[Finding] = []
    missing = _without_kernels(timeline, book)
    withheld = _graph_launches(timeline, book, findings)
    incomplete = _launches(timeline, missing, units, findings)
    if incomplete:
        first = units[min(incomplete)]
        message = f"{len(incomplete)} of {len(units)} units lack device spans, the first one {first.name}"
        event = int(timeline.host.event[first.marker]) if first.marker >= 0 else -1
        findings.append(_finding(timeline, "unit.incomplete", "warn", (len(incomplete), event), message))
    _unlinked(timeline, findings)
    _before_launch(timeline, findings)
    _profiler(timeline, findings)
    _overrun(timeline, units, findings)
    if len(timeline.device) == 0:
        message = "no device spans were recorded; the thread that carries the units takes the device's place"
        findings.append(_finding(timeline, "device.none", "note", (1, -1), message))
        withheld = _launches_alone(timeline, book, findings)
    return Evidence(findings, incomplete, withheld)


def _finding(
    timeline: Timeline,
    code: str,
    severity: Severity,
    seen: tuple[int, int],
    message: str,
    voids: list[str] | None = None,
) -> Finding:
    """Make a finding of this rank; `seen` is how often and in which event first, -1 for no event."""
    count, event = seen
    example = Example(timeline.source.path, event if event >= 0 else None)
    return Finding(code, severity, timeline.identity.rank, count, example, message, voids or [])


def _launches_alone(timeline: Timeline, book: NameBook, findings: list[Finding]) -> str:
    """Complain of launches in a record without a device; return why no verdict can be given, or nothing."""
    rows = _launch_calls(timeline, book)
    if len(rows) == 0:
        return ""
    message = f"{_launch_count(len(rows))}, and kernel activity was not recorded: what the device did is not known"
    seen = (len(rows), int(timeline.host.event[rows[0]]))
    findings.append(_finding(timeline, "launch.without_kernel", "void", seen, message, _SPAN))
    return message


def _launch_count(n: int) -> str:
    return format_count(n, "launch", "launches")


def _launch_calls(timeline: Timeline, book: NameBook) -> NDArray[np.intp]:
    call = book.call[timeline.host.name]
    is_launch = (call == CALL_CODE["launch"]) | (call == CALL_CODE["graph_launch"])
    return np.flatnonzero((timeline.host.kind == Kind.RUNTIME) & is_launch & (timeline.host.correlation > 0))


def _without_kernels(timeline: Timeline, book: NameBook) -> NDArray[np.int64]:
    """Return host rows of launches to which no device span belongs; only where correlation ids link at all."""
    host, device = timeline.host, timeline.device
    if len(device) == 0 or not (device.launch != NONE_ID).any():
        return np.empty(0, np.int64)
    launches = _launch_calls(timeline, book)
    linked = np.isin(launches, device.launch) | np.isin(host.correlation[launches], device.correlation)
    linked = _with_nested(timeline, launches, linked)
    captured = _while_capturing(timeline, book, launches)
    return launches[~linked & ~captured].astype(np.int64)


def _with_nested(timeline: Timeline, launches: NDArray[np.intp], linked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Add launches around and inside linked ones: a call of the runtime makes one of the driver, and one has all."""
    host, rows = timeline.host, launches[linked]
    if len(rows) == 0:
        return linked
    after = rows[np.minimum(np.searchsorted(rows, launches, side="right"), len(rows) - 1)]
    around = (host.track[after] == host.track[launches]) & (after > launches)
    around &= host.start_ns[after] < host.end_ns[launches]
    before = rows[np.maximum(np.searchsorted(rows, launches) - 1, 0)]
    inside = (host.track[before] == host.track[launches]) & (before < launches)
    inside &= host.end_ns[launches] <= host.end_ns[before]
    return linked | around | inside


def _while_capturing(timeline: Timeline, book: NameBook, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which calls were made while a graph was captured: they launch nothing."""
    host = timeline.host
    names = {code: timeline.names[code] for code in np.unique(host.name[host.kind == Kind.RUNTIME]).tolist()}
    begins = [code for code, name in names.items() if "StreamBeginCapture" in name]
    ends = [code for code, name in names.items() if "StreamEndCapture" in name]
    del book
    if not begins:
        return np.zeros(len(rows), np.bool_)
    begin_ns = np.sort(host.start_ns[np.isin(host.name, begins)])
    end_ns = np.sort(host.end_ns[np.isin(host.name, ends)])
    started = np.searchsorted(begin_ns, host.start_ns[rows], side="right")
    ended = np.searchsorted(end_ns, host.start_ns[rows], side="right")
    return started > ended


def _graph_launches(timeline: Timeline, book: NameBook, findings: list[Finding]) -> str:
    """Complain of graph launches without their nodes' kernels; return why no verdict can be given, or nothing."""
    host, device = timeline.host, timeline.device
    launches = np.flatnonzero((host.kind == Kind.RUNTIME) & (book.call[host.name] == CALL_CODE["graph_launch"]))
    if len(launches) == 0 or len(device) == 0:
        return ""
    complete = _with_nested(timeline, launches, np.isin(launches, device.launch))
    n_missing = int((~complete).sum())
    if n_missing == 0:
        return ""
    event = int(host.event[launches[~complete][0]])
    n_seen = len(launches) - n_missing
    message = f"kernels were recorded for {n_seen} of {len(launches)} graph launches; the others look like idle time"
    severity: Severity = "void" if n_missing * 10 > len(launches) else "warn"
    findings.append(_finding(timeline, "graph.nodes_missing", severity, (n_missing, event), message, _IDLE))
    return message if severity == "void" else ""


def _launches(
    timeline: Timeline, missing: NDArray[np.int64], units: list[Unit], findings: list[Finding]
) -> frozenset[int]:
    """Complain of launches without a kernel; return the units that lack more than one in twenty of their spans."""
    host = timeline.host
    if len(missing) == 0:
        return frozenset()
    linked = timeline.device.launch[timeline.device.launch != NONE_ID]
    first_linked_ns = int(host.start_ns[linked].min()) if len(linked) else 0
    at_head = host.start_ns[missing] < first_linked_ns
    where = "all at the head of the record" if at_head.all() else f"{int(at_head.sum())} of them at the head"
    event = int(host.event[missing[0]])
    message = f"{_launch_count(len(missing))} without a kernel, {where}; device figures hold for what was recorded"
    share = len(missing) / max(len(missing) + len(linked), 1)
    voids = _IDLE if share > _LOST_SHARE else []
    findings.append(
        _finding(timeline, "launch.without_kernel", "warn" if voids else "note", (len(missing), event), message, voids)
    )
    lost, got = _by_unit(units, host.start_ns[missing]), _by_unit(units, host.start_ns[linked])
    incomplete = np.flatnonzero(lost > _LOST_SHARE * (lost + got))
    return frozenset(incomplete.tolist()) if len(units) > 1 else frozenset()


_LOST_SHARE: Final = 0.05


def _by_unit(units: list[Unit], time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count times by the unit they lie in; those outside all units count nowhere."""
    starts = np.array([unit.start_ns for unit in units], np.int64)
    inside = time_ns[(time_ns >= units[0].start_ns) & (time_ns < units[-1].end_ns)]
    place = np.searchsorted(starts, inside, side="right") - 1
    return np.bincount(place, minlength=len(units)).astype(np.int64)


def _unlinked(timeline: Timeline, findings: list[Finding]) -> None:
    device = timeline.device
    rows = np.flatnonzero(device.launch == NONE_ID)
    if len(rows) == 0 or timeline.told is not None:
        return
    first_ns = int(timeline.host.start_ns.min()) if len(timeline.host) else 0
    early = int((device.start_ns[rows] < first_ns).sum())
    message = f"{len(rows):,} of {len(device):,} device spans have no recorded launch"
    message += f" ({early:,} of them start before the record of the host)" if early else ""
    findings.append(_finding(timeline, "kernel.unlinked", "note", (len(rows), int(device.event[rows[0]])), message))


def _before_launch(timeline: Timeline, findings: list[Finding]) -> None:
    device, host = timeline.device, timeline.host
    linked = np.flatnonzero(device.launch != NONE_ID)
    if len(linked) == 0:
        return
    delay_ns = device.start_ns[linked] - host.start_ns[device.launch[linked]]
    early = np.flatnonzero(delay_ns < 0)
    if len(early) == 0:
        return
    worst_ns = int(delay_ns.min())
    event = int(device.event[linked[int(delay_ns.argmin())]])
    message = (
        f"{format_count(len(early), 'device span')} from before the launch, by {format_ns(-worst_ns)} at most: the"
        " clocks of host and device differ by as much; no time was saved"
    )
    findings.append(_finding(timeline, "kernel.before_launch", "note", (len(early), event), message))


def _profiler(timeline: Timeline, findings: list[Finding]) -> None:
    aside = timeline.aside
    rows = np.flatnonzero(aside.kind == Kind.OVERHEAD)
    codes = [c for c in np.unique(aside.name[rows]).tolist() if not timeline.names[c].startswith("PyTorch Profiler")]
    rows = rows[np.isin(aside.name[rows], codes) & (aside.end_ns[rows] > aside.start_ns[rows])]
    recorded = timeline.recorded()
    total_ns = union(aside.start_ns[rows], aside.end_ns[rows]).total_ns()
    if len(rows) == 0 or len(recorded.start_ns) == 0:
        return
    share = total_ns / max(recorded.total_ns(), 1)
    names = sorted({timeline.names[c] for c in aside.name[rows].tolist()})
    if share < _OVERHEAD_SHARE:
        return
    message = (
        f"the profiler itself took {format_ns(total_ns)}, {share:.1%} of the record ({', '.join(names[:3])[:120]})"
    )
    findings.append(_finding(timeline, "profiler.overhead", "note", (len(rows), int(aside.event[rows[0]])), message))


_OVERHEAD_SHARE: Final = 0.01


def _overrun(timeline: Timeline, units: list[Unit], findings: list[Finding]) -> None:
    """Complain of device spans that end after the host end of the second unit that follows the launching one."""
    device, host = timeline.device, timeline.host
    linked = np.flatnonzero(device.launch != NONE_ID)
    if len(units) < 3 or len(linked) == 0:
        return
    starts = np.array([unit.start_ns for unit in units], np.int64)
    ends = np.array([unit.end_ns for unit in units], np.int64)
    unit = np.searchsorted(starts, host.start_ns[device.launch[linked]], side="right") - 1
    judged = (unit >= 0) & (unit + 2 < len(units))
    late = linked[judged][device.end_ns[linked[judged]] > ends[unit[judged] + 2]]
    if len(late) == 0:
        return
    usual_ns = int(np.median([unit.end_ns - unit.start_ns for unit in units]))
    far = bool((device.end_ns[linked[judged]] > ends[unit[judged] + 2] + usual_ns).any())
    message = f"{format_count(len(late), 'device span')} reaching beyond the second unit that follows" + (
        ", by more than a unit; path and replay cannot be trusted" if far else ", by less than a unit"
    )
    voids = ["/critical_path", "/replay"] if far else []
    where = (len(late), int(device.event[late[0]]))
    findings.append(_finding(timeline, "unit.overrun", "void" if far else "warn", where, message, voids))


def empty_units(timeline: Timeline, device: int, units: list[Unit]) -> list[int]:
    """Return places of units in which a device ran nothing at all."""
    rows = timeline.device.device == device
    busy = union(timeline.device.start_ns[rows], timeline.device.end_ns[rows])
    bounds = np.array([[unit.start_ns, unit.end_ns] for unit in units], np.int64).reshape(-1, 2)
    inside = covered_before(busy, bounds[:, 1]) - covered_before(busy, bounds[:, 0])
    return np.flatnonzero(inside == 0).tolist()
