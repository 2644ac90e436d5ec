"""What a rule returns: a cause that may hold the run up, how it would be removed, and the rows that show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.advice.scene import Scene
    from longpole.records.findings import Evidence
    from longpole.whatif.change import Change
    from longpole.whatif.draft import Draft, TransferCost

    Removal: TypeAlias = Change | Callable[[Draft], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A cause that a rule saw, not yet priced.

    Attributes:
        cause: One of `vocabulary.causes.CAUSES`.
        ranks: Ranks that cause it, never those that wait.
        says: One sentence; `{cost}` stands for what it costs.
        evidence: Figures and rows.
        remove: Changes that take the cause away, replayed together; empty where none stands for it.
        otherwise: Changes that take it away if it is what the record cannot tell it from; the cost is then a range.
        cost: Other prices for collectives than the run's, for that replay.
        ledger_ns: What the ledger charges to it per unit: the cost where the replay cannot tell.
        ceiling_ns: The most its removal could buy per unit; `ledger_ns` where None.
        units: Units that pay for it; all steady ones where empty.
        stage: Where in the unit.
        once_ns: What marked units paid for it; None for a cause that steady units pay.
        grade: The least sure of what it rests on.
        what_if: Options of `longpole whatif` that stand for the removal.
        tier: Its price is what is left once the suspects of lower tiers are gone that hold the host up: a wait is
            charged to what is waited for, never to the call that waits. 0 for what is waited for, 1 for the allocator,
            whose calls wait too, 2 for calls that only wait, 3 for launches.
        holds_host: It is time of a host thread, which calls that wait and launches do not answer for.
        hypothesis: Its evidence fits other explanations as well: it goes where steady units pay for any other cause.
        always: It is said whatever it costs: about memory, or the record.
    """

    cause: str
    ranks: Sequence[int]
    says: str
    evidence: Sequence[Evidence]
    remove: Sequence[Removal] = ()
    otherwise: Sequence[Removal] = ()
    cost: TransferCost | None = None
    ledger_ns: int = 0
    ceiling_ns: int | None = None
    units: Sequence[str] = field(default=())
    stage: str = ""
    once_ns: int | None = None
    grade: str = "recorded"
    what_if: Sequence[str] = ()
    tier: int = 0
    holds_host: bool = False
    hypothesis: bool = False
    always: bool = False


class Rule(Protocol):
    """One rule: a module of `advice.findings` with this function."""

    def find(self, scene: Scene) -> list[Suspect]:
        """Return what the rule suspects; empty where it sees nothing."""
