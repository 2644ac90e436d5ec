"""Where each rank stands in the layout of its job, and which places nobody holds."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from longpole.records.operations import Worker
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

_NAMED: Final = 8
_PLACE: Final = ["dp_rank", "stage", "tp_rank"]


def place_workers(
    frame: pl.DataFrame, note: Callable[[str, pl.DataFrame | None, int, str, list[str]], None]
) -> tuple[pl.DataFrame, tuple[Worker, ...], list[str], int]:
    """Give every rank one place, and every place one rank.

    Rows that put their rank elsewhere than most of its rows do are left out. Several ranks at one place are told
    apart as tensor-parallel ones, in their order.

    Args:
        frame: Usable rows.
        note: Takes a finding: its code, its rows, their number, a message, and what it limits.

    Returns:
        The rows with a column `worker`; what it counts into; the first places that nobody holds; how many those are.
    """
    import polars as pl

    frame = frame.with_columns(pl.col("tp_rank").fill_null(0))
    counted = (
        frame.group_by("rank", *_PLACE).len().sort(["rank", "len", *_PLACE], descending=[False, True, *[False] * 3])
    )
    places = counted.unique("rank", keep="first", maintain_order=True).drop("len")
    elsewhere = frame.join(places, on=["rank", *_PLACE], how="anti", maintain_order="left")
    message = (
        f"{format_count(len(elsewhere), 'operation')} put their rank at another place than most of its operations do"
    )
    note("operation.place_conflict", elsewhere, len(elsewhere), message, ["/steps"] if len(elsewhere) else [])
    frame = frame.join(places, on=["rank", *_PLACE], how="semi", maintain_order="left")
    shared = places.filter(pl.len().over(_PLACE) > 1)
    if len(shared):
        by_order = pl.col("rank").rank("ordinal").over("dp_rank", "stage").cast(pl.Int64) - 1
        places = places.with_columns(by_order.alias("tp_rank"))
        message = f"{format_count(len(shared), 'rank')} share a place with another; taken for tensor-parallel, in order"
        note("operation.tensor_rank_assumed", None, len(shared), message, [])
    places = places.sort("stage", "dp_rank", "tp_rank")
    workers = tuple(Worker(**row) for row in places.select("rank", *_PLACE).iter_rows(named=True))
    missing, n_missing = _missing(workers)
    if n_missing:
        named = "; ".join(missing) + ("; …" if n_missing > len(missing) else "")
        message = f"{format_count(n_missing, 'place')} of the layout without a rank: {named}"
        note("operation.rank_missing", None, n_missing, message, ["/slowdown", "/culprit"])
    of_rank = places.with_row_index("worker").select("rank", pl.col("worker").cast(pl.Int32))
    return frame.join(of_rank, on="rank", maintain_order="left"), workers, missing, n_missing


def _missing(workers: tuple[Worker, ...]) -> tuple[list[str], int]:
    """Return the first places that nobody holds, and their number; dp and stage count from 0 to the largest seen."""
    held = {(w.dp_rank, w.stage, w.tp_rank) for w in workers}
    sizes = [max(place) + 1 for place in zip(*held, strict=True)]
    n_missing = sizes[0] * sizes[1] * sizes[2] - len(held)
    holes = (
        (dp, stage, tp)
        for dp in range(sizes[0])  # not itertools.product, which would hold all of an absurd range
        for stage in range(sizes[1])
        for tp in range(sizes[2])
        if (dp, stage, tp) not in held
    )
    named = [
        f"dp {dp}, stage {stage}" + (f", tp {tp}" if sizes[2] > 1 else "") for dp, stage, tp in islice(holes, _NAMED)
    ]
    return named, n_missing
