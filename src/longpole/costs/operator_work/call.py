"""One recorded call of an operator: the shapes and element types of its inputs, and the values of its other arguments.

Profilers write lists of one length: `Input Dims`, `Input type`, `Concrete Inputs`, and lately `Input Strides` (PyTorch,
`torch/csrc/profiler/util.cpp`). A tensor without dimensions and a scalar have the same shape, so types tell them apart.
A stride of 0 repeats what is in memory once: an expanded mask is as large as its shape says, and is read as often as it
is stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import msgspec

_SIZE_MAX: Final = 1 << 40  # no dimension is longer
# What type names of C++ stand for; sizes in bytes.
ELEMENT_BYTES: Final[dict[str, int]] = {
    "fp64": 8,
    "fp32": 4,
    "bf16": 2,
    "fp16": 2,
    "fp8": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
_TYPE_NAMES: Final = {
    "double": "fp64",
    "float": "fp32",
    "c10::bfloat16": "bf16",
    "c10::half": "fp16",
    "c10::float8_e4m3fn": "fp8",
    "c10::float8_e4m3fnuz": "fp8",
    "c10::float8_e5m2": "fp8",
    "c10::float8_e5m2fnuz": "fp8",
    "long int": "int64",
    "long": "int64",
    "long long": "int64",
    "int": "int32",
    "unsigned int": "int32",
    "short": "int16",
    "short int": "int16",
    "unsigned short": "int16",
    "signed char": "int8",
    "unsigned char": "int8",
    "char": "int8",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
_NO_TENSORS: Final = frozenset({"scalar", "scalarlist", "genericlist", "string", "device", "generator", "none"})
# Numbers of element types where a call is told which one to give (c10/core/ScalarType.h).
_SCALAR_TYPES: Final = {
    0: "int8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "fp16",
    6: "fp32",
    7: "fp64",
    11: "bool",
    15: "bf16",
    23: "fp8",
    24: "fp8",
    25: "fp8",
    26: "fp8",
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input.

    Attributes:
        shape: Its sizes.
        dtype: Its element type, empty where it is not known.
        repeats: How many of its elements each one in memory stands for: 1 unless strides are 0.
    """

    shape: tuple[int, ...]
    dtype: str
    repeats: int = 1

    @property
    def elements(self) -> int:
        """How many elements it has; one where it has no dimension."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int | None:
        """What its elements take in memory, None where their type is not known."""
        each = ELEMENT_BYTES.get(self.dtype)
        return None if each is None else each * (self.elements // self.repeats)

    @property
    def written(self) -> Tensor:
        """A result like it, which repeats nothing."""
        return self if self.repeats == 1 else Tensor(self.shape, self.dtype)

    def of_type(self, dtype: str) -> Tensor:
        """Return a result like it with other elements."""
        return Tensor(self.shape, dtype)


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        name: The operator.
        inputs: Per argument: a tensor, a tuple of tensors, or None for what is no tensor or was left out.
        values: Per argument what was written of it, empty for a tensor.
    """

    name: str
    inputs: tuple[Tensor | tuple[Tensor, ...] | None, ...]
    values: tuple[str, ...]

    def tensor(self, place: int) -> Tensor | None:
        """Return the tensor at a place, None where there is none."""
        found = self.inputs[place] if place < len(self.inputs) else None
        return found if isinstance(found, Tensor) else None

    def tensors(self) -> list[Tensor]:
        """Return all tensors that are arguments of their own."""
        return [one for one in self.inputs if isinstance(one, Tensor)]

    def lists(self) -> list[tuple[Tensor, ...]]:
        """Return all lists of tensors."""
        return [one for one in self.inputs if isinstance(one, tuple)]

    def number(self, place: int) -> float | None:
        """Return a finite number that was written at a place, None where none was."""
        try:
            found = float(self.value(place))
        except ValueError:
            return None
        return found if math.isfinite(found) else None

    def flag(self, place: int) -> bool | None:
        """Return whether `True` or `False` was written at a place, None where neither was."""
        return {"True": True, "False": False}.get(self.value(place))

    def sizes(self, place: int) -> tuple[int, ...] | None:
        """Return a list of whole numbers that was written at a place, None where none was."""
        text = self.value(place)
        if not (text.startswith("[") and text.endswith("]")):
            return None
        try:
            return tuple(int(part) for part in text[1:-1].split(",")) if text[1:-1].strip() else ()
        except ValueError:
            return None

    def flags(self, place: int) -> tuple[bool, ...] | None:
        """Return a list of truth values that was written at a place, None where none was."""
        text = self.value(place)
        parts = [part.strip() for part in text.strip("[]").split(",")]
        if not text.startswith("[") or any(part not in ("True", "False") for part in parts):
            return None
        return tuple(part == "True" for part in parts)

    def dtype_at(self, place: int) -> str:
        """Return the element type whose number was written at a place, an empty text where none was."""
        number = self.number(place)
        return _SCALAR_TYPES.get(int(number), "") if number is not None else ""

    def value(self, place: int) -> str:
        """Return what was written at a place, an empty text for nothing."""
        return self.values[place] if place < len(self.values) else ""


