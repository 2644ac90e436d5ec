"""Laws of ledgers on any span file, and the same ledger by looking at every millisecond."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longpole.digest.digest import Selection, digest
from longpole.readers.recorder.decode import process_of
from longpole.readers.recorder.lower import lower
from longpole.records.span_file_read import decode_span_file
from longpole.settings import Settings
from longpole.vocabulary.matcher import Vocabulary
from longpole.vocabulary.objects import MOVED_OBJECTS
from tests.span_scripts import BOOT_NS, EPOCH_NS, MS, SpanScript

if TYPE_CHECKING:
    from random import Random

VOCABULARY = Vocabulary.load()
LENGTH, UNIT = 40, 10  # ms
OTHER = 2
OBJECTS = ("compute", "input", "artifact", "state", "output", "collective", "host", "")
STAGES = ("", "forward", "backward", "optimizer", "elsewhere")


@dataclass(frozen=True)
class Drawn:
    """A span of one thread, or a blocking collective."""

    start: int
    end: int
    object: str
    stage: str
    thread: int
    waits: bool


@st.composite
def nested(draw: st.DrawFn, thread: int, low: int = 0, high: int = LENGTH, depth: int = 0) -> list[Drawn]:
    """Spans of a thread that lie inside one another or apart."""
    found: list[Drawn] = []
    at = low
    while at < high and depth < 4 and draw(st.booleans()):
        start = draw(st.integers(at, high - 1))
        end = draw(st.integers(start + 1, high))
        what = draw(st.sampled_from((*OBJECTS, "marks")))
        found.append(Drawn(start, end, what, draw(st.sampled_from(STAGES)), thread, draw(st.booleans())))
        found += draw(nested(thread, start, end, depth + 1))
        at = end
    return found


@st.composite
def files(draw: st.DrawFn) -> list[Drawn]:
    """The spans of a file: those of the main thread lie in one unit each, as `with` leaves them."""
    spans = [one for low in range(0, LENGTH, UNIT) for one in draw(nested(1, low, low + UNIT))]
    return spans + draw(nested(OTHER))


def script_of(spans: list[Drawn]) -> SpanScript:
    """Write spans as the recorder does: in the order in which they end, inner ones first."""
    script = SpanScript(world_size=2)
    order = sorted(range(len(spans)), key=lambda place: (spans[place].end, -place))
    for seq, one in enumerate(spans[place] for place in order):
        if one.object == "marks":
            script.collective(one.start, one.end, seq=seq, thread=one.thread, members=[0, 1])
        else:
            more = {"stage": one.stage, "waits": one.waits}
            script.span(f"span {seq}", one.start, one.end, one.object, thread=one.thread, **more)
    for k in range(LENGTH // UNIT):
        script.unit(f"step {k}", k * UNIT, (k + 1) * UNIT)
    return script


def by_looking(spans: list[Drawn]) -> Counter[str]:
    """Charge every millisecond of the main thread: to compute, communication, what is declared, the host."""
    charged: Counter[str] = Counter()
    for ms in range(LENGTH):
        open_now = [one for one in spans if one.start <= ms < one.end]
        own = [one.object for one in open_now if one.thread == 1 and one.object != ""]
        innermost = own[-1] if own else "host"  # spans are drawn from the outside in
        reduces = any(one.object == "marks" for one in open_now)
        if innermost == "compute":
            charged["compute"] += 1
        elif reduces:
            charged["collective"] += 1
        else:
            # Marks on the main thread would have been communication.
            charged[innermost] += 1
    return charged


@given(files())
def test_causes_tile_each_unit_and_are_what_looking_at_every_millisecond_says(spans: list[Drawn]) -> None:
    taken = digest(script_of(spans).timeline(), VOCABULARY, Settings(), Selection())

    total: Counter[str] = Counter()
    for unit in taken.rows[0].units:
        ledger = unit.ledger
        total.update({name: time.exposed_ns for name, time in ledger.objects.items()})
        assert sum(time.exposed_ns for time in ledger.objects.values()) == ledger.wall_ns
        assert ledger.device.busy_ns + ledger.device.idle_ns == ledger.wall_ns
        assert sum(ledger.idle_ns.values()) == ledger.device.idle_ns
        assert sum(stage.wall_ns for stage in unit.stages.values()) == ledger.wall_ns
        for name in (*MOVED_OBJECTS, "compute", "collective"):
            time = ledger.objects[name]
            assert isinstance(time.service_ns, int)
            assert isinstance(time.hidden_ns, int)
            assert 0 <= time.exposed_ns + time.hidden_ns <= time.service_ns
    assert +total == Counter({name: ms * MS for name, ms in by_looking(spans).items()})


@given(files(), st.randoms(use_true_random=False), st.integers(-1_000_000, 1_000_000))
def test_neither_the_order_of_lines_nor_the_origin_of_the_clock_changes_anything(
    spans: list[Drawn], random: Random, shift_ms: int
) -> None:
    told_apart = list({(one.thread, one.start, one.end): one for one in spans if one.object != "marks"}.values())
    script = script_of(told_apart)
    other = SpanScript(shift_ms, world_size=2, epoch_ns=EPOCH_NS + BOOT_NS)
    body = script.lines[1:]
    random.shuffle(body)
    other.lines += [msgspec.structs.replace(line, s=line.s + shift_ms * MS) for line in body]  # type: ignore[union-attr]

    before, after = (digest(one.timeline(), VOCABULARY, Settings(), Selection()) for one in (script, other))

    assert [unit.ledger for unit in before.rows[0].units] == [unit.ledger for unit in after.rows[0].units]
    assert before.base_ns is not None
    assert after.base_ns == before.base_ns - shift_ms * MS


@given(files(), st.integers(1, 4_000))
def test_a_file_cut_anywhere_behind_its_first_span_is_read(spans: list[Drawn], cut: int) -> None:
    data = script_of(spans).encoded()
    least = len(b"".join(data.splitlines(keepends=True)[:2]))

    file = decode_span_file(data[: min(least + cut, len(data))], "a.spans.jsonl")
    (timeline,) = lower([process_of(file)], Settings())

    assert len(timeline.host) >= 1
    assert bool((np.diff(timeline.host.track) >= 0).all())


def test_looking_at_every_millisecond_finds_what_a_picture_shows() -> None:
    """Compute 0–10 with input 2–4 in it, marks 8–20 on another thread: 8 compute, 2 input, 10 communication."""
    spans = [
        Drawn(0, 10, "compute", "", 1, waits=False),
        Drawn(2, 4, "input", "", 1, waits=False),
        Drawn(8, 20, "marks", "", OTHER, waits=False),
    ]

    assert by_looking(spans) == {"compute": 8, "input": 2, "collective": 10, "host": 20}
