"""Turn what went wrong while reading into findings, and refuse what no figure may be taken from."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec
import numpy as np

from longpole.errors import InputError, NotATraceError, TwoWritersError
from longpole.readers.kineto.event import kind_of_category
from longpole.readers.kineto.recovery import looks_like_two_writers
from longpole.timeline.columns import HOST_KINDS
from longpole.timeline.integrity import CODES, Example, Finding, Severity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.readers.kineto.begin_end import Paired
    from longpole.readers.kineto.raw import RawTrace
    from longpole.readers.kineto.read import Break
    from longpole.readers.kineto.recovery import Damage

_NEARBY: Final = 500  # events on each side of a break that tell who wrote there
_LOSSES: Final = frozenset({"json.element.unreadable", "json.cut", "container.cut", "container.corrupt"})


class Complaints:
    """Collects the findings of one rank of a file."""

    def __init__(
        self, path: str, raw: RawTrace, rank: int | None = None, inherited: list[Finding] | None = None
    ) -> None:
        self.path = path
        self.raw = raw
        self.rank = rank
        self.findings: list[Finding] = list(inherited or [])

    def for_rank(self, rank: int | None) -> Complaints:
        """Return a collector for one rank, with the file's own findings first."""
        inherited = [msgspec.structs.replace(finding, rank=rank) for finding in self.findings]
        own = Complaints(self.path, self.raw, rank, inherited)
        own._of_decoding()
        return own

    def rows(
        self,
        code: str,
        severity: Severity,
        rows: NDArray[np.int64] | NDArray[np.intp],
        voids: list[str],
        remark: str = "",
    ) -> None:
        """Complain of spans of the file, if there are any; a remark ends the message."""
        if len(rows) == 0:
            return
        event = int(self.raw.span["event"][rows[0]])
        name = self.raw.names[int(self.raw.span["name"][rows[0]])]
        message = f"{len(rows):,} {CODES[code]}, the first one {name[:80]!r} (event {event:,})"
        self._add(code, severity, len(rows), Example(self.path, event), message + remark, voids)

    def events(self, code: str, severity: Severity, events: NDArray[np.uint32]) -> None:
        """Complain of events that are no spans, if there are any."""
        if len(events):
            message = f"{len(events):,} {CODES[code]}, the first one event {events[0]:,}"
            self._add(code, severity, len(events), Example(self.path, int(events[0])), message, [])

    def edges(self, paired: Paired) -> None:
        """Complain of begin and end events without a partner."""
        for code, events in (("event.unmatched_end", paired.extra_ends), ("event.unfinished", paired.unfinished)):
            if events:
                message = f"{len(events):,} {CODES[code]}, the first one event {events[0]:,}"
                self._add(code, "note", len(events), Example(self.path, events[0]), message, [])

    def refuse_no_timed_event(self) -> None:
        """Refuse a file without a single complete event.

        Raises:
            NotATraceError: There is none.
        """
        raw = self.raw
        if raw.span and len(raw.span["start_ns"]):
            return
        n_foreign = sum(len(raw.skipped.get(reason, ())) for reason in ("not_an_object", "no_phase"))
        if not raw.header and n_foreign == raw.n_events and (raw.n_events or raw.damages):
            found = "a list in which no element is an event of a profiler" if raw.n_events else "text behind a bracket"
            raise NotATraceError.at(self.path, None, found, "Give the JSON trace of a profiler")
        what = "no event at all" if raw.n_events == 0 else f"{raw.n_events:,} events, none of them timed"
        hint = "The profiler recorded nothing (an idle moment, or the wrong activities were chosen)"
        raise NotATraceError.at(self.path, None, f"no timed events: {what}", hint)

    def refuse_nothing_placed(self) -> NoReturn:
        """Refuse a file whose timed events are no work of host or device.

        Raises:
            NotATraceError: Always.
        """
        found = f"no timed events of host or device among {self.raw.n_events:,}"
        raise NotATraceError.at(self.path, None, found, "Record CPU and device activities")

    def refuse_merged(self, programs: list[int]) -> NoReturn:
        """Refuse a file with the ranks of several programs whose device rows cannot be told apart.

        Raises:
            InputError: Always.
        """
        some = ", ".join(map(str, programs[:4])) + (" …" if len(programs) > 4 else "")
        found = f"{len(programs)} programs in one file (processes {some}), and nothing tells whose the device rows are"
        raise InputError.at(self.path, None, found, "Give each rank's own file, not the merged one")

    def refuse_two_writers(self, breaks: list[Break]) -> None:
        """Refuse a file into which two processes wrote at once.

        Raises:
            TwoWritersError: The file breaks off mid-event and goes on with another process's events.
        """
        if not breaks or not self.raw.span:
            return
        borders = [0, *(broken.event for broken in breaks), self.raw.n_events]
        for place, broken in enumerate(breaks, 1):
            low, high = max(borders[place - 1], broken.event - _NEARBY), min(borders[place + 1], broken.event + _NEARBY)
            before, after = self._host_pids(low, broken.event), self._host_pids(broken.event, high)
            if looks_like_two_writers([broken.damage], before, after):
                found = "damaged, looks like two writers: an event breaks off and another process's text goes on"
                hint = "Have every rank write to a file of its own; no figure can be taken from this one"
                error = TwoWritersError.at(self.path, broken.damage.byte, found, hint)
                raise TwoWritersError(str(error))

    def _host_pids(self, low: int, high: int) -> set[str]:
        """Return the processes of the host rows among some events."""
        raw = self.raw
        hosts = [code for code, category in enumerate(raw.categories) if kind_of_category(category) in HOST_KINDS]
        near = (raw.span["event"] >= low) & (raw.span["event"] < high) & np.isin(raw.span["category"], hosts)
        return {str(raw.tracks[track][0]) for track in np.unique(raw.span["track"][near]).tolist()}

    def _of_decoding(self) -> None:
        first: dict[str, Damage] = {}
        counts: Counter[str] = Counter()
        for damage in self.raw.damages:
            first.setdefault(damage.code, damage)
            counts[damage.code] += damage.count
        for code, damage in first.items():
            place = f" (line {damage.line:,}, byte {damage.byte:,})" if damage.line else f" (byte {damage.byte:,})"
            message = f"{counts[code]:,} × {CODES[code]}: {damage.message}{place}"
            severity: Severity = "warn" if code in _LOSSES else "note"
            self._add(code, severity, counts[code], Example(self.path, None, damage.byte, damage.line), message, [])
        for reason, events in self.raw.skipped.items():
            code = f"event.{reason}"
            message = f"{len(events):,} {CODES[code]} left out, the first one event {min(events):,}"
            self._add(code, "note", len(events), Example(self.path, min(events)), message, [])

    def _add(self, code: str, severity: Severity, count: int, example: Example, message: str, voids: list[str]) -> None:
        self.findings.append(Finding(code, severity, self.rank, count, example, message, voids))
