"""The members of the collectives that lie in steady units, from which sums and rules are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.digest.across import Across
    from longpole.digest.rank_digest import RankDigest
    from longpole.digest.steady import Steady

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Members:
    """The members of the operations in steady units, with what the report sums; `[K]` each.

    Attributes:
        across: The run's collectives.
        place: Places in the matched members.
        operation: Operation of each.
        duration_ns, exposed_ns: Of each member.
        unit: Number of its unit in `units`.
        units: Names of the steady units that hold operations, in order.
        stage: Code into STAGES, -1 where not known.
        on_device: False for a backend's span on the host.
    """

    across: Across
    place: Ints
    operation: Ints
    duration_ns: Ints
    exposed_ns: Ints
    unit: Ints
    units: list[str]
    stage: Ints
    on_device: NDArray[np.bool_]


def steady_members(digests: Sequence[RankDigest], across: Across, steady: Steady) -> Members:
    """Choose the operations of steady units: all their members lie in units that are steady on their ranks.

    Where no unit is steady, those of all units.
    """
    matched = across.matched
    unit_of_member = matched.column(across.instances, "unit")
    order: dict[str, int] = {}
    for digest in digests:
        for unit in digest.rows[0].units:
            if unit.kind not in ("head", "tail") and unit.name not in steady.moved:
                order.setdefault(unit.name, len(order))
    out = {(name, rank) for name, why, rank in steady.left_out if why != "not_separable"}
    number = np.full(len(matched.rank), -1, np.int64)
    is_steady = np.zeros(len(matched.rank), np.bool_)
    by_rank = matched.by_rank()
    for digest in digests:
        mine = by_rank.get(digest.rank)
        if mine is None:
            continue
        names = [unit.name for unit in digest.rows[0].units]
        codes = np.array([order.get(name, -1) for name in names] + [-1], np.int64)
        good = np.array([(n, None) not in out and (n, digest.rank) not in out for n in names] + [False], np.bool_)
        place = np.where(unit_of_member[mine] < len(names), unit_of_member[mine], -1)
        number[mine] = codes[place]
        is_steady[mine] = good[place] & (codes[place] >= 0)
    operation = matched.operation_of_member()
    low = matched.first[:-1]
    chosen = np.logical_and.reduceat(is_steady, low) if len(matched) else np.empty(0, np.bool_)
    if len(matched) and not chosen.any():
        chosen = np.logical_and.reduceat(number >= 0, low)
    place = np.flatnonzero(chosen[operation])
    names_in_order = list(order)
    return Members(
        across=across,
        place=place,
        operation=operation[place],
        duration_ns=(across.split.end_ns - across.split.start_ns)[place],
        exposed_ns=matched.column(across.instances, "exposed_ns")[place],
        unit=number[place],
        units=names_in_order,
        stage=matched.column(across.instances, "stage")[place],
        on_device=matched.column(across.instances, "on_device")[place] > 0,
    )
