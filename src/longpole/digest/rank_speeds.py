"""How fast ranks compute, relative to one another, where a record shows that they did the same work.

A rank that takes longer is slower only if it had no more to do. Operators' input sizes tell that, else the numbers of
kernels hint at it; where the work differs, only a program that says how many items it processed makes it comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from longpole.digest.steady import find_steady, real_units
from longpole.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.digest.rank_digest import RankDigest, UnitDigest
    from longpole.settings import Settings

_HINT = "Record a stretch in which all ranks get equal batches, or give the speeds with --speed"
_QUARTERS_FROM = 4  # units from which on their middle half says something


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSpeed:
    """How fast one rank computes.

    Attributes:
        rank: Which.
        measured: Relative to the median rank, the median over the units.
        low, high: The middle half of the units; all of them where there are fewer than four.
    """

    rank: int
    measured: float
    low: float
    high: float

    @property
    def speed(self) -> float:
        """What to reckon with: 1 where the units do not agree on which side of the median rank it is."""
        return 1.0 if self.low <= 1.0 <= self.high else self.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSpeeds:
    """How fast the ranks of a run compute.

    Attributes:
        ranks: By rank.
        units: How many units were compared.
        basis: What shows that the work was the same, or how much it was: `input sizes`, `kernel counts` or `items`.
    """

    ranks: tuple[RankSpeed, ...]
    units: int
    basis: str


def rank_speeds(digests: Sequence[RankDigest], settings: Settings) -> RankSpeeds:
    """Measure the speeds of the ranks of a run, from the compute time of the units that all have in common.

    Args:
        digests: The ranks, each once; of a rank with several devices the first counts.
        settings: `more_work_min_share`: what differs by no more is the same work.

    Raises:
        InputError: There is one rank, no unit that all have, or nothing that shows how much work each did.
    """
    if len(digests) < 2:
        msg = f"expected traces of at least two ranks, found {len(digests)}: speeds are relative to the other ranks'"
        raise InputError(msg)
    units = _common_units(digests, settings)
    if not units:
        msg = (
            f"no unit of work was recorded in full on all {len(digests)} ranks, so nothing tells their speeds. {_HINT}"
        )
        raise InputError(msg)
    basis, work = _work(digests, units, settings)
    speeds = [_relative(row, amounts) for row, amounts in zip(units, work, strict=True)]
    return RankSpeeds(
        ranks=tuple(
            _rank_speed(digest.rank, [of_unit[place] for of_unit in speeds]) for place, digest in enumerate(digests)
        ),
        units=len(units),
        basis=basis,
    )


def _common_units(digests: Sequence[RankDigest], settings: Settings) -> list[list[UnitDigest]]:
    """Return the steady units that every rank has and computed in, each with one entry for each rank."""
    steady = find_steady(list(digests), settings)
    out = {name for name, why, _ in steady.left_out if why != "not_separable"} | set(steady.moved)
    by_name = [{unit.name: unit for unit in real_units(digest.rows[0].units)} for digest in digests]
    names = [name for name in by_name[0] if name not in out and all(name in of_rank for of_rank in by_name)]
    rows = [[of_rank[name] for of_rank in by_name] for name in names]
    return [row for row in rows if all(_time_ns(unit) > 0 for unit in row)]


def _time_ns(unit: UnitDigest) -> int:
    return unit.ledger.device.compute_ns


def _work(
    digests: Sequence[RankDigest], units: list[list[UnitDigest]], settings: Settings
) -> tuple[str, list[list[float]]]:
    """Return what the work is known by, and each rank's in each unit.

    Raises:
        InputError: It differs, and nothing says by how much.
    """
    if all(unit.items > 0 for row in units for unit in row):
        return "items", [[float(unit.items) for unit in row] for row in units]
    has_sizes = all(unit.elements > 0 for row in units for unit in row)
    field = "elements" if has_sizes else "kernels"
    for row in units:
        amounts = [getattr(unit, field) for unit in row]
        least = min(amounts)
        if least <= 0 or max(amounts) > least * (1 + settings.more_work_min_share):
            raise _differs(digests, row[0].name, amounts, has_sizes=has_sizes)
    return "input sizes" if has_sizes else "kernel counts", [[1.0] * len(digests) for _ in units]


def _differs(digests: Sequence[RankDigest], unit: str, amounts: list[int], *, has_sizes: bool) -> InputError:
    most = max(range(len(amounts)), key=lambda place: amounts[place])
    least = min(range(len(amounts)), key=lambda place: amounts[place])
    what = "the inputs of rank {0} are {2} as large as those of rank {1}"
    if not has_sizes:
        what = "rank {0} runs {2} as many kernels as rank {1}"
    times = f"{amounts[most] / amounts[least]:.2f} times" if amounts[least] > 0 else "many times"
    says = what.format(digests[most].rank, digests[least].rank, times)
    msg = f"ranks do different work in {unit} ({says}), so their times do not tell their speeds. {_HINT}"
    return InputError(msg)


def _relative(row: list[UnitDigest], work: list[float]) -> list[float]:
    """Return each rank's rate in one unit over the median rank's."""
    rates = [amount / _time_ns(unit) for unit, amount in zip(row, work, strict=True)]
    middle = median(rates)
    return [rate / middle for rate in rates]


def _rank_speed(rank: int, speeds: list[float]) -> RankSpeed:
    ordered = sorted(speeds)
    quarter = len(ordered) // 4 if len(ordered) >= _QUARTERS_FROM else 0
    return RankSpeed(
        rank=rank, measured=median(ordered), low=ordered[quarter], high=ordered[len(ordered) - 1 - quarter]
    )
