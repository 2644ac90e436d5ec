"""What each memory holds in each unit, from allocations and releases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from longpole.digest.digest import Selection, digest
from longpole.records.memory import MemoryUse, peak_of
from longpole.settings import Settings
from longpole.timeline.columns import NONE_BYTES
from longpole.timeline.tables import MemoryTable
from tests.build import VOCABULARY, Script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.memory import RankMemory

Row = tuple[float, int, int, int]  # at µs, changed, allocated in all, reserved in all


def _memory(*rows: Row, device: int = 0) -> MemoryTable:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return MemoryTable(
        time_ns=columns[0] * 1000,
        device=np.full(len(rows), device, np.int32),
        size_bytes=columns[1],
        allocated_bytes=columns[2],
        reserved_bytes=columns[3],
        event=np.arange(len(rows), dtype=np.uint32),
    )


def _measure(memory: MemoryTable, *, between: float = 0, device_bytes: int = 0) -> list[RankMemory]:
    """Three steps of 100 µs from 100 on, of which the last `between` lie behind their markers; a head before them."""
    script = Script()
    script.op("aten::linear", 0, 50)
    for number in range(3):
        start = 100 + 100 * number
        script.step(number, start, start + 100 - between)
        script.kernel(start + 20, start + 80, script.launch(start + 5, start + 10))
    timeline = replace(script.timeline(), memory=memory, device_bytes={0: device_bytes} if device_bytes else {})
    return digest(timeline, VOCABULARY, Settings(), Selection()).memory


def _ends(memory: RankMemory) -> Sequence[int]:
    return [use.end_allocated_bytes for use in memory.units.values()]


def test_a_record_without_memory_events_says_nothing() -> None:
    assert _measure(MemoryTable.empty()) == []


def test_each_unit_has_its_peaks_and_its_end() -> None:
    rows = [(110, 30, 130, 200), (150, 50, 180, 400), (190, -60, 120, 400), (250, 10, 130, 400)]

    (memory,) = _measure(_memory(*rows), device_bytes=1000)

    assert (memory.memory, memory.is_host, memory.from_start) == ("cuda:0", False, False)
    assert (memory.n_events, memory.capacity_bytes) == (4, 1000)
    assert list(memory.units) == ["head", "ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    assert memory.units["ProfilerStep#0"] == MemoryUse(180, 120, 400, 400, 280, 0)
    assert memory.units["ProfilerStep#1"] == MemoryUse(130, 130, 400, 400, 280, 0)


def test_what_was_held_before_the_first_event_is_what_that_one_adds_to() -> None:
    (memory,) = _measure(_memory((210, 30, 130, 200)))

    assert memory.units["head"] == MemoryUse(100, 100, 200, 200, 100, 0)
    assert _ends(memory) == [100, 100, 130, 130]


def test_a_unit_without_events_carries_what_was_held() -> None:
    (memory,) = _measure(_memory((110, 100, 100, 128), (310, 7, 107, 128)))

    assert memory.units["ProfilerStep#1"] == MemoryUse(100, 100, 128, 128, 28, 0)


def test_the_end_of_a_unit_is_that_of_its_marker() -> None:
    """What is let go between two markers must not make the last unit, which has nothing behind it, look like a rise."""
    rows = [(110, 100, 100, 128), (196, -60, 40, 128), (210, 60, 100, 128), (296, -60, 40, 128), (310, 60, 100, 128)]

    (memory,) = _measure(_memory(*rows), between=10)

    assert _ends(memory) == [0, 100, 100, 100]


def test_an_event_at_a_border_belongs_to_the_unit_behind_it() -> None:
    (memory,) = _measure(_memory((110, 5, 5, 8), (200, 4, 9, 16)))

    assert memory.units["ProfilerStep#0"].peak_allocated_bytes == 5
    assert memory.units["ProfilerStep#1"].peak_allocated_bytes == 9


def test_memory_that_goes_back_to_the_driver_is_counted() -> None:
    rows = [(110, 100, 100, 400), (120, -50, 50, 300), (130, 100, 150, 500), (220, 1, 151, 450)]

    (memory,) = _measure(_memory(*rows))

    assert [use.reserved_falls for use in memory.units.values()] == [0, 1, 1, 0]


def test_the_host_counts_from_the_start_of_the_record_and_reserves_nothing() -> None:
    (memory,) = _measure(_memory((110, 8, 8, 0), (210, 8, 16, 0), device=-1))

    assert (memory.memory, memory.is_host, memory.from_start) == ("cpu", True, True)
    assert memory.units["ProfilerStep#1"] == MemoryUse(16, 16)


def test_without_totals_what_changed_is_added_up() -> None:
    """Exporters of 2021: what was given back first must have been there before."""
    rows = [(110, -20, NONE_BYTES, NONE_BYTES), (120, 50, NONE_BYTES, NONE_BYTES), (210, 5, NONE_BYTES, NONE_BYTES)]

    (memory,) = _measure(_memory(*rows))

    assert memory.from_start
    assert _ends(memory) == [20, 50, 55, 55]
    assert memory.units["ProfilerStep#0"] == MemoryUse(50, 50)


def test_devices_come_by_number_and_the_host_last() -> None:
    own = _memory((110, 8, 8, 8))
    tables = [replace(own, device=np.array([device], np.int32)) for device in (-1, 2, 0)]
    joined = MemoryTable(
        **{
            column: np.concatenate([getattr(table, column) for table in tables])
            for column in ("time_ns", "device", "size_bytes", "allocated_bytes", "reserved_bytes", "event")
        }
    )

    assert [memory.memory for memory in _measure(joined)] == ["cuda:0", "cuda:2", "cpu"]


def test_the_peak_of_a_record_keeps_what_was_reserved_with_it() -> None:
    rows = [(110, 90, 90, 100), (210, -50, 40, 300), (310, 1, 41, 300)]

    (memory,) = _measure(_memory(*rows))

    peak = peak_of(memory)
    assert (peak.peak_allocated_bytes, peak.reserved_at_peak_bytes) == (90, 100)
    assert (peak.peak_reserved_bytes, peak.largest_spare_bytes) == (300, 260)
