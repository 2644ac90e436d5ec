"""Output: checkpoints, and a writer whose full queue holds the loop up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from longpole import record
from longpole.errors import UsageError

if TYPE_CHECKING:
    from tests.span_files import Recording


def test_a_checkpoint_is_output_as_a_block_and_as_a_function(recording: Recording) -> None:
    saved = []
    with record.checkpoint(bytes=100):
        saved.append(1)
    record.checkpoint(saved.append, name="save")(2)

    assert saved == [1, 2]
    assert [(s.n, s.o, s.b) for s in recording.stop().spans] == [
        ("checkpoint", "output", 100),
        ("save", "output", None),
    ]


def test_a_writer_writes_everything_in_order(recording: Recording) -> None:
    written: list[bytes] = []
    with record.writer(written.append, capacity=2) as writer:
        for item in (b"a", b"bc", b"def"):
            writer.put(item)

    assert written == [b"a", b"bc", b"def"]
    file = recording.stop()
    writes = [span for span in file.spans if span.n == "writer.write"]
    assert [span.b for span in writes] == [1, 2, 3]
    assert {span.t for span in writes} != {file.header.main_thread}
    assert all(0 <= line.depth <= 2 and line.capacity == 2 for line in file.queues)


def test_a_full_queue_is_a_wait_for_output_on_the_loops_thread(recording: Recording) -> None:
    gate = threading.Event()
    writer: record.Writer[bytes] = record.writer(lambda _item: gate.wait(), capacity=1)
    writer.put(b"being written")
    while writer._queue.qsize():  # noqa: SLF001 - until the thread has taken it
        threading.Event().wait(0.001)
    writer.put(b"waiting")
    threading.Timer(0.05, gate.set).start()
    writer.put(b"held up")
    writer.close()

    file = recording.stop()
    (put,) = [span for span in file.spans if span.n == "writer.put"]
    assert (put.o, put.waits, put.t) == ("output", True, file.header.main_thread)
    assert put.d > 20_000_000, "it waited for the timer"
    assert any(line.depth == 1 for line in file.queues)


def test_what_a_write_raises_comes_out_of_the_next_call() -> None:
    def write(item: int) -> None:
        if item == 1:
            raise OSError("disk")  # noqa: EM101

    writer = record.writer(write)
    writer.put(1)
    with pytest.raises(OSError, match="disk"):
        writer.flush()
    writer.put(2)
    writer.close()
    writer.close()


def test_misuse_of_a_writer_is_named() -> None:
    with pytest.raises(UsageError, match="capacity"):
        record.writer(print, capacity=0)
    writer: record.Writer[int] = record.writer(lambda _item: None, name="tokens")
    writer.close()
    with pytest.raises(UsageError, match="tokens: put after close"):
        writer.put(1)
