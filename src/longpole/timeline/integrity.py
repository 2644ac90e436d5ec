"""Findings about the evidence: what is wrong with a record, how often, where, and which figures that voids.

A check never repairs. Every code has a page in `docs/reference/integrity.md`.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

Severity: TypeAlias = Literal["note", "warn", "void"]

CODES: Final[dict[str, str]] = {
    "json.string.repaired": "strings with quotes or backslashes that JSON does not allow",
    "json.control_character": "strings with raw control characters",
    "json.utf8.replaced": "bytes that are not UTF-8",
    "json.number.not_finite": "bare inf or nan in place of a number",
    "json.list.cut": "lists that the exporter cut with bare dots",
    "json.syntax.repaired": "stray or missing commas, brackets or bytes between events",
    "json.element.unreadable": "stretches of the file that hold no readable event",
    "json.cut": "the file ends inside an event or before its closing bracket",
    "json.documents": "several JSON documents glued into one file",
    "container.cut": "the compressed stream ends early",
    "container.corrupt": "the compressed stream is damaged",
    "event.not_an_object": "elements of the event list that are no events",
    "event.no_phase": "events without a phase",
    "event.no_timestamp": "events without a usable timestamp",
    "event.no_duration": "complete events without a usable duration",
    "event.negative_duration": "events that end before they start",
    "event.memory_unusable": "memory events that do not say how much of what changed",
    "event.memory_contradicts": "memory events whose total contradicts the ones before and behind",
    "event.unmatched_end": "end events without a begin event",
    "event.unfinished": "begin events without an end event",
    "event.category.unknown": "rows of a category that is not known, taken for device work by their device and stream",
    "event.no_rank": "events of a merged file whose process names no rank",
    "event.time.stray": "events whose time lies absurdly far from all others",
    "event.duplicate": "events that are written twice",
    "kernel.time.missing": "device spans that the profiler could not time",
    "kernel.duration.impossible": "device spans longer than they can have been",
    "host.duration.impossible": "host spans longer than they can have been",
    "kernel.unlinked": "device spans without the call that launched them",
    "kernel.before_launch": "device spans that start before the call that launched them",
    "launch.without_kernel": "launches whose kernels were not recorded",
    "graph.nodes_missing": "graph launches whose kernels were not recorded",
    "python.frame.unclosed": "Python frames that were closed by the profiler's stop",
    "profiler.overhead": "time that the profiler itself took",
    "unit.incomplete": "units of work with missing device spans",
    "unit.empty": "units of work without any device span",
    "unit.mark_left_out": "step marks that overlap others",
    "unit.overrun": "device spans that end after the second unit that follows theirs",
    "file.refused": "files that could not be used at all",
    "nsys.graph.whole": "captured graphs that were recorded as a whole",
    "nsys.range.crossing": "annotations that cross others of their thread, or end on another one",
    "nsys.process.no_device": "recorded processes that used no device",
    "nsys.table.damaged": "tables of a database that could be read in part",
    "spans.cut": "processes whose span files do not end in order",
    "spans.lost": "lines that the recorder did not keep",
    "spans.unreadable": "lines of span files that could not be read",
    "spans.unknown_lines": "lines of span files of a kind that this version does not know",
    "spans.clock": "clocks of recorded processes that were set, or count from other moments",
    "spans.unplaced": "span files of processes that belong to no rank here",
    "spans.beside_traces": "span files left out because profiler traces are there",
    "spans.units_elsewhere": "units of work that other threads carried, or that lie inside others",
    "spans.without_object": "units of which most lies under no span that names an object",
    "rank.assumed": "files that do not say their rank",
    "rank.missing": "ranks of the job without a file",
    "rank.duplicate": "several files of one rank",
    "rank.units_differ": "ranks that recorded other units of work",
    "rank.shares_nothing": "ranks that share no collective with the others",
    "rank.start_spread": "ranks that started to record at different times",
    "collective.sizes_differ": "collectives whose members give different sizes",
    "collective.kinds_differ": "collectives whose members name different kinds",
    "collective.not_on_all_ranks": "collectives that a rank with a trace does not hold",
    "collective.half_recorded": "marks of collectives without their other half",
    "collective.never_entered": "collectives that some ranks entered and others never did",
    "collective.record_differs": "a record of collectives that was measured on other devices or machines",
    "clock.not_aligned": "clocks of ranks that cannot be aligned",
    "device.none": "a record without device spans",
    "operation.incomplete": "timed operations without a usable step, rank, place or type",
    "operation.time_unusable": "timed operations whose start or duration is missing or no finite number",
    "operation.time_stray": "timed operations that start absurdly far from their step's others",
    "operation.negative_duration": "timed operations that end before they start",
    "operation.duration_impossible": "timed operations longer than any can have been",
    "operation.duplicate": "timed operations that are written twice",
    "operation.resolution": "times written too coarsely to order operations",
    "operation.place_conflict": "timed operations that put their rank at another place of the layout",
    "operation.tensor_rank_assumed": "ranks that share a place of the layout",
    "operation.rank_missing": "places of the layout without a rank",
    "operation.step_incomplete": "steps in which operations are missing",
    "operation.circular": "steps whose times contradict each other",
    "operation.replay_off": "a replay of operations that is far off what was measured",
    "operation.unmatched": "sends and receives without the other end",
    "operation.collective_incomplete": "members of collectives of which another is missing",
    "operation.members_unknown": "collectives whose members are not written",
    "operation.ends_early": "operations that end before the last member of their collective starts",
}


class Example(msgspec.Struct, frozen=True):
    """Where one instance of a finding stands.

    Attributes:
        file: Path of the file as it was given.
        event: Number of the event in the file, from 0.
        byte: Offset in the decoded text.
        line: Line number in the decoded text, from 1.
    """

    file: str
    event: int | None = None
    byte: int | None = None
    line: int | None = None


class Finding(msgspec.Struct, frozen=True):
    """One finding about the evidence of one rank or of the run.

    Attributes:
        code: A key of CODES.
        severity: `note` changes no figure, `warn` limits the figures in `voids`, `void` withdraws them.
        rank: The rank, None for the run.
        count: How many instances.
        example: Where the first one stands.
        message: One sentence for a person.
        voids: JSON Pointers into the report; in a rank's own finding `@` stands for that rank's place.
    """

    code: str
    severity: Severity
    rank: int | None
    count: int
    example: Example
    message: str
    voids: list[str] = []
