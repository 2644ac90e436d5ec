"""A machine that runs a job: threads, in-order streams, collectives across ranks. Integer nanoseconds throughout.

What it knows of CUDA, and no more:

- A launch returns at once; its kernel starts `launch_ns` after the call began, or when the stream gets to it.
- Work of one stream runs in order, `gap_ns` apart where it was queued.
- A stream that waits for an event goes on `event_ns` after the event happened, if it had to wait at all.
- A call that waits returns `return_ns` after what it waited for, and takes `floor_ns` if there is nothing to wait for.
- A member of a collective spins from its own start; bytes move from the last member's start on.
- With one hardware queue, no work of any stream is handed out before everything launched earlier has been.
- With contention, kernels and moving collectives of one device slow each other down for as long as they overlap.

This is not Longpole's graph: no code is shared, and nothing here knows what a recording shows.
"""

from __future__ import annotations

import heapq
import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.jobs.program import CALL, CLOSE, GET, LAUNCH, LOCK, MARK, OPEN, PUT, RECORD, SYNC, WAIT, WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tests.jobs.program import Collective, Host, Task

HAND_OVER_NS = 5000
LOCK_NS = 2000
STREAM_CALL_NS = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """The machine's constants."""

    launch_ns: int = 6000
    gap_ns: int = 1000
    event_ns: int = 2000
    return_ns: int = 7000
    floor_ns: int = 3000
    spread: float = 0.12
    """How much launches and returns vary, as a share."""
    one_queue: bool = False
    contention: tuple[float, float] | None = None
    """How many times longer a kernel and a moving collective take while they overlap."""


@dataclass(slots=True, eq=False)
class HostRow:
    rank: int
    thread: str
    cat: str
    name: str
    start: int
    end: int
    args: dict[str, Any]
    correlation: int = 0
    launches: bool = False


@dataclass(slots=True, eq=False)
class Item:
    """What a stream holds: a task, the recording of an event, or a wait for one."""

    kind: str
    rank: int
    stream: int
    ready: int
    task: Task | None = None
    event: Event | None = None
    correlation: int = 0
    external: int = 0
    called: int = 0
    start: int = -1
    end: int = -1
    issued: bool = False
    left: float = 0.0
    rate: float = 0.0
    since: int = 0
    version: int = 0
    waiters: list[Waiter] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Event:
    at: int = -1
    item: Item | None = None
    streams: list[Stream] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Waiter:
    left: int
    resume: Callable[[int], None]


class Stream:
    __slots__ = ("after", "device", "items", "last_end", "number", "running")

    def __init__(self, device: Device, number: int) -> None:
        self.device = device
        self.number = number
        self.items: deque[Item] = deque()
        self.running: Item | None = None
        self.last_end = -(1 << 60)
        self.after = 0


class Device:
    __slots__ = ("fifo", "moving", "rank", "running", "streams")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.streams: dict[int, Stream] = {}
        self.fifo: deque[Item] = deque()
        self.running: set[Item] = set()
        self.moving: set[Item] = set()


class Thread:
    __slots__ = ("code", "host", "now", "pc", "stack")

    def __init__(self, host: Host) -> None:
        self.host = host
        self.code = host.code
        self.pc = 0
        self.now = 0
        self.stack: list[tuple[str, str, int, dict[str, Any], int]] = []


@dataclass(slots=True)
class Recording:
    """What happened: every row of every rank, in no order."""

    host: list[HostRow]
    device: list[Item]
    collectives: list[Collective]


def run(hosts: Sequence[Host], physics: Physics, starts: dict[int, int] | None = None) -> Recording:
    """Run all threads to their ends.

    Args:
        hosts: The threads' programs.
        physics: The machine's constants.
        starts: When a rank's threads begin; 0 where not given.

    Raises:
        RuntimeError: Threads or streams wait for each other for ever: the job was written wrongly.
    """
    return _Machine(hosts, physics, starts or {}).run()


