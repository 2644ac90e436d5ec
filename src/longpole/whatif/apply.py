"""Make changes to a draft: which function makes which change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.errors import InvariantError
from longpole.whatif.change import (
    Add,
    AsyncCopy,
    Equalise,
    Fuse,
    GraphLaunches,
    IssueEarly,
    OffPath,
    Prefetch,
    Scale,
    Split,
)
from longpole.whatif.changes.copies import async_copy
from longpole.whatif.changes.equalise import equalise
from longpole.whatif.changes.fuse import fuse, split
from longpole.whatif.changes.graph_launches import graph_launches
from longpole.whatif.changes.issue_early import issue_early
from longpole.whatif.changes.off_path import off_path
from longpole.whatif.changes.prefetch import prefetch
from longpole.whatif.changes.scale import add, scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.whatif.change import Change
    from longpole.whatif.draft import Draft


def apply(draft: Draft, change: Change | Callable[[Draft], None]) -> int:  # noqa: C901 - one branch a change
    """Make one change; return how many rows it altered.

    Args:
        draft: Altered in place.
        change: A change, or a function that alters a draft.
    """
    draft.rows = 0
    match change:
        case Scale():
            scale(draft, change)
        case Add():
            add(draft, change)
        case Prefetch():
            prefetch(draft, change)
        case AsyncCopy():
            async_copy(draft)
        case Fuse():
            fuse(draft, change)
        case Split():
            split(draft, change)
        case Equalise():
            equalise(draft, change)
        case IssueEarly():
            issue_early(draft, change)
        case GraphLaunches():
            graph_launches(draft)
        case OffPath():
            off_path(draft, change)
        case _ if callable(change):
            change(draft)
        case _:
            msg = f"no function makes the change {change!r}"
            raise InvariantError(msg)
    return draft.rows
