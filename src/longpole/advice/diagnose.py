"""From a run to its diagnosis: ask every rule, price what it suspects, and name the long pole (REPORT-JSON)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.advice.findings import RULES
from longpole.advice.pricing import price
from longpole.records.findings import CauseFinding, Evidence, Place
from longpole.records.ledger import Unknown
from longpole.units import format_ns
from longpole.vocabulary.causes import CAUSES, NO_VERDICT, NO_WAIT

if TYPE_CHECKING:
    from longpole.advice.pricing import Price
    from longpole.advice.scene import Scene
    from longpole.advice.suspect import Suspect
    from longpole.timeline.integrity import Finding as IntegrityFinding

_PAGE: Final = "docs/reference/causes/{}.md"
_RECORDING: Final = "profiler_start_skew"
_SURE: Final = ("recorded", "ordered")


@dataclass(slots=True)
class Diagnosis:
    """What holds a run up.

    Attributes:
        findings: The most costly first.
        long_pole: Id of the finding that is the long pole; None where no verdict can be given.
        why_none: Why there is none; None where there is one.
    """

    findings: list[CauseFinding] = field(default_factory=list)
    long_pole: str | None = None
    why_none: Unknown | None = None


def diagnose(scene: Scene) -> Diagnosis:
    """Find what holds a run up.

    Args:
        scene: The run.
    """
    if scene.withheld:
        return _incomplete(scene)
    suspects = [suspect for rule in RULES for suspect in rule.find(scene)]
    kept = sorted(_without_doubles(_priced(scene, suspects)), key=lambda pair: (-pair[1].weight_ns, pair[0].cause))
    findings = [_finding(scene, suspect, cost, place) for place, (suspect, cost) in enumerate(kept, 1)]
    return _with_long_pole(scene, findings, [cost for _, cost in kept])


def _priced(scene: Scene, suspects: list[Suspect]) -> list[tuple[Suspect, Price]]:
    """Price the suspects, tier by tier, and keep those that cost enough."""
    least = scene.settings.finding_min_share
    kept: list[tuple[Suspect, Price]] = []
    for tier in sorted({suspect.tier for suspect in suspects}):
        given = [change for suspect, _ in kept if suspect.holds_host for change in suspect.remove]
        mine = [suspect for suspect in suspects if suspect.tier == tier]
        priced = [(suspect, price(scene, suspect, given if tier else ())) for suspect in mine]
        kept += [pair for pair in priced if pair[0].always or pair[1].share >= least]
    surer = any(suspect.once_ns is None and not (suspect.always or suspect.hypothesis) for suspect, _ in kept)
    return [pair for pair in kept if not (surer and pair[0].hypothesis)]


def _without_doubles(priced: list[tuple[Suspect, Price]]) -> list[tuple[Suspect, Price]]:
    """Keep one finding a cause and set of ranks: the costlier."""
    best: dict[tuple[str, tuple[int, ...]], tuple[Suspect, Price]] = {}
    for pair in priced:
        key = (pair[0].cause, tuple(pair[0].ranks))
        if key not in best or best[key][1].weight_ns < pair[1].weight_ns:
            best[key] = pair
    return list(best.values())


def _finding(scene: Scene, suspect: Suspect, cost: Price, place: int) -> CauseFinding:
    once = suspect.once_ns is not None
    per_unit = "in all, once" if once else f"per {unit_word(scene)}"
    other_ns = cost.cost_ns if cost.otherwise_ns is None else cost.otherwise_ns
    bounds_ns = [suspect.once_ns or 0] if once else sorted({cost.cost_ns, other_ns})
    cost_text = f"{' to '.join(format_ns(bound_ns) for bound_ns in bounds_ns)} {per_unit}"
    return CauseFinding(
        id=f"f{place}",
        cause=suspect.cause,
        object=CAUSES[suspect.cause],
        stage=suspect.stage,
        ranks=sorted(suspect.ranks),
        units=list(suspect.units) or list(scene.units),
        cost_ns_per_unit=cost.cost_ns,
        cost_statistic=cost.statistic,
        cost_share=0.0 if once else cost.share,
        basis=cost.basis,
        ceiling_ns=cost.ceiling_ns,
        once=once,
        cost_once_ns=suspect.once_ns or 0,
        evidence_grade=suspect.grade,
        rests_on=_rests_on(scene) if cost.basis == "replay" else 1.0,
        says=suspect.says.replace("{cost}", cost_text),
        evidence=[*suspect.evidence, *_worth_acting_on(scene, suspect.cause)],
        what_if=list(suspect.what_if),
        page=_PAGE.format(suspect.cause),
        cost_between_ns=bounds_ns if len(bounds_ns) > 1 else [],
    )


def _worth_acting_on(scene: Scene, cause: str) -> list[Evidence]:
    """Return how much of the unit collectives are in service: from `acting_min_share` on they are worth acting on."""
    if CAUSES[cause] != "collective":
        return []
    service_ns = wall_ns = 0
    for digest in scene.digests:
        for unit in scene.counted(digest.rows[0]):
            own_ns = unit.ledger.objects["collective"].service_ns
            if isinstance(own_ns, int):
                service_ns, wall_ns = service_ns + own_ns, wall_ns + unit.ledger.wall_ns
    if not wall_ns:
        return []
    share, least = service_ns / wall_ns, scene.settings.acting_min_share
    word = "worth acting on" if share >= least else "little to act on"
    what = f"collectives in service, share of the unit ({word}: the line is at {least:g})"
    return [Evidence(what, round(share, 4), Place())]


def unit_word(scene: Scene) -> str:
    """Return what a unit of the run is called."""
    kinds = [u.kind for u in scene.digests[0].rows[0].units if u.kind not in ("head", "tail")]
    return {"trace": "record"}.get(kinds[0], kinds[0]) if kinds else "unit"


def _rests_on(scene: Scene) -> float:
    """Return the share of the observed path that is recorded or ordered."""
    if scene.ground is None:
        return 1.0
    from longpole.graph.kinds import GRADES
    from longpole.graph.path import UNEXPLAINED

    pieces = scene.ground.replayed.observed
    sure = [GRADES.index(name) for name in _SURE]
    mine = sum(int(pieces.dur_ns[(pieces.grade == code) & (pieces.kind != UNEXPLAINED)].sum()) for code in sure)
    return mine / max(int(pieces.dur_ns.sum()), 1)


def _with_long_pole(scene: Scene, findings: list[CauseFinding], costs: list[Price]) -> Diagnosis:
    """Name the costliest finding over the steady units, else the costliest one-off, else the work itself."""
    least = scene.settings.long_pole_min_share
    start = next((finding for finding in findings if finding.cause == _RECORDING), None)
    if start is not None and not scene.steady.moved:
        # No unit lies behind the start of all recordings, so that nothing else can be told across ranks.
        return Diagnosis(findings, start.id)
    steady = [finding for finding in findings if not finding.once]
    if sum(finding.cost_share for finding in steady) >= least:
        return Diagnosis(findings, steady[0].id)
    once = [(f, cost.share) for f, cost in zip(findings, costs, strict=True) if f.once]
    if once:
        pole, share = max(once, key=lambda pair: pair[1])
        if share >= least:
            return Diagnosis(findings, pole.id)
    return _nothing_waits(scene, findings)


def _nothing_waits(scene: Scene, findings: list[CauseFinding]) -> Diagnosis:
    """Say that the device is the long pole, or what waits without a name."""
    works_ns = scene.exposed_ns("compute")
    wall_ns = max(sum(scene.exposed_ns(name) for name in _OBJECTS), 1)
    # What computes on the path of a run is the measure: ranks that wait for it compute less.
    share = max(works_ns / wall_ns, _on_path(scene))
    largest = max((n for n in _OBJECTS if n != "compute"), key=scene.exposed_ns)
    if share < scene.settings.gpu_work_min_share:
        why = Unknown(
            f"{1 - share:.0%} of the {unit_word(scene)} is spent waiting, most of it for {largest}, and no rule names"
            " a cause",
            ["Python stacks or annotations of the host's activities", "traces of all ranks"],
        )
        return Diagnosis(findings, None, why)
    word = unit_word(scene)
    on_device = any(row.device != "cpu" for digest in scene.digests for row in digest.rows)
    what = "the device is the long pole: it works" if on_device else "computing is the long pole: it goes on"
    rest = scene.exposed_ns(largest) / wall_ns
    # Ranks that wait for one that computes are no rest: the path says what they wait for.
    waits = rest >= scene.settings.long_pole_min_share and share <= 1 - scene.settings.long_pole_min_share
    tail = f"{rest:.0%} goes to {largest}, for which no rule names a cause" if waits else "nothing waits for long"
    says = f"{what} for {share:.0%} of the {word}, and {tail}"
    evidence = [Evidence("computing, share of the unit", share, Place())]
    ranks = [digest.rank for digest in scene.digests]
    pole = CauseFinding(
        id=f"f{len(findings) + 1}",
        cause=NO_WAIT,
        object=CAUSES[NO_WAIT],
        stage="",
        ranks=ranks,
        units=list(scene.units),
        cost_ns_per_unit=0,
        cost_statistic="median",
        cost_share=0.0,
        basis="replay" if scene.ground is not None else "ledger",
        ceiling_ns=0,
        once=False,
        cost_once_ns=0,
        evidence_grade="recorded",
        rests_on=_rests_on(scene),
        says=says,
        evidence=evidence,
        page=_PAGE.format(NO_WAIT),
    )
    return Diagnosis([*findings, pole], pole.id)


_OBJECTS: Final = ("compute", "collective", "input", "artifact", "state", "output", "host", "unknown")


def _on_path(scene: Scene) -> float:
    if scene.ground is None:
        return 0.0
    sums = scene.ground.replayed.path.by_object_ns()
    return float(sums[_OBJECTS.index("compute")] / max(float(sums.sum()), 1.0))


def _incomplete(scene: Scene) -> Diagnosis:
    """Withhold the verdict: device spans are missing from the record."""
    ranks = [d.rank for d in scene.digests if d.withheld or any(u.incomplete for u in d.rows[0].units)]
    missing = ["a record in which every launch has its kernels"]
    finding = CauseFinding(
        id="f1",
        cause=NO_VERDICT,
        object=CAUSES[NO_VERDICT],
        stage="",
        ranks=ranks,
        units=list(scene.units),
        cost_ns_per_unit=0,
        cost_statistic="median",
        cost_share=0.0,
        basis="ledger",
        ceiling_ns=0,
        once=False,
        cost_once_ns=0,
        evidence_grade="recorded",
        rests_on=0.0,
        says=f"no verdict: {scene.withheld}",
        evidence=[Evidence(f.code, f.count, Place(f.rank, f.message)) for f in _about_the_record(scene)],
        page=_PAGE.format(NO_VERDICT),
    )
    return Diagnosis([finding], None, Unknown(scene.withheld, missing))


def _about_the_record(scene: Scene) -> list[IntegrityFinding]:
    found = [f for digest in scene.digests for f in digest.findings if f.severity != "note"]
    return sorted(found, key=lambda f: f.severity != "void")[:8]
