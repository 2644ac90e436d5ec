"""From dumps of all ranks to the ranks that hold the job up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.hang.mismatches import find_mismatch, sizes_of
from longpole.advice.hang.situation import bring_together
from longpole.advice.hang.stacks import PHRASES, doing
from longpole.advice.hang.waits import find_roots, reached_from, waits_of
from longpole.records.hang import (
    SCHEMA,
    Hang,
    HangGroup,
    HangMismatch,
    HangOperation,
    HangRoot,
    HangWaiting,
)
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.hang.mismatches import Mismatch
    from longpole.advice.hang.situation import Group, Situation
    from longpole.advice.hang.waits import Roots, Wait
    from longpole.records.flight import FlightDump, FlightEntry, StackDump
    from longpole.records.hang import HangSource, Verdict

_NAMED: Final = 6  # ranks that a sentence names
_TRANSFERS: Final = ("send", "recv")


def explain_hang(
    dumps: Sequence[FlightDump], stacks: Sequence[StackDump], sources: Sequence[HangSource], version: str
) -> Hang:
    """Say which ranks hold a job up.

    Args:
        dumps: One a rank, at least one.
        stacks: Where threads stood, of some ranks.
        sources: The files behind both.
        version: Of the package.
    """
    situation = bring_together(dumps)
    waits = {rank: waits_of(situation, rank) for rank in situation.dumps}
    mismatches = [found for group in situation.groups if (found := find_mismatch(group)) is not None]
    roots = find_roots(situation, waits)
    entries = _roots(situation, waits, roots, mismatches, {stack.rank: stack for stack in stacks})
    is_waiting = any(not wait.is_behind for some in waits.values() for wait in some)
    verdict: Verdict = entries[0].kind if entries else "not_told" if is_waiting else "none"
    known = situation.known_ranks()
    return Hang(
        schema=SCHEMA,
        longpole=version,
        verdict=verdict,
        says=_says(verdict, entries, mismatches, waits),
        ranks=sorted(situation.dumps),
        empty=sorted(rank for rank, dump in situation.dumps.items() if not dump.entries),
        world_size=max((len(key.members) for dump in dumps for key in dump.groups), default=None),
        missing=sorted(known - set(situation.dumps)),
        roots=entries,
        waiting=_waiting(waits, {entry.rank for entry in entries}),
        mismatches=[_mismatch(found) for found in mismatches],
        groups=[_group(group) for group in situation.groups if group.stuck_at() is not None],
        cautions=_cautions(situation, waits),
        sources=list(sources),
    )


def operation_of(entry: FlightEntry) -> HangOperation:
    """Return an operation as it is shown."""
    frame = next((frame for frame in entry.frames if "torch/" not in frame.file), None)
    return HangOperation(
        group=entry.group.name,
        description=entry.group.description,
        sequence=entry.sequence,
        operation=entry.operation,
        sizes=sizes_of(entry),
        dtype=", ".join(dict.fromkeys(entry.input_types)),
        where=f"{frame.function} ({frame.file}:{frame.line})" if frame is not None else "",
    )


def name_group(operation: HangOperation) -> str:
    """Return how to call a group in a sentence."""
    return f"{operation.description} ({operation.group})" if operation.description else f"group {operation.group}"


def name_operation(operation: HangOperation) -> str:
    """Return how to call an operation in a sentence."""
    return f"{operation.operation} number {operation.sequence:,} of {name_group(operation)}"


def name_ranks(ranks: Sequence[int]) -> str:
    """Return ranks in a sentence: `rank 2`, `ranks 0, 1 and 3`, `ranks 0, 1, 2 and 13 more`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown, more = list(map(str, ranks[:_NAMED])), len(ranks) - _NAMED
    last = f"{more} more" if more > 0 else shown.pop()
    return f"ranks {', '.join(shown)} and {last}"


