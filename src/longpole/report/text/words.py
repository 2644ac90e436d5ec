"""The words of the page: units of work, objects, reasons and ranks, as a person says them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.report.document import RankEntry, Report

IDLE_WORDS: Final = {
    "input": "a batch was being fetched or prepared",
    "artifact": "weights or programs were being loaded",
    "state": "state was being moved on or off",
    "output": "something was being saved or logged",
    "collective": "a communicator was being created",
    "host.gc": "garbage was being collected",
    "host.alloc": "memory was being allocated or freed",
    "host.compile": "compiling, capturing or searching",
    "host.sync": "the program waited for the device",
    "host.dispatch": "in operators, before their launches",
    "host.python": "Python between operators",
    "launch_call": "in the calls that launch work",
    "launch_latency": "from a launch to its start",
    "kernel_gap": "the usual gap between two kernels",
    "device.unexplained": "nothing recorded explains it",
    "unlinked": "no launch recorded for what came next",
}
"""What was going on while the device idled; DESIGN 3.4 defines the reasons."""

WAIT_WORDS: Final = {
    "input": "Nothing ran while a batch was prepared, or only its copy to the device did.",
    "artifact": "Nothing ran while weights or programs were loaded.",
    "state": "State was moved on or off the device, and no kernel ran meanwhile.",
    "output": "Something was saved, logged or copied back, and no kernel ran meanwhile.",
    "collective": "Only communication ran: bytes moved, or a rank waited for a later one.",
    "host": "The device had nothing to do: the next work had not been launched yet.",
    "unknown": "The record does not say what happened in that time.",
}
"""What it means that time is charged to an object."""

_WAIT_WORDS_CPU: Final = {
    "input": "The main thread fetched or prepared a batch, and no operator ran.",
    "collective": "The main thread had no operator to run while ranks communicated.",
    "host": "No operator ran: Python or a call between two of them did.",
}

_IDLE_WORDS_RECORDED: Final = {
    "host.python": "under no span that names an object",
    "collective": "a collective was waited for",
    "host.dispatch": "in work that was declared as compute",
}

_RUNS_SHOWN: Final = 5
_NOUNS: Final = {"trace": "record"}


def wait_words(object_name: str, *, on_cpu: bool) -> str:
    """Say what time charged to an object is; empty for an object without such words."""
    on_device = WAIT_WORDS.get(object_name, "")
    return _WAIT_WORDS_CPU.get(object_name, on_device) if on_cpu else on_device


def idle_words(reason: str, report: Report) -> str:
    """Say what was going on for a reason of idle time; empty for a reason without such words."""
    usual = IDLE_WORDS.get(reason, "")
    return _IDLE_WORDS_RECORDED.get(reason, usual) if is_recorded(report) else usual


def unit_noun(kind: str) -> str:
    """Return what a unit of work is called; a record without markers is its own only unit."""
    return escape(_NOUNS.get(kind, kind)) or "unit"


def plural(n: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "step"), plural(12, "step"), plural(2, "trace")
    ('1 step', '12 steps', '2 records')
    """
    return format_count(n, unit_noun(noun))


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article.

    >>> with_article("step"), with_article("iteration")
    ('a step', 'an iteration')
    """
    return f"an {noun}" if noun[:1] in tuple("aeio") else f"a {noun}"


def is_on_cpu(report: Report) -> bool:
    """Tell whether no row of the report is a device: then threads take the devices' place."""
    return bool(report.ranks) and all(row.device == "cpu" for row in report.ranks)


def is_recorded(report: Report) -> bool:
    """Tell whether programs themselves wrote what the report rests on, through the recorder."""
    return bool(report.run.sources) and all(source.format == "longpole.spans" for source in report.run.sources)


def row_name(row: RankEntry, rows: list[RankEntry]) -> str:
    """Return the name of a row: its rank, and its device where the rank has several."""
    same = sum(other.rank == row.rank for other in rows)
    return f"rank {row.rank}" if same <= 1 else f"rank {row.rank} {escape(row.device)}"


def ranks_as_text(ranks: Iterable[int]) -> str:
    """Write ranks with their ranges joined.

    >>> ranks_as_text([3, 0, 1, 2]), ranks_as_text([5]), ranks_as_text([1, 4])
    ('ranks 0–3', 'rank 5', 'ranks 1, 4')
    """
    ordered = sorted(set(ranks))
    runs: list[list[int]] = []
    for rank in ordered:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    texts = [_run_as_text(low, high) for low, high in runs]
    if len(texts) > _RUNS_SHOWN:
        texts = [*texts[:_RUNS_SHOWN], f"… ({len(ordered)} in all)"]
    return f"{'rank' if len(ordered) == 1 else 'ranks'} {', '.join(texts)}"


def _run_as_text(low: int, high: int) -> str:
    if low == high:
        return f"{low}"
    return f"{low}–{high}" if high > low + 1 else f"{low}, {high}"
