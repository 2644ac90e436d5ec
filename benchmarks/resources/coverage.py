"""How much of the compute time of traces has FLOPs or bytes, and why the rest has none.

    python benchmarks/resources/coverage.py TRACE... [--markdown] [--rates]

Three shares: of all compute time in the units; of the part whose shapes were recorded (a kernel that a captured graph
replays, that no operator launched, or whose launch lies before the record has none to read); and of that part, by
more than a lower bound of the bytes.

With `--rates`, also each operator whose figures need more than a column's peak: its count is wrong, or a cache served
it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import longpole
from longpole.analyses.operator_work import WHY_GRAPH, WHY_NO_LAUNCH, WHY_NO_OPERATOR, WHY_NO_SHAPES
from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.records.resources import Resources

_NOTHING_TO_READ = (WHY_GRAPH, WHY_NO_LAUNCH, WHY_NO_OPERATOR, WHY_NO_SHAPES)
_SHOWN = 2
_POSSIBLE_MAX = 1.05
_PEAKS = ("tensor", "vector", "hbm")


def main() -> None:
    """Print one line for each trace."""
    markdown = "--markdown" in sys.argv
    for path in (argument for argument in sys.argv[1:] if not argument.startswith("--")):
        found = longpole.open(path, use_cache=False).report().resources
        print(_line(Path(path), found, markdown=markdown))
        if "--rates" in sys.argv and not isinstance(found, Unknown):
            print("".join(f"    above its peak: {one}\n" for one in _above(found)), end="", flush=True)


def _above(found: Resources) -> Iterator[str]:
    for row in found.rows:
        for column, cell in row.cells.items():
            if column in _PEAKS and isinstance(cell.share, float) and cell.share > _POSSIBLE_MAX:
                each_us = row.device_ns / row.calls / 1000
                yield (
                    f"{column} {cell.share:.2f}, {row.time_share:.2%} of compute,"
                    f" {row.calls} calls of {each_us:.1f} µs: {row.name} {row.dtype} {row.stage}"
                )


def _line(path: Path, found: Resources | Unknown, *, markdown: bool) -> str:
    name = "/".join(path.parts[-2:])
    if isinstance(found, Unknown):
        return f"| `{name}` | – | – | – | {found.unknown} |" if markdown else f"{name}: {found.unknown}"
    by_why: dict[str, float] = {}
    for one in found.uncounted:
        by_why[one.why] = by_why.get(one.why, 0.0) + one.time_share
    readable = 1 - sum(share for why, share in by_why.items() if why in _NOTHING_TO_READ)
    whole_share = found.covered_share - found.at_least_share
    of_readable, whole = (
        f"{min(share / readable, 1):.1%}" if readable > 0 else "–" for share in (found.covered_share, whole_share)
    )
    most = sorted(by_why.items(), key=lambda item: -item[1])[:_SHOWN]
    names = [one.name for one in found.uncounted if one.why not in _NOTHING_TO_READ and one.time_share >= 0.02][:3]
    rest = "; ".join(f"{share:.0%} {why}" for why, share in most if share >= 0.005)
    rest += f" ({', '.join(f'`{one[:60]}`' for one in names)})" if names else ""
    if markdown:
        return f"| `{name}` | {found.covered_share:.1%} | {of_readable} | {whole} | {rest or 'nothing'} |"
    return (
        f"{name}: {found.covered_share:.1%} of all, {of_readable} of what has shapes, {whole} by more than a bound; "
        f"not counted: {rest or 'nothing'}"
    )


if __name__ == "__main__":
    main()
