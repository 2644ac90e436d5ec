"""What a program opens is what the file holds."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole import record
from longpole.errors import UsageError
from longpole.recorder.spans import OBJECTS
from tests.span_files import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNTS = st.none() | st.integers(0, 1 << 62)
SPANS = st.fixed_dictionaries(
    {
        "name": st.text(max_size=20),
        "object": st.sampled_from(sorted(OBJECTS)),
        "bytes": COUNTS,
        "items": COUNTS,
        "stage": st.sampled_from(["", "forward", "own"]),
        "waits": st.booleans(),
    }
)


@given(spans=st.lists(SPANS, max_size=20))
def test_what_is_recorded_is_read_back(spans: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> None:
    recording = Recording(tmp_path_factory.mktemp("spans"))
    record.start(recording.folder)

    for span in spans:
        with record.stage(**span):
            pass
    with record.unit("end"):
        pass

    file = recording.stop()
    assert file.damaged_lines == 0
    assert file.cut_at_byte is None
    read = [
        {"name": s.n, "object": s.o, "bytes": s.b, "items": s.items, "stage": s.stage, "waits": s.waits}
        for s in file.spans
    ]
    assert read == spans


def test_a_name_with_a_lone_surrogate_is_escaped_and_its_neighbours_are_kept(recording: Recording) -> None:
    for name in ("before", "bad\udcff", "after"):
        with record.stage(name):
            pass

    assert [span.n for span in recording.stop().spans] == ["before", "bad\\udcff", "after"]


def test_spans_lie_inside_their_unit(recording: Recording) -> None:
    with record.unit(3, items=32), record.stage("forward"), record.stage("attention", object="compute"):
        pass

    file = recording.stop()
    inner, outer = file.spans
    (unit,) = file.units
    assert (unit.n, unit.items, outer.n, outer.stage, inner.stage) == ("step 3", 32, "forward", "forward", "")
    assert unit.s <= outer.s <= inner.s
    assert inner.s + inner.d <= outer.s + outer.d <= unit.s + unit.d


def test_an_exception_passes_through_and_its_spans_say_so(recording: Recording) -> None:
    with pytest.raises(ZeroDivisionError), record.unit(0), record.stage("forward"):
        _ = 1 // 0

    file = recording.stop()
    assert [file.spans[0].failed, file.units[0].failed] == [True, True]


def test_sizes_may_be_set_inside(recording: Recording) -> None:
    with record.unit(0) as unit, record.stage("input", object="input") as span:
        span.bytes = 4096
        unit.items = 8

    file = recording.stop()
    assert (file.spans[0].b, file.units[0].items) == (4096, 8)


@pytest.mark.parametrize(
    "wrong", [{"object": "inputs"}, {"bytes": -1}, {"bytes": 1.5}, {"items": True}, {"bytes": 1 << 63}]
)
def test_what_cannot_be_meant_is_refused_while_recording(wrong: dict[str, Any], recording: Recording) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))), record.stage("input", **wrong):
        pass

    with record.stage("fine"):
        pass
    assert [span.n for span in recording.stop().spans] == ["fine"]


def _fail(span: Any) -> int:
    span.bytes = -1
    return 1 // 0


def test_a_wrong_size_set_inside_does_not_hide_the_programs_own_error(recording: Recording) -> None:
    with pytest.raises(UsageError, match="bytes"), record.stage("a") as span:
        span.bytes = -1
    span = record.stage("b")
    with pytest.raises(ZeroDivisionError), span:
        _fail(span)

    assert [(span.n, span.b) for span in recording.stop().spans] == [("b", None)]


def test_while_recording_is_off_nothing_is_checked_written_or_kept(tmp_path: Path) -> None:
    assert not record.is_on()
    with record.unit(0, items=-1), record.stage("input", object="no such") as span:
        span.bytes = -5
    record.queue("q", -1)
    record.flush()
    record.stop()

    assert record.path() is None
    assert list(tmp_path.iterdir()) == []


def test_functions_decorated_before_recording_began_are_recorded(tmp_path: Path) -> None:
    @record.stage("forward", object="compute")
    def double(x: int) -> int:
        """Say something."""
        return 2 * x

    assert double(2) == 4
    assert (double.__name__, double.__doc__) == ("double", "Say something.")
    recording = Recording(tmp_path)
    record.start(tmp_path)
    assert double(3) == 6

    assert [(span.n, span.o, span.stage) for span in recording.stop().spans] == [("forward", "compute", "forward")]


def test_each_step_of_a_decorated_generator_is_a_span(recording: Recording) -> None:
    """What the consumer does in between is not the generator's."""

    @record.stage("read")
    def read() -> Any:
        got = yield 1
        try:
            yield got
        except KeyError:
            yield 9

    steps = read()
    assert (next(steps), steps.send(5), steps.throw(KeyError())) == (1, 5, 9)
    assert list(steps) == []

    spans = recording.stop().spans
    assert [span.failed for span in spans] == [False] * 4


def test_a_decorated_generator_still_makes_a_context(recording: Recording) -> None:
    closed = []

    @contextlib.contextmanager
    @record.stage("open")
    def opened() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append(True)

    with pytest.raises(ValueError, match="inside"), opened():
        raise ValueError("inside")  # noqa: EM101

    assert closed
    assert [span.failed for span in recording.stop().spans] == [False, True]


def test_a_decorated_coroutine_is_one_span_and_an_asynchronous_generator_one_a_step(recording: Recording) -> None:
    @record.stage("fetch")
    async def fetch() -> int:
        await asyncio.sleep(0)
        return 1

    @record.stage("stream")
    async def stream() -> Any:
        yield 1
        yield 2

    async def consume() -> list[int]:
        return [await fetch(), *[value async for value in stream()]]

    assert asyncio.run(consume()) == [1, 1, 2]
    assert [span.n for span in recording.stop().spans] == ["fetch", "stream", "stream", "stream"]


def test_tasks_of_one_thread_may_overlap(recording: Recording) -> None:
    async def work(name: str) -> None:
        with record.stage(name):
            await asyncio.sleep(0.001)

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())

    first, second = recording.stop().spans
    assert {first.n, second.n} == {"a", "b"}
    assert first.t == second.t
    assert max(first.s, second.s) < min(first.s + first.d, second.s + second.d)


def test_threads_are_told_apart_and_nothing_is_lost(recording: Recording) -> None:
    def work(name: str) -> None:
        for _ in range(500):
            with record.stage(name):
                pass

    threads = [threading.Thread(target=work, args=(f"w{n}",), name=f"w{n}") for n in range(4)]
    for thread in threads:
        thread.start()
    record.flush()
    for thread in threads:
        thread.join()

    file = recording.stop()
    assert {name: sum(span.n == name for span in file.spans) for name in ("w0", "w1", "w2", "w3")} == dict.fromkeys(
        ("w0", "w1", "w2", "w3"), 500
    )
    assert file.lost_lines == 0


def test_a_queue_is_noted_with_its_bound(recording: Recording) -> None:
    record.queue("writer", 3, 4, bytes=10, object="output")

    (line,) = recording.stop().queues
    assert (line.n, line.depth, line.capacity, line.b, line.o) == ("writer", 3, 4, 10, "output")
