"""The parts of the page, each made from the report alone; a part that has nothing to say is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from longpole.records.ledger import Unknown
from longpole.report.page.charts import Cell, heat_map
from longpole.report.page.ledger import label_of
from longpole.report.page.markup import Figure, section, share, table, text, time
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.collectives import CostModel
    from longpole.records.critical_path import CriticalPath
    from longpole.records.findings import CandidateEntry, CauseFinding
    from longpole.report.document import Headline, RankEntry, Report, UnitEntry
    from longpole.report.operations import Operations
    from longpole.timeline.integrity import Finding

_One = TypeVar("_One")
_HEAT_ROWS_MAX: Final = 256
_HEAT_COLUMNS_MAX: Final = 200
_ROWS_MAX: Final = 40
_LATE_MAX: Final = 8

_BASIS: Final = {
    "replay": "by replay of the recorded run",
    "ledger": "time charged, not time that you will save",
}

HOLDS_UP: Final = Figure(
    "causes",
    "What holds it up",
    "Causes of lost time, the costliest first. What each costs is how much shorter the period would be without it: by"
    " replay of the recorded run where that can be believed, else what the ledger charges. Costs of several do not add"
    " up, for the next wait takes the place of the one that is gone.",
    "docs/concepts/findings.md",
)
CANDIDATES: Final = Figure(
    "candidates",
    "Worth trying",
    "Changes that apply to this run, each alone, with what the replay predicts and what the change must record so that"
    " longpole verify can judge it. Predicted is not measured.",
    "docs/guides/candidates.md",
)
HEAT: Final = Figure(
    "heat",
    "Ranks and units",
    "How long each unit took on each rank, by the host's clock. A dark row is a slow rank, a dark column a slow step.",
    "docs/concepts/units-of-work.md",
)
PATH: Final = Figure(
    "path",
    "Critical path",
    "The chain of work and waits that the step took, across ranks: shortening anything off it cannot shorten the step"
    " at once. Shares are over the steady units.",
    "docs/concepts/critical-path.md",
)
COLLECTIVES: Final = Figure(
    "collectives",
    "Collectives",
    "Skew is waiting for the last rank, transfer is moving bytes once all are there. The fit is latency plus bytes over"
    " bandwidth; where it cannot be made, the table says why.",
    "docs/concepts/collectives.md",
)
RECORD: Final = Figure(
    "record",
    "The record, and what is not known",
    "What is wrong with the evidence, and what it voids; and figures that this record cannot give, with what would have"
    " to be recorded. Nothing unknown is shown as 0.",
    "docs/reference/integrity.md",
)


def render_header(report: Report) -> str:
    """Return the long pole in a sentence, with its number and its evidence."""
    run, unit = report.run, report.unit
    world = f" of {run.world_size}" if isinstance(run.world_size, int) else ""
    ranks = len(run.ranks_present)
    facts = [
        f"{ranks}{world} rank{'s' if world or ranks != 1 else ''}",
        f"{unit.count} {unit.kind}{'s' if unit.count != 1 else ''}",
    ]
    if isinstance(unit.period_ns.median, int):
        long = format_ns(unit.period_ns.median)
        of = f"a {unit.kind} completes every {long} (median of {unit.period_ns.n})"
        facts.append(f"one {unit.kind} took {long}" if unit.period_ns.n == 1 else of)
    names = sorted({entry.device_name for entry in report.ranks if entry.device_name})
    has_devices = any(entry.device and entry.device != "cpu" for entry in report.ranks)
    facts.append(", ".join(names) if names else "device not named" if has_devices else "no device recorded")
    who = f"<p class=facts>{' · '.join(text(fact) for fact in facts)}</p>"
    if isinstance(report.headline, Unknown):
        return f"<header><h1>Longpole</h1>{who}<p class=pole>No verdict: {text(report.headline.unknown)}</p></header>"
    return f"<header><h1>Longpole</h1>{who}{_pole(report, report.headline)}</header>"


def _pole(report: Report, headline: Headline) -> str:
    found = next((one for one in report.findings if one.id == report.long_pole), None)
    says = f"<p class=pole><span class=badge>the long pole</span> <strong id=pole>{text(headline.says)}</strong></p>"
    if headline.cost_ns_per_unit > 0:
        period = report.unit.period_ns.median
        part = ""
        if isinstance(period, int) and period:
            part = f" ({100 * headline.cost_ns_per_unit / period:.0f} % of a {report.unit.kind})"
        how = _BASIS.get(headline.basis, headline.basis)
        cost = f"<span class=big>{time(headline.cost_ns_per_unit)}</span>{text(part)} · {text(how)}"
        says += f"<p class=cost>{cost}</p>"
    return says + (_evidence(found) if found is not None else "")


def _evidence(found: CauseFinding) -> str:
    rows = [
        f"{text(_named(one.what))}: <b>{text(_figure(one.what, one.value))}</b>"
        + (f" · “{text(one.where.name, 90)}”" if one.where.name else "")
        + (f" on rank {one.where.rank}" if one.where.rank is not None else "")
        for one in found.evidence[:3]
    ]
    items = "".join(f"<li>{row}</li>" for row in rows)
    return f"<ul class=evidence>{items}</ul>" if items else ""


def _named(what: str) -> str:
    """Return what a figure is, without the unit that is written behind it.

    >>> _named("loading_ns_per_unit"), _named("calls per unit")
    ('loading per unit', 'calls per unit')
    """
    return what.replace("_ns", "").replace("_", " ")


def _figure(what: str, value: float | str) -> str:
    """Return a figure of evidence; those whose names say so are times."""
    if isinstance(value, str):
        return value
    if "_ns" in what:
        return format_ns(round(value))
    if "share" in what and 0 <= value <= 1:
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def render_findings(report: Report) -> str:
    """Return what holds the run up."""
    rows = [
        [
            ("► " if one.id == report.long_pole else "") + text(one.says),
            _cost(one),
            share(one.cost_share) if one.cost_share else "–",
            text(one.basis),
            text(one.evidence_grade),
            f"<code>{text(one.cause)}</code>",
        ]
        for one in report.findings[:_ROWS_MAX]
    ]
    if not rows:
        return ""
    return section(HOLDS_UP, table(["cause", "costs", "of a unit", "by", "evidence", "see longpole explain"], rows))


def _cost(one: CauseFinding) -> str:
    cost = one.cost_once_ns if one.once else one.cost_ns_per_unit
    if cost == 0:
        return "–"
    return time(cost) + (" once" if one.once else "")


def render_candidates(report: Report) -> str:
    """Return the changes worth trying, with their contracts; those without a predicted gain stand behind a fold."""
    gains = [one for one in report.candidates if _gain(one) > 0][:_ROWS_MAX]
    others = [one for one in report.candidates if _gain(one) <= 0][:_ROWS_MAX]
    parts = [_candidate_table(gains)] if gains else []
    if others:
        title = f"{len(others)} more that apply, whose gain is none or cannot be predicted"
        parts.append(f"<details><summary>{title}</summary>{_candidate_table(others)}</details>")
    return section(CANDIDATES, *parts)


def _gain(one: CandidateEntry) -> float:
    return one.predicted_gain_share if isinstance(one.predicted_gain_share, float) else 0.0


def _candidate_table(found: Sequence[CandidateEntry]) -> str:
    rows = [
        [
            f"<b><code>{text(one.id)}</code></b><br>{text(one.says)}",
            share(one.predicted_gain_share),
            time(one.predicted_period_ns),
            f"±{share(one.error_share)}" if isinstance(one.error_share, float) else share(one.error_share),
            text(one.effort),
            _contract(one),
        ]
        for one in found
    ]
    head = ["change", "predicted gain", "a unit then every", "pairs of this kind were off by", "effort", "must record"]
    return table(head, rows)


def _contract(one: CandidateEntry) -> str:
    missing = f"<br><em>not recorded yet: {text(', '.join(one.missing))}</em>" if one.missing else ""
    return text(", ".join(one.must_record)) + missing


def render_heat(report: Report) -> str:
    """Return ranks × units, by wall time."""
    if len(report.ranks) < 2:
        return ""
    names = list(dict.fromkeys(u.name for e in report.ranks for u in e.units if u.kind not in ("head", "tail")))
    if not names:
        return ""
    columns = _thinned(names, _HEAT_COLUMNS_MAX)
    rows = _thinned(list(report.ranks), _HEAT_ROWS_MAX)
    by_name = [{unit.name: unit for unit in entry.units} for entry in rows]
    cells = [[_cell(entry, name, units) for name in columns] for entry, units in zip(rows, by_name, strict=True)]
    thin = []
    if len(rows) < len(report.ranks):
        thin.append(f"{len(rows)} of {len(report.ranks)} ranks, evenly chosen")
    if len(columns) < len(names):
        thin.append(f"{len(columns)} of {len(names)} units, evenly chosen")
    known = [cell.value for row in cells for cell in row if cell.value is not None]
    if known:
        thin.append(f"{format_ns(round(min(known)))} to {format_ns(round(max(known)))}, the longer the darker")
    picture = heat_map([label_of(entry) for entry in rows], columns, cells, "Wall time of units by rank")
    return section(HEAT, picture, f"<p class=note>{text('; '.join(thin))}.</p>" if thin else "")


def _thinned(values: Sequence[_One], most: int) -> list[_One]:
    if len(values) <= most:
        return list(values)
    return [values[place * len(values) // most] for place in range(most)]


def _cell(entry: RankEntry, name: str, units: dict[str, UnitEntry]) -> Cell:
    unit = units.get(name)
    if unit is None:
        return Cell(None, f"{label_of(entry)}, {name}: not recorded")
    return Cell(float(unit.wall_ns), f"{label_of(entry)}, {name}: {format_ns(unit.wall_ns)}")


def render_path(report: Report) -> str:
    """Return the critical path by object and rank."""
    path = report.critical_path
    if isinstance(path, Unknown):
        return section(PATH, f"<p class=unknown>Not known: {text(path.unknown)}</p>")
    return section(PATH, f"<p>{text(path.says)}</p>", _path_table(path))


def _path_table(path: CriticalPath) -> str:
    whole = sum(path.by_object_ns.values()) or 1
    units = max(len(path.units), 1)
    ordered = sorted(path.by_object_ns.items(), key=lambda item: -item[1])
    rows = [[text(name), time(total // units), share(total / whole)] for name, total in ordered if total]
    ranks = sorted(path.by_rank_ns.items(), key=lambda item: -item[1])
    by_rank = [[f"rank {text(rank)}", time(total // units), share(total / whole)] for rank, total in ranks if total]
    grades = " · ".join(f"{text(name)} {share(part)}" for name, part in path.by_grade_share.items() if part)
    return (
        "<div class=beside>"
        + table(["object", "mean of a unit", "share"], rows, shape="narrow")
        + (table(["rank", "mean of a unit", "share"], by_rank[:_ROWS_MAX], shape="narrow") if len(by_rank) > 1 else "")
        + "</div>"
        + f"<p class=note>Evidence: {grades}</p>"
    )


def render_collectives(report: Report) -> str:
    """Return what each group of collectives waited and moved."""
    rows = [
        [
            f"{text(one.kind)} {text(one.dtype)}<br><span class=faint>{text(one.group or 'one group', 60)}"
            f" · {len(one.members) or len(one.members_present)} ranks</span>",
            f"{one.count:,}",
            time(one.exposed_ns),
            time(one.skew_ns),
            time(one.transfer_ns),
            text(one.bound),
            _culprit(one.culprit_rank),
            _fit(one.model),
        ]
        for one in report.collectives[:_ROWS_MAX]
    ]
    if not rows:
        return ""
    head = ["operation", "count", "exposed", "skew", "transfer", "bound by", "waits for", "fit"]
    late = "".join(f"<li>{text(one.says)}</li>" for one in report.stragglers[:_LATE_MAX])
    return section(COLLECTIVES, table(head, rows), f"<h3>Who was late</h3><ul>{late}</ul>" if late else "")


def _culprit(rank: int | Unknown) -> str:
    return f"rank {rank}" if isinstance(rank, int) else "–"


def _fit(model: CostModel | Unknown) -> str:
    if isinstance(model, Unknown):
        return time(model)
    source = f"<span class=faint>{text(model.source)}</span>"
    return f"{time(model.alpha_ns)} + bytes / {model.gb_per_s:.3g} GB/s<br>{source}"


def render_record(report: Report | Operations) -> str:
    """Return what is wrong with the evidence, each sort once, and what is not known."""
    sorts: dict[tuple[str, str], list[Finding]] = {}
    for one in report.integrity:
        sorts.setdefault((one.severity, one.code), []).append(one)
    order = ("void", "warn", "note")
    ranked = sorted(sorts.values(), key=lambda found: order.index(found[0].severity))
    notes = "".join(_note(found) for found in ranked[:_ROWS_MAX])
    about = f"<ul>{notes}</ul>" if notes else "<p>Nothing is wrong with the record.</p>"
    return section(RECORD, about, _unknown(report))


def _note(found: Sequence[Finding]) -> str:
    """Return findings of one sort: the first in words, and which other ranks have it too."""
    first = found[0]
    where = f"rank {first.rank}: " if first.rank is not None and len(found) > 1 else ""
    others = sorted({one.rank for one in found[1:] if one.rank is not None and one.rank != first.rank})
    named = ", ".join(str(rank) for rank in others[:8]) + (", …" if len(others) > 8 else "")
    too = f" <span class=faint>and on {'rank' if len(others) == 1 else 'ranks'} {named}</span>" if others else ""
    return (
        f'<li class="{text(first.severity)}"><b>{text(first.severity)}</b> {text(where)}{text(first.message)}{too}'
        f" <code>{text(first.code)}</code></li>"
    )


def _unknown(report: Report | Operations) -> str:
    """Return what is not known, each reason once with how many figures it concerns."""
    reasons: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in report.unknown:
        reasons.setdefault((one.why, tuple(one.missing)), []).append(one.at)
    items = []
    for (why, missing), places in list(reasons.items())[:_ROWS_MAX]:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        record = f" → record {text(', '.join(missing))}" if missing else ""
        items.append(f"<li>{text(why)}{record} <span class=faint>{text(places[0], 80)}{more}</span></li>")
    return f"<h3>Not known</h3><ul>{''.join(items)}</ul>" if items else ""
