"""How long the operations of each object took, exposed or not: interval sets over the whole record (DESIGN 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE
from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COMPUTE, RUNG_COPY
from longpole.analyses.sums import MOVED
from longpole.records.ledger import Unknown
from longpole.timeline.columns import Kind
from longpole.timeline.intervals import Intervals, union, unite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.analyses.rungs import DeviceRow
    from longpole.timeline.timeline import Timeline


def activity_sets(timeline: Timeline, book: NameBook, setup_rows: NDArray[np.int64]) -> dict[str, Intervals]:
    """Return the time under each object's activities on any thread of the host.

    Args:
        timeline: The record.
        book: Meanings of its names.
        setup_rows: Host rows found to create a communicator.
    """
    host = timeline.host
    own = book.object[host.name]
    sets = {}
    for name in MOVED:
        rows = np.flatnonzero(own == OBJECT_CODE[name])
        if name == "collective":
            rows = np.union1d(rows, setup_rows).astype(np.intp)
        sets[name] = union(host.start_ns[rows], host.end_ns[rows])
    return sets


def device_services(row: DeviceRow, activities: dict[str, Intervals]) -> dict[str, Intervals]:
    """Return the service of each object on a device row: its spans, the copies charged to it, its activities."""
    services = {}
    for name in MOVED:
        mine = row.object == OBJECT_CODE[name]
        if name == "collective":
            mine |= row.is_fused
        ran = union(row.spans.start_ns[mine], row.spans.end_ns[mine])
        services[name] = ran if name == "compute" else unite(ran, activities[name])
    return services


def device_unions(row: DeviceRow) -> dict[str, Intervals]:
    """Return what ran on a device by rung: `compute`, `collective`, `copy`."""
    rungs = {"compute": RUNG_COMPUTE, "collective": RUNG_COLLECTIVE, "copy": RUNG_COPY}
    return {
        name: union(row.spans.start_ns[row.rung == rung], row.spans.end_ns[row.rung == rung])
        for name, rung in rungs.items()
    }


def loader_unknown(timeline: Timeline, book: NameBook) -> Unknown | None:
    """Say why the service of input is not known, None where it is.

    Worker processes load while no trace watches; only a loader that is known to work in the recorded process, or a
    record without any loader, has a service that can be summed.
    """
    host = timeline.host
    if timeline.told is not None:
        return _declared_loader_unknown(timeline, book)
    inputs = np.unique(host.name[book.object[host.name] == OBJECT_CODE["input"]]).tolist()
    loaders = [meaning for meaning in (book.host(code) for code in inputs) if meaning.activity == "data_loader"]
    if not loaders or any(meaning.loader_workers is False for meaning in loaders):
        return None
    return Unknown(
        "the loader's worker processes are not in the trace",
        ["spans of the loader workers (longpole's recorder in the workers, or num_workers=0)"],
    )


def _declared_loader_unknown(timeline: Timeline, book: NameBook) -> Unknown | None:
    """Say why the service of input is not known where the program says when it waits for a loader.

    It is known where somebody is seen to load: in this thread, in another one, or in a worker process.
    """
    host = timeline.host
    inputs = np.unique(host.name[book.object[host.name] == OBJECT_CODE["input"]]).tolist()
    waits = [book.host(code).loader_workers is True for code in inputs]
    if not waits or not all(waits):
        return None
    return Unknown(
        "the program waits for batches, and nobody is seen to prepare them",
        ["spans of the loader's workers (the recorder in them)"],
    )


def waiting_set(timeline: Timeline) -> Intervals | None:
    """Return the time that collectives spent waiting, where the exporter recorded their parts; else None."""
    tasks = timeline.tasks
    if len(tasks) == 0:
        return None
    waits = [code for code in np.unique(tasks.name).tolist() if "wait" in timeline.names[code].lower()]
    rows = np.isin(tasks.name, waits)
    return union(tasks.start_ns[rows], tasks.end_ns[rows])


def host_services(
    timeline: Timeline, operators: Intervals, backend: Intervals, activities: dict[str, Intervals]
) -> dict[str, Intervals]:
    """Return the services of a record without device spans: operators compute, backend spans communicate."""
    del timeline
    services = dict(activities)
    services["compute"] = operators
    services["collective"] = unite(backend, activities["collective"])
    return services


def backend_spans(timeline: Timeline, book: NameBook) -> Intervals:
    """Return the time under spans of a communication library (gloo, MPI) on any thread."""
    host = timeline.host
    rows = np.flatnonzero(book.is_backend[host.name] & (host.kind != Kind.PYTHON) & (host.kind != Kind.RUNTIME))
    return union(host.start_ns[rows], host.end_ns[rows])