def parse_call(
    name: str, dims: str, types: str = "", values: str = "", list_dtype: str = "", strides: str = ""
) -> Call | None:
    """Read a call from the three texts of a trace.

    >>> parse_call("aten::mm", "[[2, 3], [3, 4]]", '["float", "float"]').tensor(1)
    Tensor(shape=(3, 4), dtype='fp32', repeats=1)

    Args:
        name: The operator.
        dims: JSON of the shapes.
        types: JSON of the element types; without them sizes in bytes are not known.
        values: JSON of the other arguments.
        list_dtype: Element type of lists of tensors, for which exporters write only that they are lists.
        strides: JSON of the strides; without them no tensor is known to repeat its elements.

    Returns:
        None where the shapes cannot be read.
    """
    shapes = _json_list(dims)
    if shapes is None:
        return None
    type_names = [str(one).lower() for one in _json_list(types) or []]
    type_names += [""] * (len(shapes) - len(type_names))
    written = [one if isinstance(one, str) else "" for one in _json_list(values) or []]
    read = [_input(shape, type_name, list_dtype) for shape, type_name in zip(shapes, type_names, strict=False)]
    for place, steps in enumerate((_json_list(strides) or [])[: len(read)]):
        one = read[place]
        if isinstance(one, Tensor):
            read[place] = replace(one, repeats=_repeats(one.shape, steps))
    return Call(name, tuple(read), tuple(written))


def _repeats(shape: tuple[int, ...], strides: object) -> int:
    """Return how many elements each one in memory stands for.

    >>> _repeats((2, 8, 16, 16), [256, 0, 16, 1])
    8
    """
    if not isinstance(strides, list) or len(strides) != len(shape):
        return 1
    return math.prod(size for size, step in zip(shape, strides, strict=True) if step == 0 and size > 1)


def dtype_of_type(name: str) -> str:
    """Return the element type that a C++ type name stands for, an empty text for an unknown one."""
    return _TYPE_NAMES.get(name.lower(), "")


def _input(shape: object, type_name: str, list_dtype: str) -> Tensor | tuple[Tensor, ...] | None:
    if not isinstance(shape, list) or type_name in _NO_TENSORS:
        return None
    if shape and all(isinstance(part, list) for part in shape):
        dtype = dtype_of_type(type_name) or list_dtype
        inner = [tuple(part) for part in shape if _is_shape(part)]
        return tuple(Tensor(part, dtype) for part in inner) if len(inner) == len(shape) else None
    if not _is_shape(shape) or type_name == "tensorlist" or (not shape and not dtype_of_type(type_name)):
        return None
    return Tensor(tuple(shape), dtype_of_type(type_name))


def _is_shape(value: list[object]) -> bool:
    return all(isinstance(part, int) and not isinstance(part, bool) and 0 <= part < _SIZE_MAX for part in value)


def _json_list(text: str) -> list[object] | None:
    try:
        found = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, list) else None
