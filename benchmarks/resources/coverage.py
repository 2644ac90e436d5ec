"""How much of the compute time of traces has FLOPs or bytes, and why the rest has none.

    python benchmarks/resources/coverage.py TRACE... [--markdown]

Two shares: of all compute time in the units, and of the part whose shapes were recorded (a kernel that a captured graph
replays, that no operator launched, or whose launch lies before the record has none to read).
"""

from __future__ import annotations

import sys
from pathlib import Path

import longpole
from longpole.analyses.operator_work import WHY_GRAPH, WHY_NO_LAUNCH, WHY_NO_OPERATOR, WHY_NO_SHAPES
from longpole.records.ledger import Unknown

_NOTHING_TO_READ = (WHY_GRAPH, WHY_NO_LAUNCH, WHY_NO_OPERATOR, WHY_NO_SHAPES)
_SHOWN = 2


def main() -> None:
    """Print one line for each trace."""
    markdown = "--markdown" in sys.argv
    for path in (argument for argument in sys.argv[1:] if not argument.startswith("--")):
        print(_line(Path(path), markdown=markdown))


def _line(path: Path, *, markdown: bool) -> str:
    found = longpole.open(path).report().resources
    name = "/".join(path.parts[-2:])
    if isinstance(found, Unknown):
        return f"| `{name}` | – | – | {found.unknown} |" if markdown else f"{name}: {found.unknown}"
    by_why: dict[str, float] = {}
    for one in found.uncounted:
        by_why[one.why] = by_why.get(one.why, 0.0) + one.time_share
    readable = 1 - sum(share for why, share in by_why.items() if why in _NOTHING_TO_READ)
    of_readable = f"{min(found.covered_share / readable, 1):.1%}" if readable > 0 else "–"
    most = sorted(by_why.items(), key=lambda item: -item[1])[:_SHOWN]
    names = [one.name for one in found.uncounted if one.why not in _NOTHING_TO_READ and one.time_share >= 0.02][:3]
    rest = "; ".join(f"{share:.0%} {why}" for why, share in most if share >= 0.005)
    rest += f" ({', '.join(f'`{one[:60]}`' for one in names)})" if names else ""
    if markdown:
        return f"| `{name}` | {found.covered_share:.1%} | {of_readable} | {rest or 'nothing'} |"
    return (
        f"{name}: {found.covered_share:.1%} of all, {of_readable} of what has shapes; not counted: {rest or 'nothing'}"
    )


if __name__ == "__main__":
    main()
