"""How objects become files and files objects: raw bytes, torch, torch mapped into memory, safetensors.

A format's `save` does what its library does and no more: none of them syncs. Its `load` returns tensors as arrays that
may be lazy; whoever measures touches every byte of them.
"""

from __future__ import annotations

import importlib.util
import os
from contextlib import contextmanager
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from longpole.bench.io.contents import POISON, divide
from longpole.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from longpole.bench.io.contents import Tensors

PERMISSIONS: Final = 0o666  # what open(2) is asked for; the process's umask takes its share


class Format(Protocol):
    """A loader and saver of objects."""

    name: str

    def save(self, path: Path, tensors: Tensors) -> None:
        """Write tensors to a file, over whatever it holds; sync nothing."""

    def load(self, path: Path, size_bytes: int) -> dict[str, NDArray[Any]]:
        """Return the tensors of a file, named and in shape; their bytes may not have been read yet."""

    def prepare_load(self, size_bytes: int) -> None:
        """Do what a program would have done long before it loads: allocate what it reuses."""


class Raw:
    """Plain bytes, without names: what the storage and the kernel can do. Reads go into one buffer that is reused."""

    name = "raw"

    def __init__(self) -> None:
        self._buffer: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self._next = 0

    def save(self, path: Path, tensors: Tensors) -> None:
        """Write all bytes in order."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PERMISSIONS)
        try:
            _write_all(descriptor, [tensor.reshape(-1).view(np.uint8).data for tensor in tensors.values()])
        finally:
            os.close(descriptor)

    def load(self, path: Path, size_bytes: int) -> dict[str, NDArray[Any]]:
        """Read all bytes into the buffer, behind what was loaded since it was prepared."""
        part = self._buffer[self._next : self._next + size_bytes]
        self._next += size_bytes
        with path.open("rb", buffering=0) as file:
            rest = part.data
            while rest:
                got = file.readinto(rest)
                if not got:
                    break
                rest = rest[got:]
        return divide(part)

    def prepare_load(self, size_bytes: int) -> None:
        """Poison the buffer, so that what a read leaves out cannot look right."""
        if len(self._buffer) < size_bytes:
            self._buffer = np.empty(size_bytes, dtype=np.uint8)
        self._buffer[:size_bytes] = POISON
        self._next = 0


class Torch:
    """torch.save, and torch.load with `weights_only`, which unpickles nothing but tensors."""

    name = "torch"
    _mapped = False

    def save(self, path: Path, tensors: Tensors) -> None:
        """Save a dict of tensors that share the arrays' memory."""
        torch = _import_torch()
        with _as_os_error("torch.save"):
            torch.save({name: torch.from_numpy(array) for name, array in tensors.items()}, path)

    def load(self, path: Path, size_bytes: int) -> dict[str, NDArray[Any]]:
        """Load the dict; mapped into memory where the format is `torch-mmap`."""
        del size_bytes
        torch = _import_torch()
        with _as_os_error("torch.load"):
            loaded = torch.load(path, weights_only=True, mmap=self._mapped, map_location="cpu")
        return {name: tensor.numpy() for name, tensor in loaded.items()}

    def prepare_load(self, size_bytes: int) -> None:
        """Do nothing: torch allocates what it loads into."""


class TorchMapped(Torch):
    """torch.load with `mmap=True`: returns before the bytes are read."""

    name = "torch-mmap"
    _mapped = True


class Safetensors:
    """safetensors.torch: files of a header and plain bytes, mapped when they are loaded."""

    name = "safetensors"

    def save(self, path: Path, tensors: Tensors) -> None:
        """Save the tensors; the library writes another file and renames it."""
        torch, library = _import_torch(), _import_safetensors()
        with _as_os_error("safetensors"):
            library.save_file({name: torch.from_numpy(array) for name, array in tensors.items()}, path)

    def load(self, path: Path, size_bytes: int) -> dict[str, NDArray[Any]]:
        """Load all tensors."""
        del size_bytes
        with _as_os_error("safetensors"):
            loaded = _import_safetensors().load_file(path, device="cpu")
        return {name: tensor.numpy() for name, tensor in loaded.items()}

    def prepare_load(self, size_bytes: int) -> None:
        """Do nothing: the library maps the file."""


FORMATS: Final[dict[str, Callable[[], Format]]] = {
    "raw": Raw,
    "torch": Torch,
    "torch-mmap": TorchMapped,
    "safetensors": Safetensors,
}
LIBRARIES_OF: Final = {"torch": ("torch",), "torch-mmap": ("torch",), "safetensors": ("torch", "safetensors")}
FILE_OF: Final = {"torch-mmap": "torch"}  # formats that read another one's files


def is_installed(library: str) -> bool:
    """Tell whether a library could be imported, without importing it."""
    return importlib.util.find_spec(library) is not None


def _write_all(descriptor: int, parts: list[memoryview]) -> None:
    """Write ranges of memory one behind the other, with as few calls as the kernel allows."""
    while parts:
        written = os.writev(descriptor, parts)
        while parts and written >= len(parts[0]):
            written -= len(parts.pop(0))
        if parts:
            parts[0] = parts[0][written:]


@contextmanager
def _as_os_error(library: str) -> Iterator[None]:
    """Turn what a library raises for a full disk or a damaged file into an error of the system."""
    known: tuple[type[Exception], ...] = (RuntimeError, UnpicklingError, EOFError, ValueError, KeyError)
    try:
        from safetensors import SafetensorError

        known = (*known, SafetensorError)
    except ImportError:
        pass
    try:
        yield
    except known as error:
        msg = f"{library}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise OSError(msg) from None


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        msg = "torch is not installed; pip install 'longpole[torch]'"
        raise MissingExtraError(msg) from None
    return torch


def _import_safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        msg = "safetensors is not installed; pip install 'longpole[torch]'"
        raise MissingExtraError(msg) from None
    return safetensors.torch
