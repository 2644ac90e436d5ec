"""`longpole candidates`: replay a run, find what holds it up, and say which changes are worth trying."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

from longpole.advice.catalogue import load_catalogue
from longpole.advice.diagnose import diagnose
from longpole.advice.figures import run_view
from longpole.advice.propose import propose
from longpole.errors import UsageError
from longpole.pipeline.replays import replay_run, scene_of
from longpole.pipeline.whatif import unit_kind, what_if_of
from longpole.records.ledger import Unknown
from longpole.report.build import run_summary
from longpole.report.candidates import SCHEMA, Candidates, CheckEntry, Explanation, Overlap, RowVerdict
from longpole.whatif.replay import Replayed, median_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from longpole.advice.catalogue import Row
    from longpole.advice.judge import Check, Judgement
    from longpole.advice.propose import Proposal, Together
    from longpole.pipeline.reading import ReportOptions
    from longpole.pipeline.replays import RunReplay
    from longpole.records.findings import CauseFinding


def find_candidates(
    paths: Sequence[str],
    options: ReportOptions,
    *,
    catalogue: Path | None = None,
    explain: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Candidates:
    """Say which changes are worth trying on a run.

    Args:
        paths: Files, folders and patterns; together they are one run.
        options: What to read, and how.
        catalogue: The user's rows, over the shipped ones.
        explain: Id of a row whose whole contract is asked for.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Raises:
        UsageError: The catalogue has a mistake, no row has that id, or a path, an option or the choice of a run is
            wrong.
        InputError: No file could be used.
    """
    from longpole.pipeline.reading import selection_of
    from longpole.pipeline.version import package_version

    rows = load_catalogue(catalogue)
    check_id(rows, explain)
    run = replay_run(paths, options, progress)
    findings, proposal = propose_for(run, rows, paths, options.rules)
    replayed = run.replayed if isinstance(run.replayed, Replayed) else run.parts
    together = proposal.together
    return Candidates(
        schema=SCHEMA,
        longpole=package_version(),
        run=run_summary(run.run.digests, selection_of(options)),
        unit_kind=unit_kind(run),
        catalogue=str(catalogue or ""),
        measured_period_ns=_none_yet(run) if replayed is None else median_ns(replayed.measured_ns),
        replayed_period_ns=_none_yet(run) if replayed is None else median_ns(replayed.replayed_ns),
        replay=_none_yet(run) if replayed is None else replayed.judgement,
        findings=findings,
        candidates=proposal.entries,
        together=what_if_of(run, together.changes, options) if together is not None else None,
        overlap=_overlap(together) if together is not None else None,
        rows=[
            RowVerdict(judged.row.id, judged.row.table, judged.verdict, judged.because())
            for judged in proposal.judgements.values()
        ],
        explained=_explained(proposal.judgements[explain]) if explain is not None else None,
    )


def propose_for(
    run: RunReplay, rows: Sequence[Row], paths: Sequence[str] = (), rules: Path | None = None
) -> tuple[list[CauseFinding], Proposal]:
    """Diagnose a replayed run, and propose changes for it.

    Args:
        run: The run with its graph and replay, or why there are none.
        rows: The catalogue.
        paths: The traces, for commands that can be typed.
        rules: The user's own naming rules.

    Returns:
        The causes found, and what is worth trying.
    """
    scene = scene_of(run, rules)
    findings = diagnose(scene).findings
    return findings, propose(rows, run_view(scene, findings), scene.ground or run.parts or _none_yet(run), paths)


def check_id(rows: Sequence[Row], asked: str | None) -> None:
    """Refuse an id that no row has.

    Raises:
        UsageError: No row has it.
    """
    ids = [row.id for row in rows]
    if asked is None or asked in ids:
        return
    near = get_close_matches(asked, ids, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    msg = (
        f"--explain {asked}: expected the id of a row of the catalogue ({', '.join(ids)}); found none of that id{hint}"
    )
    raise UsageError(msg)


def _none_yet(run: RunReplay) -> Unknown:
    """Return why there is no replay."""
    for part in (run.graph, run.replayed):
        if isinstance(part, Unknown):
            return part
    return Unknown("nothing was replayed")


def _overlap(together: Together) -> Overlap:
    saving = together.saving_ns
    overlap = saving if isinstance(saving, Unknown) else together.sum_ns - saving
    return Overlap(together.ids, together.left_out, together.sum_ns, saving, overlap)


def _explained(judged: Judgement) -> Explanation:
    row = msgspec.structs.asdict(judged.row)
    same = {name: row[name] for name in Explanation.__struct_fields__ if name in row}
    same |= {
        "verdict": judged.verdict,
        "why": judged.because(),
        "applies_when": [_check(check) for check in judged.wanted],
        "not_when": [_check(check) for check in judged.against],
        "missing": judged.missing,
    }
    return Explanation(**same)


def _check(check: Check) -> CheckEntry:
    return CheckEntry(check.says, check.found, check.holds, check.why)
