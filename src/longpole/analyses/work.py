"""How much work each unit did, in numbers that a slower device does not change: kernels, and elements put in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.timeline.columns import Kind
from longpole.timeline.shapes import count_elements, count_products

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.timeline.boundaries import Unit
    from longpole.timeline.timeline import Timeline


_PRODUCT: Final = re.compile(r"(?:::|_)(?:add|addb|b|baddb)?(?:mm|matmul|linear|gemm)(?:_out|_v\d)?$", re.IGNORECASE)


def unit_elements(timeline: Timeline, units: list[Unit]) -> list[int]:
    """Return, for each unit, the elements of all operators' inputs; -1 where no shapes were recorded.

    An operator inside another one counts again: the sum compares ranks that run the same program, nothing else.
    """
    host, dims = timeline.host, timeline.input_dims
    sizes = np.array([count_elements(text) or 0 for text in dims.texts] or [0], np.float64)
    of_operators = host.kind[dims.row] == Kind.OPERATOR
    row, value = dims.row[of_operators], dims.value[of_operators]
    if len(row) == 0:
        return [-1] * len(units)
    place = unit_at(host.start_ns[row], units)
    inside = place >= 0
    total = np.bincount(place[inside], weights=sizes[value[inside]], minlength=len(units))
    return [int(min(one, 2.0**62)) for one in total.tolist()]


def unit_products(timeline: Timeline, units: list[Unit]) -> list[int]:
    """Return, for each unit, the multiplications of all products of matrices; -1 where no shapes of any were recorded.

    Weights are most of what is put in, and the same on all ranks; what is done with them grows with the tokens. A
    product inside another one counts again: the sum compares ranks, nothing else.
    """
    host, dims = timeline.host, timeline.input_dims
    multiplies = np.array([_PRODUCT.search(name) is not None for name in timeline.names] or [False], np.bool_)
    mine = (host.kind[dims.row] == Kind.OPERATOR) & multiplies[host.name[dims.row]]
    row, value = dims.row[mine], dims.value[mine]
    counts = {code: count_products(dims.texts[code]) or 0 for code in np.unique(value).tolist()}
    if not any(counts.values()):
        return [-1] * len(units)
    place = unit_at(host.start_ns[row], units)
    inside = place >= 0
    each = np.array([counts[code] for code in value[inside].tolist()], np.float64)
    total = np.bincount(place[inside], weights=each, minlength=len(units))
    return [int(min(one, 2.0**62)) for one in total.tolist()]


def unit_operators(timeline: Timeline, units: list[Unit]) -> list[int]:
    """Return, for each unit, how many operators began in it: the work of a record without a device."""
    host = timeline.host
    place = unit_at(host.start_ns[host.kind == Kind.OPERATOR], units)
    return np.bincount(place[place >= 0], minlength=len(units)).astype(int).tolist()


def declared_items(timeline: Timeline, units: list[Unit]) -> list[int]:
    """Return, for each unit, the items that the program says it processed; -1 where it does not say."""
    if timeline.told is None:
        return [-1] * len(units)
    by_row = dict(zip(timeline.told.units.tolist(), timeline.told.items.tolist(), strict=True))
    return [int(by_row.get(unit.marker, -1)) for unit in units]


def unit_at(time_ns: NDArray[np.int64], units: list[Unit]) -> NDArray[np.int64]:
    """Return the place of the unit that each time lies in, -1 for none."""
    starts = np.array([unit.start_ns for unit in units], np.int64)
    place = np.searchsorted(starts, time_ns, side="right") - 1
    return np.where(time_ns < units[-1].end_ns, place, -1).astype(np.int64)
