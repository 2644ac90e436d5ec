"""Answers of what-ifs, as the engine might give them, for tests of what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from longpole.records.ledger import Unknown
from longpole.records.replay import Replay, UnitErrors
from longpole.report.document import RunSummary, SelectionEntry, SourceEntry
from longpole.report.whatif import SCHEMA, ChangeEntry, NextLongPole, Refused, WhatIf, WhatIfError
from longpole.whatif.change import parse_change
from tests.report_builder import ms

if TYPE_CHECKING:
    from collections.abc import Callable

NO_PAIRS = Unknown("no pair of recordings before and after such a change is known", ["a pair, before and after"])


def change_entry(text: str, rows: int = 40) -> ChangeEntry:
    change = parse_change(text)
    return ChangeEntry(change.to_text(), change.says(), rows)


def usable() -> WhatIf:
    """Input is removed, and compute on a rank is faster; recorded pairs say how far off that may be."""
    before = {"compute": ms(101.2), "input": ms(61.3), "collective": ms(14.1), "host": ms(3.4)}
    after = {"compute": ms(99.8), "input": 0, "collective": ms(14.6), "host": ms(3.6)}
    return WhatIf(
        schema=SCHEMA,
        longpole="0.1.0",
        run=RunSummary(
            kind="training",
            ranks_present=[0, 1, 2, 3],
            world_size=4,
            ranks_assumed=False,
            sources=[
                SourceEntry(f"traces/rank{rank}.json", "kineto", "1", 5_000_000, 120_000, 0, 0) for rank in range(4)
            ],
            environment={},
            selection=SelectionEntry(),
        ),
        unit_kind="step",
        changes=[change_entry("--remove input"), change_entry("--set rank:2&compute=0.8x", 1200)],
        measured_period_ns=ms(181.0),
        replayed_period_ns=ms(180.0),
        predicted_period_ns=ms(118.0),
        saving_ns=ms(62.0),
        mean_saving_ns=ms(62.0),
        by_object_ns={name: before[name] - after[name] for name in before},
        path_before_ns=before,
        path_after_ns=after,
        replay=Replay(
            error_of_median=-0.0055,
            error_units=UnitErrors(0.004, 0.031),
            kept_share=0.42,
            kept_named_share=0.34,
            unexplained_share=0.006,
            guess_share=0.0,
            orphans=0,
            verdict="usable",
            units=10,
            overlapping_share=0.12,
        ),
        what_if_error=WhatIfError("removed input", 27, 0.075, 0.125, -0.073, "pairs recorded on CPU with gloo"),
        refused=None,
        next_long_pole=NextLongPole("compute", [0, 1], "computation: 85% of what remains, and nothing waits", 0.85),
    )


def not_tested() -> WhatIf:
    """One thread whose whole path is kept: the replay's small error says nothing."""
    answer = usable()
    replay = msgspec.structs.replace(
        answer.replay,
        error_of_median=0.0,
        error_units=UnitErrors(0.0, 0.0),
        kept_share=0.97,
        verdict="not tested",
        orphans=3,
        without_effect=["stream order", "event wait"],
    )
    following = Unknown("the predicted path lies on one thread that is kept as recorded")
    return changed(answer, replay=replay, what_if_error=NO_PAIRS, next_long_pole=following)


def refused() -> WhatIf:
    """Too much of the path is unexplained."""
    answer = usable()
    why = Unknown("the replay is refused")
    return changed(
        answer,
        predicted_period_ns=why,
        saving_ns=why,
        mean_saving_ns=why,
        by_object_ns={},
        path_after_ns={},
        replay=msgspec.structs.replace(answer.replay, unexplained_share=0.4, error_of_median=-0.399, verdict="refused"),
        what_if_error=NO_PAIRS,
        refused=Refused(
            "40.0 % of the path is unexplained, and a replay with more than 10 % of it predicts nothing",
            ["nodes of captured graphs (CUDA graph tracing by node)"],
        ),
        next_long_pole=why,
    )


def longer() -> WhatIf:
    """A Python function that makes things worse."""
    answer = usable()
    return changed(
        answer,
        changes=[ChangeEntry("", "my_change(graph) \x1b[2J")],
        predicted_period_ns=ms(200.0),
        saving_ns=-ms(20.0),
        mean_saving_ns=-ms(20.0),
        path_after_ns={**answer.path_before_ns, "collective": ms(34.1)},
        by_object_ns={"collective": -ms(20.0)},
        what_if_error=NO_PAIRS,
    )


def changed(answer: WhatIf, **fields: Any) -> WhatIf:
    """Another answer, which collects anew what is not known."""
    return msgspec.structs.replace(answer, unknown=[], **fields)


SAMPLES: dict[str, Callable[[], WhatIf]] = {
    "usable": usable,
    "not-tested": not_tested,
    "refused": refused,
    "longer": longer,
}
