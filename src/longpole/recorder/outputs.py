"""Output as it leaves the loop: checkpoints, and a writer beside the loop whose full queue holds it up.

loop      ├ step ┤├ step ┤├ put (waits) ┤├ step ┤
writer    ├────── write ──────┤├────── write ──────┤
"""

from __future__ import annotations

import queue as queues
import threading
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from longpole.errors import UsageError
from longpole.recorder.batches import count_bytes
from longpole.recorder.spans import Stage, queue

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from longpole.recorder.spans import Number

Item = TypeVar("Item")
Function = TypeVar("Function", bound="Callable[..., Any]")
CHECKPOINT_NAME: Final = "checkpoint"


@overload
def checkpoint(
    function: Function, *, name: str = ..., bytes: Number = ..., device: bool = ...
) -> Function: ...  # pragma: no cover


@overload
def checkpoint(
    function: None = ..., *, name: str = ..., bytes: Number = ..., device: bool = ...
) -> Stage: ...  # pragma: no cover


def checkpoint(function: Any = None, *, name: str = CHECKPOINT_NAME, bytes: Number = None, device: bool = False) -> Any:
    """Record the saving of a checkpoint as output, staging copies included.

    `with record.checkpoint(bytes=…):` around a call, or `save = record.checkpoint(save)` around a function.

    Args:
        function: What saves; leave it out for `with`.
        name: What reports call it.
        bytes: How much is saved.
        device: Time what it launches on the current CUDA stream too.
    """
    span = Stage(name, object="output", bytes=bytes, device=device)
    return span if function is None else span(function)


class Writer(Generic[Item]):
    """Writes what the loop hands over in a thread of its own, and records both ends of the queue between them.

    Each write is a span of output on the writer's thread. A `put` that finds the queue full waits, and that wait is a
    span of output on the loop's thread. It works the same while recording is off.

    Attributes:
        name: What reports call it.
        capacity: How many entries may wait.
    """

    def __init__(self, write: Callable[[Item], object], *, capacity: int = 2, name: str = "writer") -> None:
        if capacity < 1:
            msg = f"capacity: expected at least 1 entry, found {capacity!r}"
            raise UsageError(msg)
        self.name = name
        self.capacity = capacity
        self._write = write
        self._queue: queues.Queue[Item | _End] = queues.Queue(capacity)
        self._failure: BaseException | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: Item) -> None:
        """Hand something over to be written; wait while the queue is full.

        Raises:
            UsageError: The writer is closed.
            BaseException: What `write` raised for an earlier item; the writer goes on with later ones.
        """
        if self._closed:
            msg = f"{self.name}: put after close; open a new writer"
            raise UsageError(msg)
        self._raise_failure()
        self._hand_over(item)
        self._note_depth()

    def flush(self) -> None:
        """Wait until everything that was handed over is written; raises as `put`."""
        with Stage(f"{self.name}.flush", object="output", waits=True):
            self._queue.join()
        self._raise_failure()

    def close(self) -> None:
        """Write what is left, and end the thread; raises as `put`. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            with Stage(f"{self.name}.close", object="output", waits=True):
                self._queue.put(_END)
                self._thread.join()
        self._raise_failure()

    def __enter__(self) -> Writer[Item]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _hand_over(self, item: Item) -> None:
        try:
            self._queue.put_nowait(item)
        except queues.Full:
            self._note_depth()
            with Stage(f"{self.name}.put", object="output", waits=True):
                self._queue.put(item)

    def _run(self) -> None:
        while not isinstance(item := self._queue.get(), _End):
            self._note_depth()
            try:
                with Stage(f"{self.name}.write", object="output", bytes=count_bytes(item)):
                    self._write(item)
            except BaseException as error:  # noqa: BLE001 - it is the caller's, who gets it with the next put
                self._failure = self._failure or error
            finally:
                self._queue.task_done()
            del item

    def _note_depth(self) -> None:
        queue(self.name, self._queue.qsize(), self.capacity, object="output")

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


class _End:
    """What tells the thread of a writer that nothing more comes."""


_END: Final = _End()


def writer(write: Callable[[Item], object], *, capacity: int = 2, name: str = "writer") -> Writer[Item]:
    """Open a writer whose thread calls `write` with each item that is `put`; close it, or use `with`.

    Args:
        write: Called in the writer's thread, once an item, in order.
        capacity: How many items may wait for it.
        name: What reports call it.

    Raises:
        UsageError: The capacity is below 1.
    """
    return Writer(write, capacity=capacity, name=name)
