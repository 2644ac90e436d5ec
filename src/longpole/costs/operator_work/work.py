"""What one call of an operator has to do: arithmetic, and bytes that it must move at least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.costs.operator_work.call import Call, Tensor

Family: TypeAlias = Literal[
    "matmul",
    "attention",
    "convolution",
    "normalisation",
    "elementwise",
    "reduction",
    "move",
    "embedding",
    "optimizer",
    "compiled",
]
Processor: TypeAlias = Literal["tensor", "vector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a call has to do.

    Attributes:
        family: What sort of operator it is.
        processor: Which units its arithmetic is meant for: `tensor` for products, else `vector`.
        dtype: Element type of the operands whose peak applies, empty where it was not recorded.
        flops: Floating-point operations, None where they cannot be told. A multiplication and an addition are two;
            an elementary function is one.
        moved_bytes: What must cross the device's memory interface at least: each input read once and each result
            written once. Caches may lower it, and a kernel that reads twice raises it. None where it cannot be told.
        at_least: Whether there are more such bytes than these, and nothing tells how many.
    """

    family: Family
    processor: Processor
    dtype: str
    flops: int | None
    moved_bytes: int | None
    at_least: bool = False


if TYPE_CHECKING:
    Counter: TypeAlias = Callable[[Call], Work | None]
    PartneredCounter: TypeAlias = Callable[[Call, Call], Work | None]


def names_of(text: str) -> list[str]:
    """Return the names in a text, which a list of them would stretch over a screen."""
    return text.split()


def bytes_of(*tensors: Tensor | None) -> int | None:
    """Return the bytes of all tensors, those left out (None) as none; None where an element type is not known."""
    return sum_known(one.size_bytes for one in tensors if one is not None)


def sum_known(values: Iterable[int | None]) -> int | None:
    """Return the sum, None where a part is not known."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
