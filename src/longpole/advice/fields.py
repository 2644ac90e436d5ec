"""What a change's contract asks to be recorded, and how a run tells that it has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longpole.advice.figures import Figures

KNOWN_BY: Final[Mapping[str, str]] = {
    "period of every unit": "unit.period_ns",
    "items per unit": "unit.items",
    "traces of all ranks": "run.all_ranks",
    "names of the machines": "run.hosts",
    "input shapes": "batch.size_spread",
    "bytes of a batch": "copy.input_bytes",
    "copies with their sizes": "copy.input_bytes",
    "source memory of every copy": "copy.pageable_share",
    "spans of the loader's workers": "input.service_share",
    "element types of operators": "kernel.full_precision_share",
    "kernels with their names": "kernel.count",
    "kernels with their launches": "kernel.count",
    "sizes of collectives": "collective.mean_bytes",
    "rate of every pair of ranks": "collective.slow_link_factor",
    "slow-down of what overlaps": "overlap.slowdown",
    "peak device memory": "memory.peak_share",
}
"""Field -> the figure that is known where the field was recorded."""

SEEN_BY: Final[Mapping[str, str]] = {
    "Python stacks or annotations": "run.rows_with_stacks",
    "spans of writing": "output.service_share",
    "spans of loading": "artifact.service_share",
    "spans of compilation": "compile.share",
}
"""Field -> the figure that is above zero, or holds, where the field was recorded."""


def missing_fields(wanted: Iterable[str], figures: Figures) -> list[str]:
    """Return the fields that a run does not record; one that no figure tells of is none that a trace carries.

    Args:
        wanted: Fields, as rows of the catalogue name them.
        figures: The run's figures.
    """
    return [name for name in wanted if not _is_recorded(name, figures)]


def _is_recorded(name: str, figures: Figures) -> bool:
    if name in KNOWN_BY:
        return not isinstance(figures[KNOWN_BY[name]], Unknown)
    if name in SEEN_BY:
        value = figures[SEEN_BY[name]]
        return not isinstance(value, Unknown) and bool(value)
    return False
