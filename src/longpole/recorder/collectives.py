"""A mark before and after each collective of torch.distributed, so that who never arrived can be read from the files.

The methods of `ProcessGroup` are wrapped, and not the functions above them: every function of torch.distributed ends
there, also one that another module imported by name before, and `isend` and `irecv` keep the identity that
`batch_isend_irecv` asks for. What C++ issues by itself does not pass here: the reducer of DistributedDataParallel (a
communication hook in Python does), and functional collectives.

    enter ├── issued ──┤ … the program goes on … ├ wait() ┤ leave
"""

from __future__ import annotations

import functools
import sys
from contextlib import nullcontext
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from longpole.errors import UsageError
from longpole.recorder.device import clock_of
from longpole.recorder.event_clock import Pending
from longpole.recorder.session import STATE, Recorder
from longpole.recorder.spans import Stage
from longpole.records.span_file import CollectiveLine

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

# Method of ProcessGroup -> kind, and place of the input among its arguments after the group (None: it has none).
_METHODS: Final[dict[str, tuple[str, int | None]]] = {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce", 0),
    "allgather": ("all_gather", 1),
    "_allgather_base": ("all_gather", 1),
    "all_gather_single": ("all_gather", 1),
    "allgather_coalesced": ("all_gather", 1),
    "allgather_into_tensor_coalesced": ("all_gather", 1),
    "all_gather_single_coalesced": ("all_gather", 1),
    "reduce_scatter": ("reduce_scatter", 1),
    "_reduce_scatter_base": ("reduce_scatter", 1),
    "reduce_scatter_single": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter", 1),
    "alltoall": ("all_to_all", 1),
    "alltoall_base": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all", 1),
    "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0),
    "gather": ("gather", 1),
    "scatter": ("scatter", 1),
    "barrier": ("barrier", None),
    "monitored_barrier": ("barrier", None),
    "send": ("send", 0),
    "recv": ("recv", 0),
    "recv_anysource": ("recv", 0),
}


_DIRECTIONS: Final = ("send", "recv")


class _Call(NamedTuple):
    """Which operation a process issues: the `seq`-th of its group, of a send or receive with the same peer."""

    kind: str
    group: str
    seq: int
    peer: int | None


class Marks:
    """The marks on torch.distributed; `restore` takes them off, as does the end of a `with`."""

    def __init__(self, *, write_through: bool) -> None:
        self.write_through = write_through
        self._kept: dict[str, Any] = {}
        self._owner: Any = None
        self._issued: dict[tuple[str, str, int], int] = {}

    def install(self, process_group: Any) -> None:
        """Wrap the methods of the class of process groups."""
        self._owner = process_group
        for method, (kind, place) in _METHODS.items():
            original = process_group.__dict__.get(method)
            if original is not None:
                self._kept[method] = original
                setattr(process_group, method, self._wrap(getattr(process_group, method), kind, place))

    def restore(self) -> None:
        """Take the marks off; operations that are under way still get their `leave`."""
        for method, original in self._kept.items():
            setattr(self._owner, method, original)
        self._kept.clear()
        if _INSTALLED and _INSTALLED[-1] is self:
            _INSTALLED.clear()

    def __enter__(self) -> Marks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def _wrap(self, original: Callable[..., Any], kind: str, place: int | None) -> Callable[..., Any]:
        @functools.wraps(original)
        def marked(group: Any, *args: Any, **kwargs: Any) -> Any:
            called = self._count(group, kind, args)
            recorder = STATE.recorder
            if recorder is None:
                return original(group, *args, **kwargs)
            tensors = _flatten(args[place]) if place is not None and len(args) > place else []
            blocking = not _is_asynchronous(args, kwargs)
            operation = self._enter(recorder, called, group, tensors, blocking=blocking)
            work = original(group, *args, **kwargs)
            if work is None:  # done, as far as the host is concerned, when the call returns
                operation.leave()
                return None
            return WaitedWork(work, operation)

        return marked

    def _count(self, group: Any, kind: str, args: tuple[Any, ...]) -> _Call:
        """Give an operation its number in its group; while recording is off too, so that all ranks count alike."""
        name, peer = str(group.group_name), _peer_of(group, kind, args)
        key = (name, kind if kind in _DIRECTIONS else "", -1 if peer is None else peer)
        seq = self._issued.get(key, 0)
        self._issued[key] = seq + 1
        return _Call(kind, name, seq, peer)

    def _enter(self, recorder: Recorder, called: _Call, group: Any, tensors: list[Any], *, blocking: bool) -> Operation:
        on_device = any(tensor.is_cuda for tensor in tensors)
        first = called.group not in recorder.groups
        recorder.groups.add(called.group)
        line = CollectiveLine(
            "enter",
            called.kind,
            called.group,
            called.seq,
            perf_counter_ns(),
            get_ident(),
            members=_members_of(group) if first else None,
            b=sum(tensor.nbytes for tensor in tensors),
            dtype=str(tensors[0].dtype).removeprefix("torch.") if tensors else "",
            blocking=blocking and not on_device,
            peer=called.peer,
        )
        if self.write_through:
            recorder.keep_on_disk(line)
        else:
            recorder.keep(line)
        return Operation(recorder, line, on_device=on_device)