def _roots(
    situation: Situation,
    waits: dict[int, list[Wait]],
    roots: Roots,
    mismatches: list[Mismatch],
    stacks: dict[int, StackDump],
) -> list[HangRoot]:
    """Return the roots; what does not fit goes before who is late, for it may be why somebody is."""
    found: list[HangRoot] = []
    for mismatch in mismatches:
        at = operation_of(mismatch.entry)
        for rank in mismatch.odd:
            says = f"rank {rank} issued {mismatch.forms[rank]} as {_numbered(at)}, others {_others(mismatch, rank)}"
            found.append(_root(situation, waits, stacks, (rank, "mismatch", says, at)))
    if found:
        return found
    held = _held_up(waits)
    for rank in roots.host:
        at = operation_of(held[rank])
        says = f"rank {rank} never came to {name_operation(at)}, and is in no other"
        found.append(_root(situation, waits, stacks, (rank, "host", says, at)))
    for rank in roots.device:
        at = operation_of(next(wait.entry for wait in waits[rank] if wait.is_behind))
        says = f"rank {rank} came to {name_operation(at)} and does not finish it, while others of the group did"
        found.append(_root(situation, waits, stacks, (rank, "device", says, at)))
    kind: Verdict = "order" if roots.order else "transfer"
    for rank in (*roots.order, *roots.transfer):
        entry = next((wait.entry for wait in waits[rank] if wait.for_ranks), waits[rank][0].entry)
        at = operation_of(entry)
        others = sorted({other for wait in waits[rank] for other in wait.for_ranks})
        says = (
            f"rank {rank} is in {name_operation(at)} and waits for {name_ranks(others)}, which waits for it elsewhere"
            if kind == "order"
            else f"rank {rank} is in {name_operation(at)}, as all that take part are"
        )
        found.append(_root(situation, waits, stacks, (rank, kind, says, at)))
    return sorted(found, key=lambda root: (-len(root.waited_for_by), root.rank))


def _root(
    situation: Situation,
    waits: dict[int, list[Wait]],
    stacks: dict[int, StackDump],
    what: tuple[int, Verdict, str, HangOperation],
) -> HangRoot:
    rank, kind, says, at = what
    last = situation.last_of(rank)
    activity, stack = doing(stacks[rank]) if rank in stacks else ("", [])
    return HangRoot(
        rank=rank,
        kind=kind,
        says=f"{says}; {PHRASES[activity]}" if activity else says,
        at=at,
        last=operation_of(last) if last is not None else None,
        doing=activity,
        stack=stack,
        waited_for_by=reached_from(waits, rank),
    )


def _held_up(waits: dict[int, list[Wait]]) -> dict[int, FlightEntry]:
    """Return, for each rank that is waited for, the operation that was issued first of those it holds up.

    Collectives go before transfers, of which a rank holds the other end.
    """
    held: dict[int, FlightEntry] = {}
    for some in waits.values():
        for wait in some:
            for other in wait.for_ranks:
                if other not in held or _is_sooner(wait.entry, held[other]):
                    held[other] = wait.entry
    return held


def _is_sooner(entry: FlightEntry, other: FlightEntry) -> bool:
    return (entry.is_p2p, entry.created_ns or 0) < (other.is_p2p, other.created_ns or 0)


def _numbered(at: HangOperation) -> str:
    return f"number {at.sequence:,} of {name_group(at)}"


def _others(mismatch: Mismatch, rank: int) -> str:
    forms = dict.fromkeys(form for other, form in mismatch.forms.items() if other != rank)
    return " or ".join(forms)


def _says(verdict: Verdict, roots: list[HangRoot], mismatches: list[Mismatch], waits: dict[int, list[Wait]]) -> str:
    if verdict == "none":
        return "every operation that is recorded came to its end"
    if verdict == "not_told":
        unknown = sorted({rank for some in waits.values() for wait in some for rank in wait.unknown})
        waiting = sorted(rank for rank, some in waits.items() if some)
        they = "it" if len(unknown) == 1 else "they"
        verb = "waits" if len(waiting) == 1 else "wait"
        return f"{name_ranks(waiting)} {verb}, and {name_ranks(unknown)} left no dump: {they} may hold the job up"
    ranks = name_ranks([root.rank for root in roots if root.kind == verdict])
    at = name_operation(roots[0].at)
    if verdict == "mismatch":
        return f"{ranks} issued another {mismatches[0].what} than the others as {_numbered(roots[0].at)}"
    return {
        "host": f"{ranks} never came to {_what_is_held(roots)}",
        "device": f"{ranks} came to {at} and did not finish it, while others did",
        "order": f"{ranks} wait for one another: groups are used in another order on each",
        "transfer": f"all members are in {at}, and nothing moves",
    }[verdict]


