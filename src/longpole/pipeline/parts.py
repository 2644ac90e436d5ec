"""Runs whose graphs are too large to be joined: their ranks are replayed one at a time, from the graphs on disk."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from longpole.errors import InputError
from longpole.graph.store import read_graph
from longpole.records.ledger import Unknown
from longpole.units import format_bytes
from longpole.whatif.parts_replay import PartsReplay, replay_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longpole.digest.rank_digest import RankDigest
    from longpole.graph.rank_graph import RankGraph
    from longpole.settings import Settings
    from longpole.whatif.in_parts import Source


class CannotFollowError(Exception):
    """A rank's graph cannot be used; `why` says why."""

    def __init__(self, why: Unknown) -> None:
        """Remember why."""
        super().__init__(why.unknown)
        self.why = why


def too_large(digests: list[RankDigest], folder: Path, settings: Settings) -> Unknown | None:
    """Return why the graphs of a run are not joined, None where they are.

    Args:
        digests: The ranks.
        folder: Where their graphs are.
        settings: `join_max_bytes`.
    """
    if len(digests) < _SEVERAL:
        return None
    stored_bytes = 0
    for digest in digests:
        with suppress(OSError):  # one that is missing is found missing when it is read
            stored_bytes += (folder / digest.graph).stat().st_size
    if stored_bytes <= settings.join_max_bytes:
        return None
    return Unknown(
        f"the graphs of the ranks, {format_bytes(stored_bytes)} on disk, are not joined: more than"
        f" {format_bytes(settings.join_max_bytes)} (setting join_max_bytes)",
        [],
    )


_SEVERAL = 2


def read_rank(digest: RankDigest, folder: Path) -> RankGraph:
    """Read the graph of a rank.

    Raises:
        CannotFollowError: It cannot be read, or units cannot be told apart on the device.
    """
    try:
        graph = replace(read_graph(folder / digest.graph), rank=digest.rank)
    except InputError as error:
        with suppress(OSError):
            (folder / digest.graph).unlink(missing_ok=True)  # so that the trace is read again the next time
        _cannot(f"the stored graph of rank {digest.rank} cannot be used: {error}; ask again", [])
    if graph.late_spans:
        _cannot(
            f"rank {graph.rank}: {graph.late_spans} device spans end after the second unit that follows theirs, so"
            " units cannot be told apart on the device",
            ["a synchronisation in each unit"],
        )
    return graph


def _cannot(text: str, missing: list[str]) -> NoReturn:
    raise CannotFollowError(Unknown(text, missing)) from None


def loader_of(digests: list[RankDigest], folder: Path) -> Callable[[int], RankGraph]:
    """Return a function that reads the graph of a rank, anew each time.

    Args:
        digests: The ranks.
        folder: Where their graphs are.
    """
    by_rank = {digest.rank: digest for digest in digests}
    return lambda rank: read_rank(by_rank[rank], folder)


def replay_large(source: Source, periods: list[str]) -> PartsReplay | Unknown:
    """Replay a run rank by rank, or say why it cannot be.

    Args:
        source: Its ranks.
        periods: Names of the units that have a period.
    """
    try:
        return replay_parts(source, periods)
    except CannotFollowError as error:
        return error.why
