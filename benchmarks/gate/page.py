"""The tables of docs/concepts/how-good-is-the-gate.md, from the kept results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from benchmarks.gate.grid import CHANGES, COUNTS, NOISES, REAL, SEQUENTIAL, SIMULATED
from tools.generated_part import replace_part

if TYPE_CHECKING:
    from collections.abc import Sequence

_PARTS: Final = ("simulated", "real")


def render_page(page: str) -> str:
    """Return the page with its tables made anew."""
    simulated = json.loads(SIMULATED.read_text())
    real = [json.loads(path.read_text()) for path in REAL]
    for name, text in zip(_PARTS, (_simulated(simulated), "\n\n".join(map(_real, real))), strict=True):
        page = replace_part(page, name, text)
    return page


def _simulated(kept: dict[str, Any]) -> str:
    cells = {(c["noise"], c["change"], c["pairs"]): c for c in kept["cells"]}
    lines = [
        f"{kept['trials']:,} gates a cell, seed {kept['seed']}. Each cell: **regressed / same / inconclusive**, then"
        " what the plain rule flags, in percent. What is missing from 100 is *improved*.",
        "",
        "| noise | pairs | " + " | ".join(_title(change) for change in CHANGES) + " | pairs made |",
        "|---|---|" + "---|" * (len(CHANGES) + 1),
    ]
    for noise in NOISES:
        for pairs in (*COUNTS, SEQUENTIAL):
            row = [cells[noise, change, pairs] for change in CHANGES]
            made = (
                f"{row[0]['mean_pairs']:.0f} to {min(c['mean_pairs'] for c in row):.0f}"
                if pairs == SEQUENTIAL
                else pairs
            )
            name = pairs or "10 to 40"
            lines.append(f"| {100 * noise:g} % | {name} | " + " | ".join(map(_cell, row)) + f" | {made} |")
    return "\n".join(lines)


def _title(change: float) -> str:
    return f"true +{100 * change:g} %" if change else "no change"


def _cell(cell: dict[str, float]) -> str:
    parts = "/".join(_percent(cell[name]) for name in ("regressed", "same", "inconclusive"))
    return f"**{parts}**, plain {_percent(cell['plain'])}"


def _percent(share: float) -> str:
    percent = 100 * share
    if not percent:
        return "0"
    return "<1" if 0 < percent < 0.5 else f"{percent:.1f}" if percent < 10 else f"{percent:.0f}"


def _real(kept: dict[str, Any]) -> str:
    conditions, gates = kept["conditions"], kept["gates"]
    rows = [
        ("the command against itself", [gate for gate in gates if gate["factor"] == 1.0]),
        ("against one that is 5 % slower", [gate for gate in gates if gate["factor"] != 1.0]),
    ]
    lines = [
        f"Python {conditions['python']}, {conditions['cpus']} CPUs, load {conditions['load_median']:.1f} in the median"
        f" and {conditions['load_most']:.1f} at most before a gate, {conditions['date'][:10]}."
        f" {conditions['pairs']} to {conditions['max_pairs']} pairs, {conditions['steps']} steps a process of which"
        f" {conditions['warmup']} warm up. Pairs and their spread: medians.",
        "",
        "| gates | n | regressed | same | improved | inconclusive | plain rule flags | pairs | their spread |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, own in rows:
        if own:
            lines.append(f"| {name} | {len(own)} | {' | '.join(_counts(own))} |")
    return "\n".join(lines)


def _counts(gates: Sequence[dict[str, Any]]) -> list[str]:
    verdicts = [gate["verdict"] for gate in gates]
    counts = [str(verdicts.count(name)) for name in ("regressed", "same", "improved", "inconclusive")]
    ratios = [gate["naive_ratio"] for gate in gates if gate["naive_ratio"] is not None]
    spreads = sorted(gate["pair_spread"] for gate in gates if gate["pair_spread"] is not None)
    flagged = sum(ratio > 1.03 for ratio in ratios)
    pairs = sorted(gate["pairs"] for gate in gates)[len(gates) // 2]
    return [*counts, str(flagged), str(pairs), f"{100 * spreads[len(spreads) // 2]:.0f} %" if spreads else "–"]