class Operation:
    """One collective that was issued."""

    __slots__ = ("_enter", "_left", "_on_device", "_recorder")

    def __init__(self, recorder: Recorder, enter: CollectiveLine, *, on_device: bool) -> None:
        self._recorder = recorder
        self._enter = enter
        self._on_device = on_device
        self._left = False

    def waiting(self) -> AbstractContextManager[Any]:
        """Return a span for the wait: of an operation whose call returned at once, that is where it shows."""
        if self._enter.blocking or self._left:
            return nullcontext()
        return Stage(f"{self._enter.kind}.wait", object="collective", waits=True)

    def leave(self) -> None:
        """Mark the end: now, or where a device does the work, when the device is done with it."""
        if self._left:
            return
        self._left = True
        clock = clock_of(self._recorder) if self._on_device else None
        if clock is None:
            self._write(perf_counter_ns())
            return
        cuda = sys.modules["torch"].cuda
        event = cuda.Event(enable_timing=True)
        event.record(cuda.current_stream())
        clock.add(Pending(cuda.current_device(), event, event, lambda _start_ns, end_ns: self._write(end_ns)))

    def _write(self, at_ns: int) -> None:
        enter = self._enter
        self._recorder.keep(
            CollectiveLine(
                "leave",
                enter.kind,
                enter.group,
                enter.seq,
                max(at_ns, enter.s),
                enter.t,
                blocking=enter.blocking,
                peer=enter.peer,
            )
        )


class WaitedWork:
    """What a collective gives to wait for, as PyTorch made it, but for the mark when the wait is over."""

    __slots__ = ("_operation", "_work")

    def __init__(self, work: Any, operation: Operation) -> None:
        self._work = work
        self._operation = operation

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the wrapped one, for those who ask whether this is a `Work`."""
        return type(self._work)

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for the operation, and mark its end."""
        with self._operation.waiting():
            done = self._work.wait(*args, **kwargs)
        self._operation.leave()
        return done

    def synchronize(self) -> Any:
        """Wait for the operation, and mark its end."""
        with self._operation.waiting():
            done = self._work.synchronize()
        self._operation.leave()
        return done

    def is_completed(self) -> bool:
        """Tell whether the operation is done; where it is, that is its end as far as the program can tell."""
        done = bool(self._work.is_completed())
        if done:
            self._operation.leave()
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


_INSTALLED: Final[list[Marks]] = []


def collectives(*, write_through: bool = False) -> Marks:
    """Mark each collective, send and receive of torch.distributed when it is issued and when it is done.

    The marks stay in this process until `restore()` of what is returned, or the end of a `with`; while recording is off
    they only pass calls on. A mark is on disk within a second, by the flush thread: a collective that hangs lets that
    thread run. With `write_through` it is on disk before the collective is issued, so that a process that is killed, or
    that dies in the call itself, leaves it too.

    Raises:
        UsageError: PyTorch is not loaded, or was built without torch.distributed.
    """
    distributed = sys.modules.get("torch.distributed")
    process_group = getattr(distributed, "ProcessGroup", None)
    if process_group is None:
        msg = "record.collectives: torch.distributed is not loaded; call it after `import torch.distributed`"
        raise UsageError(msg)
    if _INSTALLED:
        _INSTALLED[-1].write_through |= write_through
        return _INSTALLED[-1]
    marks = Marks(write_through=write_through)
    marks.install(process_group)
    _INSTALLED.append(marks)
    return marks


def _flatten(tensors: Any) -> list[Any]:
    if isinstance(tensors, list | tuple):
        return [tensor for part in tensors for tensor in _flatten(part)]
    return [tensors] if hasattr(tensors, "nbytes") and hasattr(tensors, "is_cuda") else []


def _is_asynchronous(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether the caller said that it will wait itself; the options of a call say so from PyTorch 2.8 on."""
    options = kwargs.get("opts", args[-1] if args else None)
    return bool(getattr(options, "asyncOp", True))


def _members_of(group: Any) -> list[int] | None:
    distributed = sys.modules["torch.distributed"]
    try:
        return [int(rank) for rank in distributed.get_process_group_ranks(group)]
    except (RuntimeError, ValueError, KeyError, AttributeError):
        return None  # a group that was made outside torch.distributed


def _peer_of(group: Any, kind: str, args: tuple[Any, ...]) -> int | None:
    """Return the global rank at the other end of a send or receive, None for one from anybody."""
    if kind not in _DIRECTIONS or len(args) < 3:
        return None
    members = _members_of(group)
    return members[args[1]] if members is not None and 0 <= args[1] < len(members) else int(args[1])
