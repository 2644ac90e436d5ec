"""Print memory as allocators measured it beside ours: the table of docs/concepts/device-memory.md.

python -m benchmarks.plan.memory
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.measured_memory import GIB, megatron_memory, torchtitan_memory
from tests.published_tables import read_table

if TYPE_CHECKING:
    from longpole.costs.memory import StageMemory

ORACLES = Path(__file__).parents[2] / "tests" / "oracles"
_HEAD = """| run | stage | measured GiB | computed GiB | error | reserved over computed |
| --- | ---: | ---: | ---: | ---: | ---: |"""


def main() -> int:
    """Print a row for each stage of each configuration."""
    print(_HEAD)
    cases = {row["case"]: row for row in read_table(ORACLES, "simumax_b200_v1_2")}
    for row in read_table(ORACLES, "simumax_b200_memory_by_stage"):
        case = cases[row["case"]]
        stage = megatron_memory(case).stages[int(row["stage"])]
        _print_row(_named(case), stage, float(row["max_allocated_gib"]), float(row["max_reserved_gib"]))
    for row in read_table(ORACLES, "torchtitan_h100"):
        if row["pp"] == "1" and row["ac"] == "full" and row["mem_gib"]:
            name = f"torchtitan {row['model']} FSDP{row['fsdp']} TP{row['tp']} CP{row['cp']} {row['seq_len']}"
            name += " async TP" if row["async_tp"] == "yes" else ""
            _print_row(name, torchtitan_memory(row).worst, float(row["mem_gib"]), None)
    return 0


def _named(case: dict[str, str]) -> str:
    degrees = " ".join(
        f"{name.upper()}{case[name]}" for name in ("tp", "pp", "ep", "cp") if case[name] not in ("", "1")
    )
    return f"Megatron {case['model']} {case['layers']} layers {degrees} {case['seq_len']}"


def _print_row(name: str, stage: StageMemory, measured_gib: float, reserved_gib: float | None) -> None:
    computed = stage.allocated_bytes / GIB
    reserved = f"{reserved_gib / computed - 1:+.1%}" if reserved_gib is not None else ""
    print(
        f"| {name} | {stage.stage} | {measured_gib:.2f} | {computed:.2f} | {computed / measured_gib - 1:+.2%} |"
        f" {reserved} |"
    )


if __name__ == "__main__":
    sys.exit(main())
