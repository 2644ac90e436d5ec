"""`longpole whatif`: replay a run, change it, replay it again; what came out, and how far to trust it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.digest.steady import real_units
from longpole.digest.transfer_costs import TransferCosts
from longpole.pipeline.collective_record import DIFFERS
from longpole.pipeline.replays import ground_of, replay_run
from longpole.records.ledger import Unknown
from longpole.records.replay import Replay, UnitErrors
from longpole.report.build import run_summary
from longpole.report.collectives import written_model
from longpole.report.whatif import SCHEMA, ChangeEntry, NextLongPole, PricedBy, Refused, WhatIf, WhatIfError
from longpole.whatif.pairs import kind_of, spread_of
from longpole.whatif.parts_replay import predict_parts
from longpole.whatif.predict import predict
from longpole.whatif.replay import median_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.graph.run_graph import RunGraph
    from longpole.pipeline.reading import ReportOptions
    from longpole.pipeline.replays import RunReplay
    from longpole.whatif.change import Change
    from longpole.whatif.draft import Draft, TransferCost
    from longpole.whatif.parts_replay import PartsReplay
    from longpole.whatif.predict import Prediction
    from longpole.whatif.replay import Replayed


def what_if(
    paths: Sequence[str],
    changes: Sequence[Change | Callable[[Draft], None]],
    options: ReportOptions,
    progress: Callable[[str, int, int], None] | None = None,
) -> WhatIf:
    """Predict the period of a run with changes.

    Args:
        paths: Files, folders and patterns; together they are one run.
        changes: Made in order and replayed together; a function alters a draft of the graph.
        options: What to read, and how.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Raises:
        UsageError: A path, an option or the choice of a run is wrong.
        InputError: No file could be used.
    """
    return what_if_of(replay_run(paths, options, progress), changes, options)


def what_if_of(
    replayed: RunReplay, changes: Sequence[Change | Callable[[Draft], None]], options: ReportOptions
) -> WhatIf:
    """Predict the period of a run that is replayed already.

    Args:
        replayed: The run and its replay, or why there is none.
        changes: Made in order and replayed together.
        options: What was read, and how.
    """
    from longpole.pipeline.reading import selection_of
    from longpole.pipeline.version import package_version

    common = {
        "schema": SCHEMA,
        "longpole": package_version(),
        "run": run_summary(replayed.run.digests, selection_of(options)),
        "unit_kind": unit_kind(replayed),
        "what_if_error": _what_if_error(replayed, changes),
    }
    if replayed.parts is not None:
        found = predict_parts(replayed.parts, changes)
        return _answered(common, changes, replayed, replayed.parts, (found, replayed.parts.source.cost))
    if isinstance(replayed.replayed, Unknown):
        return _unanswered(common, changes, replayed.replayed)
    graph: RunGraph = replayed.graph  # type: ignore[assignment]  # there is a replay, so there is a graph
    ground = ground_of(replayed.run, replayed.across, graph, replayed.replayed, replayed.settings)
    return _answered(common, changes, replayed, replayed.replayed, (predict(ground, changes), ground.cost))


def _answered(
    common: dict[str, Any],
    changes: Sequence[Change | Callable[[Draft], None]],
    run: RunReplay,
    replayed: Replayed | PartsReplay,
    predicted: tuple[Prediction, TransferCost],
) -> WhatIf:
    found, cost = predicted
    refused = Refused(found.refused) if found.refused else None
    measured_ns, replayed_ns = median_ns(replayed.measured_ns), median_ns(replayed.replayed_ns)
    withheld = Unknown(f"refused: {found.refused}", []) if refused else None
    rows: Sequence[int | Unknown] = found.rows or [Unknown(found.refused, [])] * len(changes)
    objects = found.before_ns.keys() | found.after_ns.keys()
    saving = {name: found.before_ns.get(name, 0) - found.after_ns.get(name, 0) for name in sorted(objects)}
    return WhatIf(
        **common,
        changes=[ChangeEntry(_text(change), _says(change), n) for change, n in zip(changes, rows, strict=True)],
        measured_period_ns=measured_ns,
        replayed_period_ns=replayed_ns,
        predicted_period_ns=withheld or found.predicted_ns,
        saving_ns=withheld or replayed_ns - found.predicted_ns,
        mean_saving_ns=withheld or found.replayed_mean_ns - found.predicted_mean_ns,
        by_object_ns={} if refused else saving,
        path_before_ns=found.before_ns,
        path_after_ns={} if refused else found.after_ns,
        replay=_with_overlap(replayed.judgement, found),
        refused=refused,
        next_long_pole=withheld or _next(found, run),
        priced_by=_priced_by(cost, run),
    )


def _priced_by(cost: TransferCost, run: RunReplay) -> list[PricedBy]:
    used = cost.used() if isinstance(cost, TransferCosts) else []
    doubt = next((finding.message for finding in run.refused if finding.code == DIFFERS), "")
    return [
        PricedBy(kind, n, written_model(model), doubt if model.source == "record" else "") for kind, n, model in used
    ]


def _unanswered(common: dict[str, Any], changes: Sequence[Change | Callable[[Draft], None]], why: Unknown) -> WhatIf:
    unit = UnitErrors(why, why)
    return WhatIf(
        **common,
        changes=[ChangeEntry(_text(change), _says(change), why) for change in changes],
        measured_period_ns=why,
        replayed_period_ns=why,
        predicted_period_ns=why,
        saving_ns=why,
        mean_saving_ns=why,
        by_object_ns={},
        path_before_ns={},
        path_after_ns={},
        replay=Replay(why, unit, why, why, why, why, why, "refused", 0),
        refused=Refused(why.unknown, why.missing),
        next_long_pole=why,
    )


def _text(change: Change | Callable[[Draft], None]) -> str:
    to_text = getattr(change, "to_text", None)
    return str(to_text()) if to_text is not None else ""


def _says(change: Change | Callable[[Draft], None]) -> str:
    says = getattr(change, "says", None)
    if says is not None:
        return str(says())
    doc = (getattr(change, "__doc__", None) or "").strip().splitlines()
    return doc[0] if doc else f"the function {getattr(change, '__name__', 'given')}"


def _with_overlap(judgement: Replay, found: Prediction) -> Replay:
    import msgspec

    share = found.overlapping_share
    none = Unknown("no device row was altered", [])
    return msgspec.structs.replace(judgement, overlapping_share=none if share is None else share)


def _next(found: Prediction, run: RunReplay) -> NextLongPole:
    several = len(run.run.digests) > 1
    ranks = ", ".join(str(rank) for rank in found.pole_ranks[:8])
    where = f" on rank {ranks}" if several and found.pole_ranks else ""
    if found.pole == "compute":
        says = f"computation{where}: {found.pole_share:.0%} of what remains, and nothing waits for long"
    else:
        says = f"{found.pole}{where}: {found.pole_share:.0%} of what remains"
    return NextLongPole(found.pole, found.pole_ranks, says, found.pole_share)


def _what_if_error(run: RunReplay, changes: Sequence[Change | Callable[[Draft], None]]) -> WhatIfError | Unknown:
    """Return how far this kind of change was off where reality was measured too, or that it was never tried."""
    if any(not hasattr(change, "to_text") for change in changes):
        return Unknown("a function was given as a change: no pair of recordings says how good such predictions are", [])
    kind = kind_of(changes)  # type: ignore[arg-type]  # functions were sent away above
    device = next((d.rows[0].device_name or d.rows[0].device for d in run.run.digests), "")
    if device != "cpu":
        return Unknown(
            f"no pairs of recordings, before and after a change, exist for {device}; the error of the replay alone is"
            " no measure of a prediction",
            ["two recordings of one job, before and after a change of this kind"],
        )
    spread = spread_of(kind, "cpu-gloo")
    if spread is None:
        return Unknown(f"no pairs of recordings exist for this kind of change ({kind})", [])
    return WhatIfError(
        spread.kind, spread.pairs, spread.median_share, spread.p90_share, spread.bias_share, spread.source
    )


def unit_kind(run: RunReplay) -> str:
    """Return what most units of a run are: step, request, iteration."""
    kinds = [unit.kind for unit in real_units(run.run.digests[0].rows[0].units)]
    return max(set(kinds), key=kinds.count) if kinds else "unit"
