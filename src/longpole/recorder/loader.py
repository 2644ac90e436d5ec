"""Input as it reaches the loop: a loader whose every batch is a span, and loops that are units.

main process    ├ next (waits) ┤├── body ──┤├ next ┤├── body ──┤
worker                ├──── load ────┤├──── load ────┤            a span file of its own
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from longpole.recorder import session
from longpole.recorder.batches import count_bytes
from longpole.recorder.spans import Stage, Unit, check_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Batch = TypeVar("Batch")
Items: TypeAlias = "int | Callable[[Any], int] | None"

NEXT_NAME: Final = "input.next"
WORK_NAME: Final = "input.load"
START_NAME: Final = "input.start_workers"
_END: Final = object()


class Loader(Generic[Batch]):
    """A loader, or any iterable of batches, whose `next` is recorded as a span of input.

    Everything else that the loader has is there as before: `len(loader)`, `loader.sampler`.
    """

    def __init__(self, source: Iterable[Batch], *, items: Items = None, waits: bool | None = None) -> None:
        self._source = source
        self._items = items
        self._waits = waits

    def __iter__(self) -> Iterator[Batch]:
        iterator = _start_iterating(self._source)
        waits = works_elsewhere(self._source) if self._waits is None else self._waits
        while True:
            batch = _time_next(iterator, self._items, waits=waits)
            if batch is _END:
                return
            yield batch

    def __len__(self) -> int:
        return len(self._source)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._source, name)


def units(
    source: Iterable[Batch], *, start: int = 0, name: str = "step", items: Items = None, waits: bool | None = None
) -> Iterator[Batch]:
    """Go through a loader so that each batch is a unit of work: `for batch in record.units(loader):`.

    A unit runs from the call for its batch to the end of the loop's body; the call is its span of input. A loop that
    is left by `break` or by an exception ends its unit there; an exception is not seen from in here, so the unit does
    not say that it failed, as `with record.unit(step):` would.

    Args:
        source: The loader, already wrapped by `record.loader` or not.
        start: Number of the first unit.
        name: What units are.
        items: What a unit processes: a number, or a function of the batch.
        waits: As of `record.loader`.
    """
    timed = isinstance(source, Loader)
    iterator = iter(source) if timed else _start_iterating(source)
    waits = works_elsewhere(source) if waits is None else waits
    step = start
    while True:
        with Unit(step, name=name) as opened:
            batch: Any = next(iterator, _END) if timed else _time_next(iterator, None, waits=waits)
            if batch is _END:
                opened.dropped = True
                return
            opened.items = _count_items(items, batch)
            yield batch
        step += 1


def works_elsewhere(source: Any) -> bool:
    """Tell whether a loader has worker processes, so that its `next` only waits for them."""
    return bool(getattr(source, "num_workers", 0))


def _time_next(iterator: Iterator[Any], items: Items, *, waits: bool) -> Any:
    with Stage(NEXT_NAME, object="input", stage="input", waits=waits) as span:
        batch = next(iterator, _END)
        if session.STATE.recorder is not None and batch is not _END:
            span.bytes = count_bytes(batch)
            span.items = _count_items(items, batch)
    return batch


def _count_items(items: Items, batch: Any) -> int | None:
    if items is None or session.STATE.recorder is None:
        return None
    return check_number(items(batch) if callable(items) else items, "items")


def _start_iterating(source: Any) -> Iterator[Any]:
    """Call `iter`, so that worker processes which PyTorch's DataLoader starts in it record what they load.

    The loader's own `worker_init_fn` is called in each of them as before, and the loader is left as it was.
    """
    if session.STATE.recorder is None or not works_elsewhere(source) or not hasattr(source, "worker_init_fn"):
        return iter(source)
    before = source.worker_init_fn
    source.worker_init_fn = InWorker(before)
    try:
        with Stage(START_NAME, object="input", stage="input", waits=True):
            return iter(source)
    finally:
        source.worker_init_fn = before


class InWorker:
    """What a worker process calls first: it times its own loading. Picklable, for workers that are spawned."""

    def __init__(self, then: Callable[[int], None] | None) -> None:
        self.then = then

    def __call__(self, worker: int) -> None:
        """Begin recording in this worker, then do what the program wanted done here."""
        session.start_from_environment()
        session.change_role("loader_worker", worker)
        _time_fetches()
        if self.then is not None:
            self.then(worker)


def _time_fetches() -> None:
    """Put a span around each batch that this worker process makes: reading samples and collating them.

    PyTorch has had these classes, with this one method, since 1.2; where they are gone, workers record nothing.
    """
    fetching = sys.modules.get("torch.utils.data._utils.fetch")
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        kind = getattr(fetching, name, None)
        if kind is not None and not hasattr(kind.fetch, "__wrapped__"):
            kind.fetch = _timed_fetch(kind.fetch)


def _timed_fetch(fetch: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fetch)
    def timed(self: Any, indices: Any) -> Any:
        batch, ended = None, None
        with Stage(WORK_NAME, object="input", stage="input") as span:
            try:
                batch = fetch(self, indices)
                span.bytes = count_bytes(batch)
            except StopIteration as end:  # the end of an iterable data set is no failure
                ended = end
        if ended is not None:
            raise ended
        return batch

    return timed