def _what_is_held(roots: list[HangRoot]) -> str:
    at = name_operation(roots[0].at)
    if roots[0].at.operation in _TRANSFERS:
        return f"the other end of {at}"
    waiting = {other for root in roots for other in root.waited_for_by}
    return f"{at}; {format_count(len(waiting), 'rank')} wait{'s' if len(waiting) == 1 else ''} for that"


def _waiting(waits: dict[int, list[Wait]], roots: set[int]) -> list[HangWaiting]:
    return [
        HangWaiting(rank, operation_of(wait.entry), wait.for_ranks, wait.entry.created_ns)
        for rank, some in waits.items()
        for wait in some
        if rank not in roots and not wait.is_behind
    ]


def _mismatch(found: Mismatch) -> HangMismatch:
    at = operation_of(found.entry)
    forms: dict[str, list[int]] = {}
    for rank, form in found.forms.items():
        forms.setdefault(form, []).append(rank)
    parts = [f"{form} on {name_ranks(ranks)}" for form, ranks in forms.items()]
    return HangMismatch(at, found.what, found.odd, f"{_numbered(at)}: {'; '.join(parts)}")


def _group(group: Group) -> HangGroup:
    stuck_at = group.stuck_at()
    assert stuck_at is not None
    members = group.members.values()
    return HangGroup(
        name=group.key.name,
        description=group.key.description,
        members=list(group.key.members),
        members_inferred=group.is_inferred,
        compare_from=group.compare_from(),
        stuck_at=stuck_at,
        entered=[one.rank for one in members if stuck_at in one.active],
        finished=[one.rank for one in members if one.has_finished(stuck_at)],
        not_entered=[one.rank for one in members if not one.has_entered(stuck_at)],
        no_dump=group.no_dump,
    )


def _cautions(situation: Situation, waits: dict[int, list[Wait]]) -> list[str]:
    """Say what makes the answer less sure."""
    found = []
    missing = sorted({rank for some in waits.values() for wait in some for rank in wait.unknown})
    if missing:
        found.append(f"others wait in groups of {name_ranks(missing)}, without a dump")
    versions = sorted({dump.version or "none" for dump in situation.dumps.values()})
    if len(versions) > 1:
        found.append(f"dumps of different versions ({', '.join(versions)}) are compared")
    inferred = [group.key.name for group in situation.groups if group.is_inferred and group.stuck_at() is not None]
    if inferred:
        groups = format_count(len(inferred), "group")
        found.append(f"no dump lists the members of {groups}: they are taken to be the ranks that used them")
    for group in situation.groups:
        stuck, first = group.stuck_at(), group.compare_from()
        if stuck is not None and first is not None and first > stuck:
            at = f"{stuck:,} of {group.key.description or group.key.name}"
            found.append(
                f"the recorder of a rank has overwritten number {at}: a larger TORCH_FR_BUFFER_SIZE keeps more"
            )
    empty = [rank for rank, dump in situation.dumps.items() if not dump.entries]
    if empty and not any(waits.values()):
        found.append(f"{name_ranks(empty)} recorded no operation: none was issued, or the recorder was off")
    waited_for = {other for some in waits.values() for wait in some for other in wait.for_ranks}
    late = sorted(
        rank for rank, some in waits.items() if some and rank not in waited_for and all(w.is_behind for w in some)
    )
    if late:
        found.append(f"{name_ranks(late)} had not noted the end of the last operation when dumped; nobody waits for it")
    if not any(waits.values()) and _ends_differ(situation):
        found.append(
            "groups ended at different numbers: on gloo an operation that failed looks like one that is done,"
            " so a dump taken behind the failure proves nothing"
        )
    return found


def _ends_differ(situation: Situation) -> bool:
    """Tell whether members of a group on gloo issued differently many operations."""
    return any(
        len({member.last for member in group.members.values()}) > 1
        for group in situation.groups
        if any(entry.backend == "gloo" for member in group.members.values() for entry in member.by_sequence.values())
    )
