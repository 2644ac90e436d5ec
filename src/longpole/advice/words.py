"""Ranks and names in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.scene import RankView, Scene


def of_ranks(scene: Scene, views: Sequence[RankView]) -> str:
    """Return `rank 3's `, `ranks 1, 3's `, or nothing where all ranks are meant or there is but one."""
    if len(scene.digests) == 1 or len(views) == len(scene.digests):
        return ""
    return f"{listed([view.rank for view in views])}'s "


def on_ranks(scene: Scene, ranks: Sequence[int]) -> str:
    """Return ` on rank 3`, ` on ranks 1, 3`, or nothing where all ranks are meant or there is but one."""
    if len(scene.digests) == 1 or len(ranks) == len(scene.digests):
        return ""
    return f" on {listed(ranks)}"


def listed(ranks: Sequence[int]) -> str:
    """Return `rank 3` or `ranks 1, 3 …`."""
    some = ", ".join(map(str, sorted(ranks)[:8])) + (" …" if len(ranks) > 8 else "")
    return f"rank{'s' if len(ranks) != 1 else ''} {some}"


def some_names(names: Sequence[str], limit: int = 2) -> str:
    """Return a few names in quotes, the rest as a number."""
    quoted = ", ".join(f"“{name[:60]}”" for name in names[:limit])
    return quoted + (f" and {len(names) - limit} more" if len(names) > limit else "")
