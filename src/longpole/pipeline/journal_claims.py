"""Figures that somebody stated in a journal, held against each other as `longpole audit` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UnsetType

from longpole.errors import UsageError
from longpole.pipeline.version import package_version
from longpole.records.journal import Measured
from longpole.records.ledger import Unknown
from longpole.report.journal import ClaimAudit, ClaimCheck, ClaimEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.records.audit import Audit, AuditStatement
    from longpole.records.journal import Claim, Entry

_SIDES: Final = ("before", "after")
_STATE_MORE: Final = (
    "too little is stated to hold it against: say what holds on both sides, as in --claim both:params=7e9"
    " --claim both:gpus=8 --claim both:device=A100"
)
_ANY: Final = {"steps": 1, "peak": "1 PFLOP/s"}  # beside them any one figure can be read by itself
_TOKEN_RATES: Final = ("tokens/s", "tok/s")
_STEP_TIMES: Final = {"ms/step": "ms", "s/step": "s"}


def check_claims(entries: Sequence[Entry]) -> tuple[list[ClaimEntry], list[ClaimAudit]]:
    """Hold the claims of entries against each other, and against what the entries measured.

    Each side of an entry is a statement; those of one job are audited together, since of one model on the same devices
    MFU grows as tokens/s do.

    Returns:
        Every claim with what came of its statement, in the order of the entries; and an audit for each job.
    """
    unread = {
        (entry.id, number): why
        for entry in entries
        for number, claim in enumerate(entry.claims)
        if (why := _why_unread(claim))
    }
    audits: list[ClaimAudit] = []
    checks: dict[tuple[str, str], ClaimCheck | Unknown] = {}
    for job in dict.fromkeys(entry.job for entry in entries if entry.claims):
        of_job = [entry for entry in entries if entry.job == job and entry.claims]
        audit = _audit(of_job, unread, checks)
        if audit is not None:
            audits.append(ClaimAudit(job, audit))
    found = [
        ClaimEntry(entry.id, claim.of, claim.what, claim.stated, _check_of(entry, number, claim, unread, checks))
        for entry in entries
        for number, claim in enumerate(entry.claims)
    ]
    return found, audits


def _check_of(
    entry: Entry,
    number: int,
    claim: Claim,
    unread: dict[tuple[str, int], str],
    checks: dict[tuple[str, str], ClaimCheck | Unknown],
) -> ClaimCheck | Unknown:
    """Return what came of a claim; of one for both sides, the worse."""
    if (entry.id, number) in unread:
        return Unknown(unread[entry.id, number], ["a figure that longpole audit reads"])
    found = [checks[entry.id, side] for side in _sides_of(claim) if (entry.id, side) in checks]
    told = [one for one in found if isinstance(one, ClaimCheck)]
    return max(told, key=_badness) if told else found[0]


def _badness(check: ClaimCheck) -> int:
    from longpole.records.audit import VERDICTS

    return VERDICTS.index(check.verdict)


def _sides_of(claim: Claim) -> tuple[str, ...]:
    """Return the sides of a change that a claim is about."""
    return _SIDES if claim.of == "both" else (claim.of,)


def _why_unread(claim: Claim) -> str:
    """Return why a claim cannot be read as a figure, empty for one that can."""
    from longpole.claims import read_claims

    if claim.of not in (*_SIDES, "both"):
        return f"expected before, after or both; found {claim.of!r}"
    try:
        (statement,) = read_claims({**_ANY, "claim": [{claim.what: claim.stated}]}).statements
    except UsageError as error:
        return f"cannot be read: {error}"
    return f"{statement.unread[0]}; docs/reference/claims.md lists the keys" if statement.unread else ""


def _audit(
    entries: Iterable[Entry],
    unread: dict[tuple[str, int], str],
    checks: dict[tuple[str, str], ClaimCheck | Unknown],
) -> Audit | None:
    """Audit the statements of a job, and say of each side what came of it; None where none could be read."""
    from longpole.claims import audit, read_claims

    names: dict[str, tuple[str, str]] = {}
    tables = []
    for entry in entries:
        for side in _SIDES:
            claims = [
                one for n, one in enumerate(entry.claims) if side in _sides_of(one) and (entry.id, n) not in unread
            ]
            if not claims:
                continue
            name = f"{entry.id} {side}"
            table = {**_measured(entry, side, claims), **{one.what: one.stated for one in claims}, "name": name}
            try:
                read_claims(table)
            except UsageError as error:
                checks[entry.id, side] = Unknown(f"cannot be read: {error}", [])
                continue
            names[name] = (entry.id, side)
            tables.append(table)
    if not tables:
        return None
    found = audit(read_claims({"claim": tables}), version=package_version())
    for statement in found.statements:
        checks[names[statement.name]] = _of_statement(statement, found)
    return found


def _of_statement(statement: AuditStatement, audit: Audit) -> ClaimCheck | Unknown:
    against = [one for one in audit.across if statement.name in one.statements]
    if against:
        return ClaimCheck("inconsistent", f"{against[0].says}, if those stayed the same")
    if statement.verdict == "underdetermined":
        return Unknown(_STATE_MORE, [])
    return ClaimCheck(statement.verdict, statement.says)


def _measured(entry: Entry, side: str, claims: Sequence[Claim]) -> dict[str, str]:
    """Return the figure that an entry measured, unless its claims state it themselves."""
    from longpole.claims.fields import find_field

    stated = {found[0].name for claim in claims if (found := find_field(claim.what)) is not None}
    figure = _figure(entry.measured, side) if isinstance(entry.measured, Measured) else {}
    return {key: text for key, text in figure.items() if key not in stated}


def _figure(measured: Measured, side: str) -> dict[str, str]:
    """Return a measured figure under the key of claims; none where its unit or scope leaves it open.

    >>> _figure(Measured(speedup=1.25, before=1200.0, after=1500.0, unit="tokens/s", scope="total"), "after")
    {'tok_s': '1500'}
    """
    value = measured.before if side == "before" else measured.after
    if isinstance(value, UnsetType) or value <= 0:
        return {}
    rate, _, device = measured.unit.rpartition("/")
    if rate in _TOKEN_RATES and device.lower() in ("gpu", "device"):
        return {"tok_s_gpu": f"{value:.6g}"}
    if measured.unit in _TOKEN_RATES and measured.scope:
        return {"tok_s" if measured.scope == "total" else "tok_s_gpu": f"{value:.6g}"}
    if measured.unit in _STEP_TIMES:
        return {"step_s": f"{value:.6g} {_STEP_TIMES[measured.unit]}"}
    return {}
