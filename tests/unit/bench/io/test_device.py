"""Copies to and from a device, on a device that is plain memory: what is checked, not how fast it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from longpole.bench.io.device import DeviceCase, find_device
from longpole.bench.io.figures import make_path
from longpole.bench.io.storage import read_storage
from tests.io_benches import ROWS, SIZE, make_bench, take

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

NAMES = [name for name, row in ROWS.items() if row.device]


class MemoryDevice:
    """Keeps its buffers in host memory."""

    def describe(self) -> dict[str, str]:
        return {"device": "memory"}

    def new_buffer(self, size_bytes: int) -> Any:
        return np.zeros(size_bytes, dtype=np.uint8)

    def pin(self, array: NDArray[np.uint8]) -> Any:
        return array.copy()

    def host(self, buffer: Any) -> NDArray[np.uint8]:
        found: NDArray[np.uint8] = buffer
        return found

    def pageable(self, array: NDArray[np.uint8]) -> Any:
        return array

    def copy(self, target: Any, source: Any, *, asynchronous: bool) -> int:
        del asynchronous
        start_ns = time.perf_counter_ns()
        np.copyto(target, source)
        return time.perf_counter_ns() - start_ns


class ReturnsEarly(MemoryDevice):
    """An asynchronous copy that nobody waits for: the host reads before the bytes are there."""

    def copy(self, target: Any, source: Any, *, asynchronous: bool) -> int:
        return 0 if asynchronous else super().copy(target, source, asynchronous=False)


@pytest.mark.parametrize("name", NAMES)
def test_every_copy_brings_every_byte_and_times_the_copy_alone_too(name: str, tmp_path: Path) -> None:
    if read_storage(tmp_path).is_memory():
        pytest.skip("the folder for temporary files lies in memory")
    one = take(DeviceCase(ROWS[name], SIZE, make_bench(tmp_path), MemoryDevice()))
    path = make_path(ROWS[name], [one], 1e9, cold_method="")

    assert (path.evidence, path.correctness.status) == ("measured", "passed")
    case = path.cases[0]
    assert "device" in case.stages_ns
    assert all(part <= whole for part, whole in zip(case.stages_ns["device"], case.service_ns, strict=True))
    assert list(tmp_path.iterdir()) == []


def test_the_way_back_is_divided_into_download_write_and_fsync(tmp_path: Path) -> None:
    name = "device.write-back.fsync"
    one = take(DeviceCase(ROWS[name], SIZE, make_bench(tmp_path), MemoryDevice()))
    case = make_path(ROWS[name], [one], 1e9, cold_method="").cases[0]

    for place, whole in enumerate(case.service_ns):
        assert whole == sum(case.stages_ns[stage][place] for stage in ("download", "write", "fsync"))


@pytest.mark.parametrize("name", [name for name in NAMES if "pinned" in name or "pin-each" in name])
def test_a_copy_that_is_read_before_its_end_is_found_by_the_poison(name: str, tmp_path: Path) -> None:
    one = take(DeviceCase(ROWS[name], SIZE, make_bench(tmp_path), ReturnsEarly()))
    path = make_path(ROWS[name], [one], 1e9, cold_method="")

    assert path.evidence == "failed"
    assert "tensor_00: byte 0" in path.reason


@pytest.mark.gpu
def test_the_real_device_copies_every_byte(tmp_path: Path) -> None:
    device = find_device()
    if device is None:
        pytest.skip("no device")
    for name in NAMES:
        one = take(DeviceCase(ROWS[name], SIZE, make_bench(tmp_path), device))
        assert make_path(ROWS[name], [one], 1e9, cold_method="").evidence == "measured"
