"""Which steps are whole: every worker is in them, with all the operations that it has in most other steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.records.operations import OperationKind
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from longpole.records.operations import OperationTable

    Flags: TypeAlias = NDArray[np.bool_]


def whole_steps(table: OperationTable, spoilt: AbstractSet[int]) -> tuple[Flags, list[tuple[int, str]]]:
    """Tell the rows of whole steps from those of others.

    Passes and communication have to be there as often as in most steps; what a worker computes beside them (a save,
    an evaluation) may come and go. Where no step is whole, all are kept.

    Args:
        table: The operations.
        spoilt: Steps that lost an unusable row.

    Returns:
        `[N]` bool: rows to keep; and each step that is left out, with the reason.
    """
    steps, place = table.step_numbers()
    why = dict.fromkeys(spoilt, "an operation of it cannot be used")
    for at, reason in _short_steps(table, place, len(steps)).items():
        why.setdefault(int(steps[at]), reason)
    left_out = [(int(step), why[int(step)]) for step in steps if int(step) in why]
    left_out += [(step, why[step]) for step in sorted(spoilt - set(steps.tolist()))]
    if all(int(step) in why for step in steps):
        return np.ones(len(table), bool), []
    return ~np.isin(table.step, [step for step, _ in left_out]), left_out


def _short_steps(table: OperationTable, place: NDArray[np.int32], n_steps: int) -> dict[int, str]:
    regular = np.array([t.kind != OperationKind.COMPUTE or t.direction != 0 for t in table.types], bool)
    rows = regular[table.optype]
    n_series = len(table.workers) * len(table.types)
    series = table.worker[rows].astype(np.int64) * len(table.types) + table.optype[rows]
    cell, count = np.unique(place[rows] * np.int64(n_series) + series, return_counts=True)
    at, of_series = cell // n_series, cell % n_series
    usual = _most_common(of_series, count, n_series, n_steps)
    odd = {}
    found = np.zeros(n_steps, np.int64)
    np.add.at(found, at[count == usual[of_series]], 1)
    n_usual = int(np.count_nonzero(usual))
    for step in np.flatnonzero(found < n_usual).tolist():
        n_workers = len(np.unique(table.worker[place == step]))
        n_absent = len(table.workers) - n_workers
        odd[step] = (
            f"{format_count(n_absent, 'rank')} not in it"
            if n_absent
            else f"{format_count(n_usual - int(found[step]), 'type')} of operation not there as often as usual"
        )
    return odd


def _most_common(series: NDArray[np.int64], count: NDArray[np.int64], n_series: int, n_steps: int) -> NDArray[np.int64]:
    """Return `[n_series]`: how often each occurs in most steps; 0 for what most steps do not have."""
    pairs, times = np.unique(np.stack([series, count], axis=1), axis=0, return_counts=True)
    usual = np.zeros(n_series, np.int64)
    by = np.argsort(times, kind="stable")  # the most frequent one is written last
    usual[pairs[by, 0]] = pairs[by, 1]
    seen = np.bincount(series, minlength=n_series)
    usual[2 * seen <= n_steps] = 0
    return usual
