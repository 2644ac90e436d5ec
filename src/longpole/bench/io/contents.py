"""What is moved: random bytes as named tensors, so that no storage can compress them and every byte can be checked."""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from numpy.typing import NDArray

    Tensors: TypeAlias = Mapping[str, NDArray[Any]]

TENSORS: Final = 16
DTYPE: Final = "float32"
POISON: Final = 0xA5


@dataclass(frozen=True)
class Content:
    """The bytes of the largest object; smaller objects are its beginning.

    Attributes:
        words: [N] uint8, random.
        seed: What it was drawn from (PCG64).
    """

    words: NDArray[np.uint8]
    seed: int

    def part(self, size_bytes: int) -> NDArray[np.uint8]:
        """Return the bytes of an object of one size, as a view."""
        return self.words[:size_bytes]

    def tensors(self, size_bytes: int) -> dict[str, NDArray[Any]]:
        """Return an object of one size as 16 float32 tensors of equal size, as views."""
        return divide(self.part(size_bytes))

    def blake2b(self) -> str:
        """Return the hash of all bytes as they are now, 20 bytes in hexadecimal."""
        return hashlib.blake2b(self.words.data, digest_size=20).hexdigest()


def make_content(size_bytes: int, seed: int) -> Content:
    """Draw random bytes.

    Args:
        size_bytes: A multiple of 4096.
        seed: The same seed gives the same bytes.
    """
    words = np.random.default_rng(seed).integers(0, 1 << 64, size_bytes // 8, dtype=np.uint64)
    return Content(words.view(np.uint8), seed)


def divide(part: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Return bytes as 16 float32 tensors of equal size, in order, as views."""
    each = len(part) // TENSORS
    return {f"tensor_{place:02d}": part[place * each : (place + 1) * each].view(DTYPE) for place in range(TENSORS)}


def touch(tensors: Tensors) -> int:
    """Read every byte of all tensors once, as a sum of 8-byte words; what was mapped and not read is read now."""
    total = 0
    for tensor in tensors.values():
        total += int(tensor.reshape(-1).view(np.uint64).sum(dtype=np.uint64))
    return total


def find_difference(found: Tensors, expected: Tensors) -> str:
    """Say how loaded tensors differ from what was saved: names, dtype, shape, bytes; nothing where they do not.

    Floats are compared as bytes: two NaNs of different bits are a difference, one NaN twice is none.
    """
    if found.keys() != expected.keys():
        missing, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
        return f"the names differ: missing {sorted(missing)[:3]}, not expected {sorted(extra)[:3]}"
    for name, tensor in found.items():
        wanted = expected[name]
        if tensor.dtype != wanted.dtype or tensor.shape != wanted.shape:
            return f"{name}: expected {wanted.dtype} {wanted.shape}, found {tensor.dtype} {tensor.shape}"
        place = _first_difference(tensor, wanted)
        if place is not None:
            return f"{name}: byte {place:,} of {wanted.nbytes:,} differs from what was saved"
    return ""


def _first_difference(one: NDArray[Any], other: NDArray[Any]) -> int | None:
    """Return the first byte that differs; memcmp tells whether there is one, ten times faster than a comparison."""
    if one.flags.c_contiguous and other.flags.c_contiguous:
        memcmp = ctypes.CDLL(None).memcmp
        memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        if memcmp(one.ctypes.data, other.ctypes.data, one.nbytes) == 0:
            return None
    flat_one, flat_other = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (one, other))
    places = np.flatnonzero(flat_one != flat_other)
    return int(places[0]) if len(places) else None
