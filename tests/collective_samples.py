"""Records of collectives for the golden pages: measured under two settings, and read from a log with a wrong row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.bench.collectives.build import About, build_record
from longpole.bench.collectives.fits import predict_ns
from longpole.bench.collectives.points import Where, logged_point
from longpole.bench.collectives.run import TIMED
from longpole.records.bench_collectives import (
    CollectivesDesign,
    CollectivesMachine,
    CollectivesSetting,
    CollectivesSource,
    NotRun,
)
from longpole.settings import Settings
from tests.collective_points import SIZES, points_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.records.bench_collectives import CollectivesRecord, Placement


def two_settings() -> CollectivesRecord:
    """The low-latency protocol wins for small buffers; the ring algorithm failed."""
    points = points_of("default", lambda size, n: predict_ns(20_000, 2, 100, size) * (1 + n / 1e3))
    points += points_of("NCCL_PROTO=LL", lambda size, n: predict_ns(10_000, 2, 50, size) * (1 - n / 1e3))
    settings = [
        CollectivesSetting("default"),
        CollectivesSetting("NCCL_PROTO=LL", {"NCCL_PROTO": "LL"}),
        CollectivesSetting(
            "NCCL_ALGO=Ring", {"NCCL_ALGO": "Ring"}, None, "failed", "rank 3 ended with signal SIGABRT: no ring"
        ),
    ]
    about = About(
        origin="bench",
        longpole="0.1.0",
        label="before",
        created="2026-01-01T00:00:00+00:00",
        machine=CollectivesMachine("nccl", "NVIDIA H100 80GB HBM3", 1, {"torch": "2.13.0", "nccl": "2.27.5"}),
        design=CollectivesDesign(5, 5, 5, 42, "float32", TIMED, "0011223344556677"),
        not_run=[NotRun("reduce_scatter", "gloo: not supported")],
    )
    return build_record(points, settings, about, Settings())


def wrong_row() -> CollectivesRecord:
    """A log of both placements with one wrong result, and a name that would clear the screen."""
    points = []
    for size in SIZES:
        for placement, rate in _RATES.items():
            where = Where(
                kind="all_gather", ranks=4, dtype="float32", setting="default", placement=placement, size_bytes=size
            )
            is_wrong = size == SIZES[2] and placement == "in_place"
            said, wrong = ("failed", 12) if is_wrong else ("passed", 0)
            time_ns = round(predict_ns(15_000, 0, rate, size))
            points.append(logged_point(where, [time_ns], 20, said, wrong))  # type: ignore[arg-type]  # of the words
    about = About(
        origin="nccl-tests",
        longpole="0.1.0",
        label="a.log",
        machine=CollectivesMachine("nccl", "\x1b[2JNVIDIA A100-SXM4-80GB", 2, {"nccl": "22807"}),
        design=CollectivesDesign(20, 5, 1, None, "float32", "mean over the iterations"),
        sources=[CollectivesSource("logs/a.log", "text", 1, ["line 41: a row that is cut off"])],
    )
    return build_record(points, [CollectivesSetting("default")], about, Settings())


_RATES: Final[dict[Placement, float]] = {"out_of_place": 200.0, "in_place": 210.0}
SAMPLES: Final[dict[str, Callable[[], CollectivesRecord]]] = {"settings": two_settings, "log": wrong_row}
