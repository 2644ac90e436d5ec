"""Copies between host and device: pageable and pinned memory, both directions, and the way back to a file.

Each copy is timed twice: on the host's clock from the call to the end of a synchronisation, which is its service time,
and between two events on its stream (`device`), which is the copy alone. Without a device there is nothing here to
measure, and nothing stands in for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from longpole.bench.io.case import Checked, Prepared, Timing
from longpole.bench.io.contents import POISON, divide, find_difference
from longpole.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from longpole.bench.io.catalogue import PathRow
    from longpole.bench.io.workbench import Workbench


class Device(Protocol):
    """What a device must be able to do; buffers on it are whatever it likes."""

    def describe(self) -> dict[str, str]:
        """Return name -> fact of the device."""

    def new_buffer(self, size_bytes: int) -> Any:
        """Allocate on the device."""

    def pin(self, array: NDArray[np.uint8]) -> Any:
        """Return a pinned host buffer with the bytes of an array."""

    def host(self, buffer: Any) -> NDArray[np.uint8]:
        """Return a host buffer's bytes as an array, as a view."""

    def pageable(self, array: NDArray[np.uint8]) -> Any:
        """Return an ordinary host buffer over the memory of an array."""

    def copy(self, target: Any, source: Any, *, asynchronous: bool) -> int:
        """Copy, wait for the end, and return the time between two events on the stream, in ns."""


class Cuda:
    """The first CUDA (or ROCm) device, by way of torch."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._stream = torch.cuda.Stream()

    def describe(self) -> dict[str, str]:
        """Return the device's name, memory and compute capability."""
        facts = self._torch.cuda.get_device_properties(0)
        return {
            "device": str(facts.name),
            "device_memory_bytes": str(facts.total_memory),
            "compute_capability": f"{facts.major}.{facts.minor}",
            "cuda": str(self._torch.version.cuda or self._torch.version.hip or ""),
        }

    def new_buffer(self, size_bytes: int) -> Any:
        """Allocate on the device."""
        return self._torch.empty(size_bytes, dtype=self._torch.uint8, device="cuda")

    def pin(self, array: NDArray[np.uint8]) -> Any:
        """Return a pinned copy."""
        return self._torch.from_numpy(array).pin_memory()

    def host(self, buffer: Any) -> NDArray[np.uint8]:
        """Return a view."""
        found: NDArray[np.uint8] = buffer.numpy()
        return found

    def pageable(self, array: NDArray[np.uint8]) -> Any:
        """Return a tensor over the array's memory."""
        return self._torch.from_numpy(array)

    def copy(self, target: Any, source: Any, *, asynchronous: bool) -> int:
        """Copy on a stream of its own; nobody reads the target before the last event has passed."""
        cuda = self._torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        with cuda.stream(self._stream):
            start.record()
            target.copy_(source, non_blocking=asynchronous)
            end.record()
        end.synchronize()
        return round(float(start.elapsed_time(end)) * NS_PER_MS)


def find_device() -> Device | None:
    """Return the first device that torch can use, None where there is none or no torch."""
    try:
        import torch
    except ImportError:
        return None
    return Cuda(torch) if torch.cuda.is_available() else None


class DeviceCase:
    """One kind of copy between host and device at one size.

    Attributes:
        row: The path; `row.device` names the copy.
        size_bytes: Of one object.
        objects: 1.
        side_effects: None.
    """

    def __init__(self, row: PathRow, size_bytes: int, bench: Workbench, device: Device) -> None:
        self.row = row
        self.size_bytes = size_bytes
        self.objects = 1
        self.side_effects: dict[str, object] = {}
        self._bench = bench
        self._device = device
        self._source = bench.content.part(size_bytes)
        self._kind, _, self._memory = row.device.partition(".")
        self._file = bench.folder / f"write-back-{size_bytes}"
        self._on_device: Any = None
        self._on_host: Any = None

    def set_up(self) -> None:
        """Allocate on both sides; for what comes from the device, put the content there."""
        self._on_device = self._device.new_buffer(self.size_bytes)
        memory = np.array(self._source)
        pinned = self._memory == "pinned" or self._kind == "write-back"
        self._on_host = self._device.pin(memory) if pinned else self._device.pageable(memory)
        if self._kind != "upload":
            self._device.copy(self._on_device, self._device.pageable(self._source), asynchronous=False)

    def prepare(self) -> Prepared:
        """Poison the target, so that a copy that is read too early cannot look right."""
        poison = np.full(self.size_bytes, POISON, dtype=np.uint8)
        if self._kind == "upload":
            self._device.copy(self._on_device, self._device.pageable(poison), asynchronous=False)
        else:
            self._device.host(self._on_host)[:] = poison
        if self._kind == "write-back":
            self._file.unlink(missing_ok=True)
            self._bench.disk.forget()
        return Prepared()

    def prime(self) -> None:
        """Do nothing: preparing has just copied."""

    def run(self, clock_ns: Callable[[], int]) -> Timing:
        """Copy, and write where the path says so."""
        asynchronous = self._memory != "pageable"
        start_ns = clock_ns()
        if self._kind == "upload":
            source = self._device.pin(self._source) if self._memory == "pin-each" else self._on_host
            pinned_ns = clock_ns()
            device_ns = self._device.copy(self._on_device, source, asynchronous=asynchronous)
            stages = {"pin": pinned_ns - start_ns} if self._memory == "pin-each" else {}
            return Timing(service_ns=clock_ns() - start_ns, stages_ns=stages | {"device": device_ns})
        device_ns = self._device.copy(self._on_host, self._on_device, asynchronous=asynchronous)
        copied_ns = clock_ns()
        if self._kind != "write-back":
            return Timing(service_ns=copied_ns - start_ns, stages_ns={"device": device_ns})
        self._bench.formats["raw"].save(self._file, divide(self._device.host(self._on_host)))
        written_ns = clock_ns()
        self._bench.disk.sync_file(self._file)
        end_ns = clock_ns()
        stages = {"device": device_ns, "download": copied_ns - start_ns, "write": written_ns - copied_ns}
        return Timing(service_ns=end_ns - start_ns, stages_ns=stages | {"fsync": end_ns - written_ns})

    def check(self) -> Checked:
        """Bring what arrived back by an ordinary copy where it lies on the device, and compare every byte."""
        if self._kind == "write-back":
            return Checked(failed=self._file_as_saved())
        if self._kind == "upload":
            back = np.full(self.size_bytes, POISON, dtype=np.uint8)
            self._device.copy(self._device.pageable(back), self._on_device, asynchronous=False)
        else:
            back = self._device.host(self._on_host)
        return Checked(failed=find_difference(divide(back), divide(self._source)))

    def clean_up(self) -> None:
        """Let go of both buffers and of the file."""
        self._on_device = self._on_host = None
        self._file.unlink(missing_ok=True)

    def _file_as_saved(self) -> str:
        if not self._bench.disk.has_synced(self._file):
            return "claims fsync, and fsync was not called on the file"
        unwritten = self._bench.instruments.read_residency(self._file).unwritten()
        if unwritten:
            return f"claims fsync, and {unwritten:,} pages are not on the device when it returns"
        written = np.fromfile(self._file, dtype=np.uint8)
        if len(written) != self.size_bytes:
            return f"the file has {len(written):,} bytes where {self.size_bytes:,} were to be written"
        return find_difference(divide(written), divide(self._source))
