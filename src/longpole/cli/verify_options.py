"""The options of `longpole verify`: what each takes, and what it says of itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from longpole.cli.values import parse_items
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

STATISTICS: Final = ("auto", "median", "mean")
SIDES: Final = ("before", "after")

Runs: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="BEFORE AFTER", help="One run each: a folder of traces, a file, a pattern, or a run record."
    ),
]
Before: TypeAlias = Annotated[
    list[str] | None, typer.Option("--before", metavar="RUN", help="A run before the change; may be repeated.")
]
After: TypeAlias = Annotated[
    list[str] | None, typer.Option("--after", metavar="RUN", help="A run after the change; may be repeated.")
]
Paired: TypeAlias = Annotated[
    bool, typer.Option("--paired", help="Runs in the order given are pairs, made one after the other.")
]
Candidate: TypeAlias = Annotated[
    str | None,
    typer.Option("--candidate", metavar="ID", help="The candidate that was tried: its part, and what was predicted."),
]
Catalogue: TypeAlias = Annotated[
    str | None, typer.Option("--catalogue", metavar="FILE", help="Your own candidates (TOML), over the shipped ones.")
]
Part: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="PART",
        help="What must shrink: an object, stage:NAME or idle:REASON; by default the object that fell most.",
    ),
]
Change: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--change", metavar="CHANGE", help="What was predicted, as for whatif: '--prefetch input'; may be repeated."
    ),
]
Limit: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--limit", metavar="LIMIT", help="What must hold after: 'p99_ms<=200', 'peak_bytes<=80e9'; may be repeated."
    ),
]
Metric: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="FILE", help="Quality before and after, as JSON; may be repeated."),
]
Threshold: TypeAlias = Annotated[
    str | None, typer.Option("--threshold", metavar="SHARE", help="What a change must exceed; 3% by default.")
]
Items: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--items",
        metavar="[SIDE=]N[:KIND]",
        help="What all ranks together process in a unit: 512, before=512 or after=1024:sample.",
    ),
]
Statistic: TypeAlias = Annotated[
    str,
    typer.Option(
        "--statistic",
        metavar="NAME",
        autocompletion=lambda: list(STATISTICS),
        help="median of a run's units, mean, or auto: the mean where the part lies in few of the units.",
    ),
]
Allow: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="KEY", help="This difference is the change: torch_version, dtype, …"),
]
JsonFile: TypeAlias = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the verdict as JSON; - for standard output.")
]

_SHARE: Final = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*(%?)", re.ASCII)
_SIDED: Final = re.compile(r"(before|after)\s*=\s*(.*)", re.DOTALL)


def parse_runs(
    given: Sequence[str], before: Sequence[str], after: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the runs of each side: two paths, or those of the options.

    Raises:
        UsageError: Both forms are mixed, or one side has none.
    """
    if given and (before or after):
        msg = "verify: expected BEFORE AFTER, or --before and --after; found both"
        raise UsageError(msg)
    if given:
        if len(given) != 2:
            found = "one path" if len(given) == 1 else f"{len(given)} paths"
            msg = (
                f"verify: expected two paths, BEFORE and AFTER; found {found}."
                " Name several runs a side with --before and --after"
            )
            raise UsageError(msg)
        return given[:1], given[1:]
    if not before or not after:
        lacking = " and ".join(f"--{name}" for name, runs in zip(SIDES, (before, after), strict=True) if not runs)
        msg = f"verify: expected runs before and after the change; found no {lacking}"
        raise UsageError(msg)
    return before, after


def parse_share(option: str, text: str | None) -> float | None:
    """Read a share: a percentage, or a number below 1; None where the option was not given.

    >>> parse_share("--threshold", "3%"), parse_share("--threshold", "0.05")
    (0.03, 0.05)

    Raises:
        UsageError: It is neither.
    """
    if text is None:
        return None
    match = _SHARE.fullmatch(text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < value < 1:
        msg = f"{option}: expected a percentage such as 3%, or a share such as 0.03; found {text!r}"
        raise UsageError(msg)
    return value


def parse_items_of_sides(texts: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Read the items of a unit, of both sides or of one.

    >>> parse_items_of_sides(["before=32", "after=64:sample"])
    {'before': (32, ''), 'after': (64, 'sample')}

    Raises:
        UsageError: One is not of that form, or a side is named twice.
    """
    items: dict[str, tuple[int, str]] = {}
    for text in texts:
        match = _SIDED.fullmatch(text.strip())
        sides, value = ((match[1],), match[2]) if match else (SIDES, text)
        for side in sides:
            if side in items:
                msg = f"--items {text}: the items {side} the change are given twice"
                raise UsageError(msg)
            items[side] = parse_items("--items", value)
    return items