class _Machine:
    def __init__(self, hosts: Sequence[Host], physics: Physics, starts: dict[int, int]) -> None:
        self.physics = physics
        self.heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.count = 0
        self.devices: dict[int, Device] = {}
        self.events: dict[tuple[int, Hashable], Event] = {}
        self.posts: dict[tuple[int, Hashable], int] = {}
        self.getters: dict[tuple[int, Hashable], Thread] = {}
        self.locks: dict[tuple[int, Hashable], deque[Thread]] = {}
        self.held: dict[tuple[int, Hashable], Thread | None] = {}
        self.host_rows: list[HostRow] = []
        self.device_rows: list[Item] = []
        self.collectives: dict[int, Collective] = {}
        self.arrived: dict[int, list[Item]] = {}
        self.correlation = 100
        self.external = 0
        self.draws: dict[tuple[int, str], int] = {}
        self.threads = [Thread(host) for host in hosts]
        for thread in self.threads:
            thread.now = starts.get(thread.host.rank, 0)
            self.at(thread.now, self.step, thread)

    def at(self, time: int, action: Callable[..., None], *args: Any) -> None:
        self.count += 1
        heapq.heappush(self.heap, (time, self.count, action, args))

    def vary(self, ns: int, rank: int, what: str) -> int:
        """Return a constant of the machine as it is this time: the n-th time the same in every run of a job."""
        count = self.draws[rank, what] = self.draws.get((rank, what), 0) + 1
        noise = zlib.crc32(f"{rank} {what} {count}".encode()) / (1 << 31) - 1.0
        return round(ns * (1.0 + self.physics.spread * noise))

    def run(self) -> Recording:
        while self.heap:
            time, _, action, args = heapq.heappop(self.heap)
            action(time, *args)
        waiting = [*self.getters.values(), *(thread for queue in self.locks.values() for thread in queue)]
        stuck = [thread for thread in self.threads if thread.pc < len(thread.code)]
        for thread in [*waiting, *stuck]:
            message = f"rank {thread.host.rank} {thread.host.thread} hangs at {thread.code[max(0, thread.pc - 1)]}"
            raise RuntimeError(message)
        for device in self.devices.values():
            for stream in device.streams.values():
                if stream.items or stream.running:
                    message = f"rank {device.rank} stream {stream.number} hangs"
                    raise RuntimeError(message)
        return Recording(self.host_rows, self.device_rows, list(self.collectives.values()))

    # ------------------------------------------------------------------------------------------------ host

    def step(self, now: int, thread: Thread) -> None:
        """Let a thread work until it has to wait, or until others must be heard first."""
        thread.now = now
        code, size = thread.code, len(thread.code)
        while thread.pc < size:
            instruction = code[thread.pc]
            kind = instruction[0]
            thread.pc += 1
            if kind == WORK:
                thread.now += instruction[1]
            elif kind == OPEN:
                self.external += 1
                thread.stack.append((instruction[1], instruction[2], thread.now, instruction[3], self.external))
            elif kind == CLOSE:
                name, cat, start, args, external = thread.stack.pop()
                row = HostRow(thread.host.rank, thread.host.thread, cat, name, start, thread.now, args, external)
                self.host_rows.append(row)
            elif kind == CALL:
                self._row(thread, instruction[1], thread.now, thread.now + instruction[2])
                thread.now += instruction[2]
            elif kind == MARK:
                row = HostRow(
                    thread.host.rank, thread.host.thread, instruction[2], instruction[1], thread.now, -1, instruction[3]
                )
                self.host_rows.append(row)
            elif kind in (RECORD, WAIT):
                self._stream_call(thread, instruction)
            elif kind == LAUNCH and not instruction[4]:
                self._launch(thread, instruction)
            else:
                # These depend on what others do up to now: they take their turn in the order of time.
                self.at(thread.now, self._meet, thread, instruction)
                return

    def _row(self, thread: Thread, name: str, start: int, end: int, *, launches: bool = False) -> HostRow:
        self.correlation += 1
        row = HostRow(
            thread.host.rank, thread.host.thread, "cuda_runtime", name, start, end, {}, self.correlation, launches
        )
        row.args = {"External id": thread.stack[-1][4] if thread.stack else 0}
        self.host_rows.append(row)
        return row

    def _stream_call(self, thread: Thread, instruction: tuple[Any, ...]) -> None:
        rank = thread.host.rank
        if instruction[0] == RECORD:
            _, call, key, number = instruction
            event = Event()
            self.events[rank, key] = event
            item = Item("record", rank, number, thread.now, event=event)
            event.item = item
        else:
            _, call, number, key = instruction
            item = Item("wait", rank, number, thread.now, event=self.events[rank, key])
        self._row(thread, call, thread.now, thread.now + STREAM_CALL_NS)
        self.at(thread.now, self._enqueue, item)
        thread.now += STREAM_CALL_NS

    def _launch(self, thread: Thread, instruction: tuple[Any, ...]) -> list[Item]:
        _, call, ns, tasks, _ = instruction
        items = []
        first = thread.now
        row = self._row(thread, call, first, first + ns, launches=True)
        rank = thread.host.rank
        ready = first + self.vary(self.physics.launch_ns, rank, f"launch {thread.host.thread}")
        for task in tasks:
            item = Item("task", rank, task.stream, ready, task)
            item.correlation = row.correlation
            item.external = row.args["External id"]
            item.called = first
            if task.collective is not None:
                self.collectives[id(task.collective)] = task.collective
            self.at(first, self._enqueue, item)
            items.append(item)
        thread.now += ns
        return items

    def _meet(self, now: int, thread: Thread, instruction: tuple[Any, ...]) -> None:
        kind = instruction[0]
        rank = thread.host.rank
        if kind == SYNC:
            self._sync(thread, instruction)
        elif kind == LAUNCH:
            self._blocking_launch(thread, instruction)
        elif kind == PUT:
            key = (rank, instruction[1])
            self.posts[key] = now
            waiting = self.getters.pop(key, None)
            if waiting is not None:
                self.at(now + HAND_OVER_NS, self.step, waiting)
            self.step(now, thread)
        elif kind == GET:
            key = (rank, instruction[1])
            if key in self.posts:
                self.step(now, thread)
            else:
                self.getters[key] = thread
        elif kind == LOCK:
            key = (rank, instruction[1])
            if self.held.get(key) is None:
                self.held[key] = thread
                self.step(now, thread)
            else:
                self.locks.setdefault(key, deque()).append(thread)
        else:
            key = (rank, instruction[1])
            queue = self.locks.get(key)
            follower = queue.popleft() if queue else None
            self.held[key] = follower
            if follower is not None:
                self.at(now + LOCK_NS, self.step, follower)
            self.step(now, thread)

    def _outstanding(self, rank: int, number: int | None) -> list[Item]:
        device = self.devices.get(rank)
        if device is None:
            return []
        streams = device.streams.values() if number is None else [device.streams[number]]
        last = []
        for stream in streams:
            if stream.items:
                last.append(stream.items[-1])
            elif stream.running is not None:
                last.append(stream.running)
        return last

    def _sync(self, thread: Thread, instruction: tuple[Any, ...]) -> None:
        _, call, number, key, own = instruction
        if key is not None:
            item = self.events[thread.host.rank, key].item
            assert item is not None
            pending = [item] if item.end < 0 else []
        else:
            pending = self._outstanding(thread.host.rank, number)
        self._resume_after(thread, call, pending, own)

    def _blocking_launch(self, thread: Thread, instruction: tuple[Any, ...]) -> None:
        start = thread.now
        _, call, ns, tasks, _ = instruction
        items = self._launch(thread, (LAUNCH, call, ns, tasks, False))
        row = next(row for row in reversed(self.host_rows) if row.correlation == items[-1].correlation)

        def resume(time: int) -> None:
            row.end = max(start + ns, time + self.vary(self.physics.return_ns, thread.host.rank, "return"))
            self.at(row.end, self.step, thread)

        items[-1].waiters.append(Waiter(1, resume))

    def _resume_after(self, thread: Thread, call: str, pending: list[Item], own: int) -> None:
        start = thread.now
        physics = self.physics

        def resume(time: int) -> None:
            back = time + self.vary(physics.return_ns, thread.host.rank, "return") if pending else 0
            end = max(start + physics.floor_ns, back) + own
            self._row(thread, call, start, end)
            self.at(end, self.step, thread)

        if not pending:
            resume(start)
            return
        waiter = Waiter(len(pending), resume)
        for item in pending:
            item.waiters.append(waiter)

    # ---------------------------------------------------------------------------------------------- device

    def _enqueue(self, _: int, item: Item) -> None:
        device = self.devices.get(item.rank)
        if device is None:
            device = self.devices[item.rank] = Device(item.rank)
        stream = device.streams.get(item.stream)
        if stream is None:
            stream = device.streams[item.stream] = Stream(device, item.stream)
        stream.items.append(item)
        if self.physics.one_queue:
            device.fifo.append(item)
        self.at(max(item.ready, stream.after), self.advance, stream)

    def advance(self, now: int, stream: Stream) -> None:
        """Let a stream go on as far as it can."""
        while stream.items and stream.running is None:
            item = stream.items[0]
            if self.physics.one_queue and not self._my_turn(stream.device, item):
                return
            if item.kind == "task":
                start = max(item.ready, stream.after, stream.last_end + self.physics.gap_ns)
                if start > now:
                    self.at(start, self.advance, stream)
                    return
                stream.items.popleft()
                self._issue(stream.device, item, now)
                self._start(stream, item, now)
                return
            event = item.event
            assert event is not None
            if item.kind == "wait" and event.at < 0:
                event.streams.append(stream)
                return
            if item.kind == "wait" and event.at > max(item.ready, stream.last_end):
                lag = self.vary(self.physics.event_ns, item.rank, f"event {item.stream}")
                stream.after = max(stream.after, event.at + lag)
            stream.items.popleft()
            self._issue(stream.device, item, now)
            self._done(item, now)
            if item.kind == "record":
                event.at = now
                for waiting in event.streams:
                    self.at(now, self.advance, waiting)

    def _my_turn(self, device: Device, item: Item) -> bool:
        while device.fifo and device.fifo[0].issued:
            device.fifo.popleft()
        return not device.fifo or device.fifo[0] is item

    def _issue(self, device: Device, item: Item, now: int) -> None:
        item.issued = True
        if self.physics.one_queue:
            while device.fifo and device.fifo[0].issued:
                device.fifo.popleft()
            if device.fifo:
                self.at(now, self.advance, device.streams[device.fifo[0].stream])

    def _done(self, item: Item, now: int) -> None:
        item.end = now
        for waiter in item.waiters:
            waiter.left -= 1
            if waiter.left == 0:
                waiter.resume(now)

    def _start(self, stream: Stream, item: Item, now: int) -> None:
        stream.running = item
        item.start = now
        task = item.task
        assert task is not None
        collective = task.collective
        if collective is None:
            self._move(item, task.ns, now)
            return
        collective.started[item.rank] = now
        here = self.arrived.setdefault(id(collective), [])
        here.append(item)
        if len(here) == len(collective.members):
            self._move(item, collective.ns, now)

    def _move(self, item: Item, ns: int, now: int) -> None:
        """Let a kernel, or the whole of a collective (through its last member), run from now on."""
        if self.physics.contention is None:
            self.at(now + ns, self._finish, item, item.version)
            return
        item.left, item.since, item.rate = float(ns), now, 0.0
        for member in self._members(item):
            device = self.devices[member.rank]
            (device.moving if item.task is not None and item.task.collective else device.running).add(item)
        self._retime(item, now)

    def _members(self, item: Item) -> list[Item]:
        task = item.task
        assert task is not None
        return [item] if task.collective is None else self.arrived[id(task.collective)]

    def _retime(self, cause: Item, now: int) -> None:
        """Set anew the pace of everything that shares a device with what has just begun or ended."""
        assert self.physics.contention is not None
        touched: dict[Item, None] = {cause: None}
        for member in self._members(cause):
            device = self.devices[member.rank]
            touched.update(dict.fromkeys(device.running | device.moving))
        for item in sorted(touched, key=lambda it: (it.rank, it.stream, it.start)):
            if item.end >= 0 or item.since < 0:
                continue
            task = item.task
            assert task is not None
            item.left -= (now - item.since) * item.rate
            item.since = now
            busy = [self.devices[member.rank] for member in self._members(item)]
            if task.collective is not None:
                slow = self.physics.contention[1] if any(device.running for device in busy) else 1.0
            else:
                is_copy = task.cat != "kernel"
                slow = self.physics.contention[0] if not is_copy and any(device.moving for device in busy) else 1.0
            item.rate = 1.0 / slow
            item.version += 1
            self.at(now + max(0, round(item.left * slow)), self._finish, item, item.version)

    def _finish(self, now: int, item: Item, version: int) -> None:
        if item.version != version or item.end >= 0:
            return
        task = item.task
        assert task is not None
        members = self._members(item)
        for member in members:
            member_stream = self.devices[member.rank].streams[member.stream]
            member_stream.running = None
            member_stream.last_end = now
            self._done(member, now)
            self.device_rows.append(member)
            self.at(now, self.advance, member_stream)
        if self.physics.contention is not None:
            for member in members:
                device = self.devices[member.rank]
                device.running.discard(item)
                device.moving.discard(item)
            self._retime(item, now)
