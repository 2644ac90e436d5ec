"""`longpole journal add`: from what the user says, a verdict's document and the linked records to one entry."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, UnsetType

from longpole.advice.journal.entry import (
    compare_configs,
    in_throughput,
    last_config,
    make_id,
    measured_from_figures,
    overlay_config,
)
from longpole.advice.journal.lines import is_date, problem_of
from longpole.errors import UsageError
from longpole.pipeline.journal_claims import check_claims
from longpole.pipeline.journal_file import append_entry, find_journal
from longpole.pipeline.journal_records import SIDES, Linked, link_record, read_config
from longpole.pipeline.journal_verdict import read_verdict
from longpole.pipeline.version import package_version
from longpole.records.journal import (
    DECISIONS,
    FILE_NAME,
    VERSION,
    Claim,
    Entry,
    Expected,
    Measured,
)
from longpole.records.verdict import REASONS, VERDICTS
from longpole.report.journal import SCHEMA, JournalDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.journal.lines import Journal
    from longpole.advice.journal.verdict import FromVerdict
    from longpole.records.journal import ConfigChange, ConfigValue

_A_REVERT: Final = "a revert, not measured by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the user says of the effect; None and empty for what is not given.

    Attributes:
        before, after: Figures in `unit`.
        unit: Such as `tokens/s`.
        better: `higher` or `lower`.
        scope: `total` or `per_device`.
        speedup: In place of the figures.
        interval: Of the speed-up.
        level: Of the interval.
        statistic: What the figures are.
        runs: How many a side.
        single_run: Whether one recorded run a side is all there is.
        expected: The expected speed-up.
        candidate: The candidate that it comes from.
        source: Where else it comes from.
        expected_error: How far such predictions were off, as a share of the predicted time.
    """

    before: float | None = None
    after: float | None = None
    unit: str = ""
    better: str = ""
    scope: str = ""
    speedup: float | None = None
    interval: tuple[float, float] | None = None
    level: float | None = None
    statistic: str = ""
    runs: int | None = None
    single_run: bool = False
    expected: float | None = None
    candidate: str = ""
    source: str = ""
    expected_error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What an entry rests on.

    Attributes:
        records: (side, path) of each record.
        no_record: Why there is none.
        verdict_file: A document of `longpole verify --json` that fills in what is not given otherwise.
        config: Keys that are set, as KEY=VALUE.
        config_file: The whole configuration after the change.
        config_before: The whole configuration before it.
    """

    records: Sequence[tuple[str, str]] = ()
    no_record: str = ""
    verdict_file: Path | None = None
    config: Sequence[str] = ()
    config_file: Path | None = None
    config_before: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """What the user says of a change; empty for what is not given.

    Attributes:
        title: In a few words.
        date: A day or an instant in UTC; empty for now.
        who: Who made it.
        job: Which job it is about.
        verdict: One of the words of a verdict.
        reason: Why it is rejected, or anything in a sentence.
        decision: `kept` or `reverted`; empty for `kept` where it is accepted.
        effect: What it was expected to bring, and what it brought.
        evidence: What that rests on.
        part: What became of the part that was to shrink.
        side_effects: What else changed.
        claims: As [before:|after:|both:]WHAT=VALUE.
        reverts: Id of the entry whose change this one takes back.
        notes: Anything else.
        tags: Words to find it by.
    """

    title: str = ""
    date: str = ""
    who: str = ""
    job: str = ""
    verdict: str = ""
    reason: str = ""
    decision: str = ""
    effect: Effect = field(default_factory=Effect)
    evidence: Evidence = field(default_factory=Evidence)
    part: str = ""
    side_effects: Sequence[str] = ()
    claims: Sequence[str] = ()
    reverts: str = ""
    notes: str = ""
    tags: Sequence[str] = ()


def add(new: NewEntry, named: Path | None = None, start: Path | None = None) -> JournalDocument:
    """Add an entry to the journal: the named one, the nearest one, or a new one in the folder.

    Args:
        new: What the user says.
        named: The journal; created where there is none.
        start: Where to look for one; the current folder by default.

    Raises:
        UsageError: Something is missing or contradicts itself, a record is missing, or the file cannot be written.
        InputError: A file that is read is not what was expected.
    """
    start = start or Path()
    path = named or find_journal(None, start) or start / FILE_NAME
    if not path.parent.is_dir():
        msg = f"--file {path}: the folder {path.parent} does not exist; create it or name another file"
        raise UsageError(msg)
    document, verdict_links = read_verdict(new.evidence.verdict_file, path.parent)
    linked = [*_links(new, path.parent), *verdict_links]
    entry = append_entry(path, lambda journal: _entry(new, document, linked, journal))
    return JournalDocument(SCHEMA, package_version(), "add", str(path), [entry], [], *check_claims([entry]))


def _links(new: NewEntry, folder: Path) -> list[Linked]:
    for side, path in new.evidence.records:
        if side not in SIDES:
            msg = f"--record {side}={path}: expected one of {', '.join(SIDES)} before the sign; found {side!r}"
            raise UsageError(msg)
    return [link_record(side, Path(path), folder) for side, path in new.evidence.records]


def _entry(new: NewEntry, found: FromVerdict, linked: list[Linked], journal: Journal) -> Entry:
    """Make the entry that is to stand behind those of a journal.

    Raises:
        UsageError: Something is missing or contradicts itself.
    """
    links = list({(one.link.path, one.link.side): one.link for one in linked}.values())
    if links and new.evidence.no_record:
        msg = f"--no-record: expected no record beside it; found {links[0].path}. Leave one of them out"
        raise UsageError(msg)
    if not links and not new.evidence.no_record:
        msg = (
            "expected the records that the entry rests on (--record before=PATH --record after=PATH, or --from"
            " VERIFY.json); found none. Where there are none, say why with --no-record REASON"
        )
        raise UsageError(msg)
    _check_reverts(new, journal)
    date = _date(new.date)
    title = new.title.strip() or found.title
    verdict, reason = _verdict(new, found)
    config, diff, against = _configs(new, linked, journal)
    entry = Entry(
        v=VERSION,
        id=make_id(date, title, {entry.id for entry in journal.entries}),
        date=date,
        title=title,
        decision=_decision(new, verdict),
        verdict=verdict,
        reason=reason,
        says=found.says,
        job=new.job,
        who=new.who,
        measured=_measured(new.effect, found),
        expected=_expected(new.effect, found),
        diff=diff,
        diff_against=against,
        part=new.part or found.part,
        side_effects=[*new.side_effects, *found.side_effects],
        reverts=new.reverts,
        records=links,
        no_record=new.evidence.no_record,
        claims=[_claim(text) for text in new.claims],
        notes=new.notes,
        tags=list(dict.fromkeys(new.tags)),
        config=config,
    )
    problem = problem_of(entry)
    if problem:
        raise UsageError(problem)
    return entry


def _check_reverts(new: NewEntry, journal: Journal) -> None:
    if not new.reverts:
        return
    known = [entry.id for entry in journal.entries]
    if new.reverts not in known:
        msg = f"--reverts {new.reverts}: there is no such entry; `longpole journal list` shows them"
        raise UsageError(msg)
    if any(entry.reverts == new.reverts for entry in journal.entries):
        msg = f"--reverts {new.reverts}: another entry takes it back already; `longpole journal show` shows which"
        raise UsageError(msg)
    if new.decision not in ("", "reverted"):
        msg = "--reverts: what takes a change back is itself no kept change; leave --decision out"
        raise UsageError(msg)


def _date(text: str) -> str:
    if not text:
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if not is_date(text):
        msg = f"--date: expected a day such as 2026-11-30, or an instant such as 2026-11-30T12:00:00Z; found {text!r}"
        raise UsageError(msg)
    return text


def _verdict(new: NewEntry, found: FromVerdict) -> tuple[str, str]:
    verdict = new.verdict.replace("_", " ") or found.verdict
    if not verdict and new.reverts:
        return "not verifiable", new.reason or _A_REVERT
    if verdict not in VERDICTS:
        msg = f"--verdict: expected one of {', '.join(VERDICTS)}; found {verdict or 'none'}"
        raise UsageError(msg)
    if found.verdict and verdict != found.verdict:
        msg = f"--verdict {new.verdict}: the document says {found.verdict}; leave the option out, or the document"
        raise UsageError(msg)
    reason = new.reason or found.reason
    if verdict == "rejected" and not reason:
        words = ", ".join(word for word, says in REASONS.items() if says.startswith("rejected"))
        msg = f"--verdict rejected: expected a --reason: one of {words}, or a sentence; found none"
        raise UsageError(msg)
    return verdict, reason


def _decision(new: NewEntry, verdict: str) -> str:
    if new.reverts:
        return "reverted"
    decision = new.decision or ("kept" if verdict == "accepted" else "")
    if decision not in DECISIONS:
        found = f"found {decision!r}" if decision else f"the verdict is {verdict}, so nothing is assumed"
        msg = f"--decision: expected {' or '.join(DECISIONS)}; {found}"
        raise UsageError(msg)
    return decision


def _measured(effect: Effect, found: FromVerdict) -> Measured | UnsetType:
    given = _given_effect(effect)
    if isinstance(given, UnsetType):
        return _of_verdict(effect, found.measured)
    ends = effect.interval
    if ends and not ends[0] <= given.speedup <= ends[1]:
        msg = f"--interval: expected it to hold the speed-up, which is {given.speedup:.6g}; found {ends[0]}..{ends[1]}"
        raise UsageError(msg)
    return msgspec.structs.replace(
        given,
        low=ends[0] if ends else UNSET,
        high=ends[1] if ends else UNSET,
        level=UNSET if effect.level is None else effect.level,
        statistic=effect.statistic,
        runs=[] if effect.runs is None else [effect.runs, effect.runs],
        single_run=effect.single_run,
    )


def _given_effect(effect: Effect) -> Measured | UnsetType:
    if effect.before is not None and effect.after is not None:
        if effect.speedup is not None:
            msg = "--speedup: --before and --after say it already; leave it out"
            raise UsageError(msg)
        return measured_from_figures(effect.before, effect.after, effect.unit, effect.better, effect.scope)
    if effect.before is not None or effect.after is not None:
        msg = "--before and --after: expected both, or neither; found one"
        raise UsageError(msg)
    if effect.speedup is not None:
        return Measured(effect.speedup)
    if effect.interval or effect.level is not None or effect.statistic or effect.runs is not None:
        msg = "--interval, --level, --statistic, --runs: expected --before and --after, or --speedup; found neither"
        raise UsageError(msg)
    return UNSET


def _of_verdict(effect: Effect, measured: Measured | UnsetType) -> Measured | UnsetType:
    """Return the effect of a verdict, in the unit that the user asks for.

    Raises:
        UsageError: A unit is given, and no figures or other ones than a verdict can be put into it.
    """
    if not (effect.unit or effect.better or effect.scope):
        return measured
    if isinstance(measured, UnsetType) or not effect.unit:
        msg = "--unit, --better, --scope: expected --before and --after beside them; found neither"
        raise UsageError(msg)
    found = in_throughput(measured, effect.unit)
    if found is None or effect.better or effect.scope not in ("", found.scope):
        msg = (
            f"--unit {effect.unit}: a verdict has time per item of all devices together where it knows items; it can be"
            " put into ITEMS/s, such as tokens/s, and nothing else. Leave --unit, --better and --scope out"
        )
        raise UsageError(msg)
    return found


def _expected(effect: Effect, found: FromVerdict) -> Expected | UnsetType:
    error = UNSET if effect.expected_error is None else effect.expected_error
    if effect.expected is None:
        if not (effect.candidate or effect.source or effect.expected_error is not None):
            return found.expected
        if isinstance(found.expected, UnsetType):
            msg = "--candidate, --expected-from, --expected-error: expected the gain (--expected) beside it; found none"
            raise UsageError(msg)
        return msgspec.structs.replace(
            found.expected,
            candidate=effect.candidate or found.expected.candidate,
            source=effect.source or found.expected.source,
            error_share=found.expected.error_share if error is UNSET else error,
        )
    if not (effect.candidate or effect.source):
        msg = "--expected: expected its source, --candidate ID or --expected-from TEXT (a what-if command); found none"
        raise UsageError(msg)
    return Expected(effect.expected, effect.candidate, effect.source, error)


def _configs(
    new: NewEntry, linked: list[Linked], journal: Journal
) -> tuple[dict[str, ConfigValue], list[ConfigChange], str]:
    """Return the configuration after the change, what differs from the one before, and which that is."""
    evidence = new.evidence
    last, last_id = last_config(journal.entries, new.job)
    of_side = {one.link.side: one.config for one in linked if one.config}
    if evidence.config_file is not None:
        after = read_config("--config-file", evidence.config_file)
    else:
        after = of_side.get("after") or (last if evidence.config else {})
    after = overlay_config(after, evidence.config)
    if not after:
        return {}, [], ""
    if evidence.config_before is not None:
        return after, compare_configs(read_config("--config-before", evidence.config_before), after), "file"
    if of_side.get("before"):
        return after, compare_configs(of_side["before"], after), "record"
    return after, compare_configs(last, after) if last_id else [], last_id


def _claim(text: str) -> Claim:
    what, equals, stated = text.partition("=")
    side, colon, name = what.partition(":")
    of, what = (side, name) if colon else ("after", what)
    if not (equals and what.strip() and stated.strip()) or of not in ("before", "after", "both"):
        msg = f"--claim: expected WHAT=VALUE, before:WHAT=VALUE or both:WHAT=VALUE, such as 'mfu=35 %'; found {text!r}"
        raise UsageError(msg)
    return Claim(what.strip(), stated.strip(), of)
