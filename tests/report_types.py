"""Whether a JSON Pointer can lead anywhere in a report, told from the types of the report alone."""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec

from longpole.report.document import Report


def is_in_reports(pointer: str) -> bool:
    """Tell whether reports have a place for what a pointer leads to; `*` stands for any entry."""
    kinds: list[Any] = [Report]
    for step in pointer.split("/")[1:]:
        kinds = [inner for kind in kinds for inner in _steps(kind, step)]
    return bool(kinds)


def _steps(kind: Any, step: str) -> list[Any]:
    """Return the types that a step leads to from a type."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return [found for one in inner for found in _steps(one, step)]
    if origin is dict:
        return [inner[1]]
    if origin is list:
        return [inner[0]] if step == "*" or step.isdecimal() else []
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
        return [fields[step]] if step in fields else []
    return []
