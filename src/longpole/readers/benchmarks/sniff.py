"""Tell by its top-level keys which benchmark program wrote a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

Program: TypeAlias = Literal["pytest-benchmark", "hyperfine", "asv"]


def sniff_program(document: Mapping[str, Any]) -> Program | None:
    """Return the program that wrote a document; None for any other document."""
    if isinstance(document.get("benchmarks"), list) and "machine_info" in document:
        return "pytest-benchmark"
    if isinstance(document.get("results"), dict) and "result_columns" in document:
        return "asv"
    results = document.get("results")
    if isinstance(results, list) and all(isinstance(row, dict) and "command" in row for row in results) and results:
        return "hyperfine"
    return None
