"""Pairs of work that ran at once: the column that both ask for, and how much longer each took (DESIGN 3.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, UnsetType

from longpole.records.ledger import Unknown
from longpole.records.operator_work import Together
from longpole.records.resources import Contention

if TYPE_CHECKING:
    from longpole.digest.rank_digest import RowDigest
    from longpole.records.resources import MatrixRow

_KEPT: Final = 20
_ASKS_MIN: Final = 0.02  # a column of which one of the two needs less is not what they fight over (our choice)
_COLUMNS: Final = ("tensor", "vector", "hbm", "scale_up", "scale_out", "pcie")
_COLLECTIVE: Final = "collective"


def contentions(rows: list[RowDigest], matrix: list[MatrixRow]) -> list[Contention]:
    """Return the pairs that ran at once, the longest first.

    Args:
        rows: Devices of one model.
        matrix: The matrix's rows, for what each side asks of the columns.
    """
    total: dict[tuple[str, str], Together] = {}
    for row in rows:
        for one in row.work.together:
            mine = total.get((one.first, one.second))
            if mine is None:
                total[one.first, one.second] = msgspec.structs.replace(one)
                continue
            for name in Together.__struct_fields__[2:]:
                setattr(mine, name, getattr(mine, name) + getattr(one, name))
    demands: dict[str, dict[str, float]] = {}
    found = []
    for pair in sorted(total.values(), key=lambda one: (-one.together_ns, one.first, one.second))[:_KEPT]:
        first, second = (demands.setdefault(name, _demands(name, matrix)) for name in (pair.first, pair.second))
        column, share = _fought_over(first, second)
        found.append(
            Contention(
                first=pair.first,
                second=pair.second,
                together_ns=pair.together_ns,
                column=column,
                demand_share=share,
                first_slowdown=_slowdown(pair.first, pair.first_compared_ns, pair.first_alone_ns),
                second_slowdown=_slowdown(pair.second, pair.second_compared_ns, pair.second_alone_ns),
            )
        )
    return found


def _demands(name: str, matrix: list[MatrixRow]) -> dict[str, float]:
    """Return what share of each column's peak one side needs while it runs, over its rows of the matrix."""
    mine = [row for row in matrix if row.kind == _COLLECTIVE] if name == _COLLECTIVE else []
    mine = mine or [row for row in matrix if row.name == name and row.kind != _COLLECTIVE]
    found = {}
    for column in _COLUMNS:
        parts = [(row.cells[column].share, row.device_ns) for row in mine if column in row.cells]
        known = [(share, time_ns) for share, time_ns in parts if not isinstance(share, UnsetType)]
        time_ns = sum(row.device_ns for row in mine)
        if known and time_ns:
            found[column] = sum(share * one_ns for share, one_ns in known) / time_ns
    return found


def _fought_over(first: dict[str, float], second: dict[str, float]) -> tuple[str | Unknown, float | UnsetType]:
    if not first or not second:
        return Unknown("what one of the two asks of the columns is not known", []), UNSET
    both = {name: min(first[name], second[name]) for name in first if name in second}
    both = {name: share for name, share in both.items() if share >= _ASKS_MIN}
    if not both:
        return Unknown("no column is known that both ask for", []), UNSET
    column = max(both, key=lambda name: both[name])
    return column, first[column] + second[column]


def _slowdown(name: str, compared_ns: int, alone_ns: int) -> float | UnsetType:
    return UNSET if name == _COLLECTIVE or not alone_ns else compared_ns / alone_ns
