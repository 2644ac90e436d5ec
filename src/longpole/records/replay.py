"""How far a replay may be believed, as reports store it (DESIGN 3.7)."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from longpole.records.ledger import Unknown


class UnitErrors(msgspec.Struct, frozen=True):
    """Size of the replay's error over single units, as shares of their measured periods."""

    median: float | Unknown
    max: float | Unknown


class Replay(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the unchanged replay reached; a small error alone proves nothing.

    Attributes:
        error_of_median: Median replayed period less the median measured one, as a share of the latter; signed.
        error_units: The same for single units, without sign.
        kept_share: Host time on the replayed path that is kept as recorded, as a share of the path.
        kept_named_share: The part of `kept_share` that lies under a named activity.
        unexplained_share: Share of the path in pieces that no rule explains.
        guess_share: Share of the path that rests on edges of grade *guess*.
        orphans: Points without an incoming edge that should have one.
        verdict: `usable`, `not tested` (so much is kept that any graph would have done as well) or `refused`.
        units: Steady units that were replayed.
        without_effect: Kinds of edges on the path whose removal does not raise the error; no answer may rest on one
            of them alone.
        overlapping_share: Of the rows that a change alters, the share of time that overlaps others on the same
            device; contention is not modelled. Of a what-if only.
    """

    error_of_median: float | Unknown
    error_units: UnitErrors
    kept_share: float | Unknown
    kept_named_share: float | Unknown
    unexplained_share: float | Unknown
    guess_share: float | Unknown
    orphans: int | Unknown
    verdict: str
    units: int
    without_effect: list[str] = []
    overlapping_share: float | Unknown | UnsetType = UNSET
