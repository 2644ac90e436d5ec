"""The verdict in a sentence: the long pole where a cause is named, else the largest wait of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.sums import mean_ledger
from longpole.digest.steady import real_units
from longpole.records.ledger import Unknown
from longpole.report.document import Headline
from longpole.units import format_ns
from longpole.vocabulary.causes import NO_VERDICT

if TYPE_CHECKING:
    from longpole.digest.rank_digest import RankDigest
    from longpole.records.collectives import StragglerEntry
    from longpole.records.critical_path import PathAnswer
    from longpole.records.findings import CauseFinding
    from longpole.records.ledger import Ledger


def make_headline(
    digests: list[RankDigest],
    answer: PathAnswer,
    stragglers: list[StragglerEntry],
    ledgers: dict[tuple[int, str], list[Ledger]],
) -> Headline | Unknown:
    """Name the long pole, else the largest wait without its cause.

    Args:
        digests: The ranks.
        answer: The diagnosis.
        stragglers: Ranks that others waited for.
        ledgers: (rank, device) -> ledgers of its steady units.
    """
    pole = next((finding for finding in answer.findings if finding.id == answer.long_pole), None)
    if pole is not None:
        return _of_finding(pole)
    if answer.why_no_pole is not None and any(finding.cause == NO_VERDICT for finding in answer.findings):
        return answer.why_no_pole
    return _largest_wait(digests, stragglers, ledgers)


def _of_finding(pole: CauseFinding) -> Headline:
    rank = pole.ranks[0] if len(pole.ranks) == 1 else None
    return Headline(pole.says, pole.cause, pole.cost_ns_per_unit, pole.basis, rank, pole.object)


def _largest_wait(
    digests: list[RankDigest], stragglers: list[StragglerEntry], ledgers: dict[tuple[int, str], list[Ledger]]
) -> Headline | Unknown:
    """Name the largest exposed object other than compute, on the row where it is largest.

    Where that is waiting for a rank that is known, the rank is named, and why it is late: a rank that waits is never
    the culprit.
    """
    withheld = next((digest for digest in digests if digest.withheld), None)
    if withheld is not None:
        return Unknown(withheld.withheld, ["a record in which every launch has its kernels"])
    best: tuple[int, int, str, str] | None = None
    wall_ns = 0
    for (rank, device), mine in ledgers.items():
        mean = mean_ledger(mine)
        for name, time in mean.objects.items():
            if name != "compute" and (best is None or time.exposed_ns > best[0]):
                best, wall_ns = (time.exposed_ns, rank, device, name), mean.wall_ns
    if best is None:
        return Unknown("no unit of work was recorded", [])
    exposed_ns, rank, device, name = best
    share = exposed_ns / wall_ns if wall_ns else 0.0
    unit = _unit_word(digests)
    where = f"rank {rank}" if len(digests) > 1 else device
    waiting_ns = _mean_waiting(ledgers[rank, device]) if name == "collective" else None
    caused_ns = sum(entry.caused_ns_per_unit for entry in stragglers)
    if stragglers and 2 * caused_ns >= exposed_ns:
        return _held_up(stragglers, caused_ns, unit, wall_ns)
    note = ", waiting for other ranks included" if name == "collective" and waiting_ns is None else ""
    words = "the host between operators" if device == "cpu" and name == "host" else _OBJECT_WORDS[name]
    says = f"{where}: {words}, {format_ns(exposed_ns)} per {unit} ({share:.0%}){note}"
    return Headline(says, "unknown", exposed_ns, "ledger", rank, name)


def _mean_waiting(ledgers: list[Ledger]) -> int | None:
    waiting_ns = [ledger.objects["collective"].waiting_ns for ledger in ledgers]
    known = [time_ns for time_ns in waiting_ns if isinstance(time_ns, int)]
    return sum(known) // len(known) if known and len(known) == len(waiting_ns) else None


def _held_up(stragglers: list[StragglerEntry], caused_ns: int, unit: str, wall_ns: int) -> Headline:
    """Name the rank that the others wait for, or say that it is not always the same one."""
    first = stragglers[0]
    if first.reason != "profiler_start" and len(stragglers) > 1 and first.share < _ONE_RANK:
        ranks = ", ".join(str(entry.rank) for entry in sorted(stragglers[:8], key=lambda entry: entry.rank))
        share = f" ({caused_ns / wall_ns:.0%})" if wall_ns else ""
        reasons = {entry.reason for entry in stragglers}
        says = f"ranks {ranks} keep the others waiting in turn, {format_ns(caused_ns)} per {unit}{share}"
        says += f": {_TURN_WORDS[first.reason]}" if len(reasons) == 1 and first.reason in _TURN_WORDS else ""
        return Headline(says, "unknown", caused_ns, "ledger", None, "waiting")
    return Headline(first.says, "unknown", first.caused_ns_per_unit, "ledger", first.rank, "waiting")


_TURN_WORDS: Final = {
    "more_work": "whichever is late has more work then",
    "slower_work": "whichever is late computes more slowly then",
    "host": "the host of whichever is late has nothing launched",
    "input": "whichever is late gets its input later",
    "output": "whichever is late saves, logs or writes",
    "pause": "whichever is late pauses, and nothing recorded says why",
}
_ONE_RANK: Final = 0.5  # of the waiting: a rank that causes less is not the one

_OBJECT_WORDS: Final = {
    "collective": "exposed communication",
    "input": "waiting for input",
    "artifact": "loading artifacts",
    "state": "moving state",
    "output": "writing output",
    "host": "the host holds the device up",
    "unknown": "idle for no recorded reason",
}


def _unit_word(digests: list[RankDigest]) -> str:
    kinds = [unit.kind for unit in real_units(digests[0].rows[0].units)]
    return {"trace": "record"}.get(kinds[0], kinds[0]) if kinds else "unit"
