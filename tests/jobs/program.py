"""What a thread of a job does, one instruction after another; times in integer nanoseconds.

A `Host` is a thread's program, written by calling its methods in the order in which the thread works. Nothing runs
here: `machine.run` does that, and finds out how long the waits take.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

OPEN, CLOSE, WORK, CALL, LAUNCH, SYNC, RECORD, WAIT, PUT, GET, LOCK, UNLOCK, MARK = range(13)

COMPUTE = 7
"""The default stream's number in a Kineto trace."""


@dataclass(slots=True, eq=False)
class Collective:
    """One collective of several ranks: it moves bytes once the last member has arrived."""

    key: Hashable
    members: tuple[int, ...]
    ns: int
    args: dict[str, Any]
    started: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Task:
    """A span of a device: a kernel, a copy, a memset, or one member's part of a collective."""

    name: str
    stream: int
    ns: int
    cat: str = "kernel"
    args: dict[str, Any] = field(default_factory=dict)
    collective: Collective | None = None
    annotation: str = ""
    recorded: bool = True


class Host:
    """A thread's program."""

    def __init__(self, rank: int, thread: str) -> None:
        self.rank = rank
        self.thread = thread
        self.code: list[tuple[Any, ...]] = []

    def open(self, name: str, cat: str = "cpu_op", args: dict[str, Any] | None = None) -> None:
        self.code.append((OPEN, name, cat, args or {}))

    def close(self) -> None:
        self.code.append((CLOSE,))

    @contextmanager
    def span(self, name: str, cat: str = "cpu_op", args: dict[str, Any] | None = None) -> Iterator[None]:
        self.open(name, cat, args)
        yield
        self.close()

    def work(self, ns: float) -> None:
        """Be busy, without a record of its own."""
        if ns > 0:
            self.code.append((WORK, round(ns)))

    def call(self, name: str, ns: float) -> None:
        """Call the runtime for so long, without waiting for anything."""
        self.code.append((CALL, name, round(ns)))

    def launch(self, call: str, ns: float, tasks: Task | list[Task], *, blocking: bool = False) -> None:
        """Hand work to a stream; a blocking call returns after the last of it has ended."""
        self.code.append((LAUNCH, call, round(ns), tasks if isinstance(tasks, list) else [tasks], blocking))

    def sync(self, call: str, *, stream: int | None = None, event: Hashable = None, own_ns: float = 0) -> None:
        """Wait for an event, a stream, or (neither given) the device; then work for `own_ns` inside the call."""
        self.code.append((SYNC, call, stream, event, round(own_ns)))

    def record(self, call: str, event: Hashable, stream: int) -> None:
        self.code.append((RECORD, call, event, stream))

    def wait(self, call: str, stream: int, event: Hashable) -> None:
        """Let the stream wait for the event; the thread goes on."""
        self.code.append((WAIT, call, stream, event))

    def put(self, key: Hashable) -> None:
        self.code.append((PUT, key))

    def get(self, key: Hashable) -> None:
        """Be silent until another thread of the rank has put the key."""
        self.code.append((GET, key))

    def lock(self, key: Hashable) -> None:
        self.code.append((LOCK, key))

    def unlock(self, key: Hashable) -> None:
        self.code.append((UNLOCK, key))

    def mark(self, name: str, cat: str, args: dict[str, Any]) -> None:
        """Write an instant event."""
        self.code.append((MARK, name, cat, args))
