"""The options of `longpole bench io`, and the texts behind them as values."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

import typer

from longpole.bench.io.grain import GRAIN_BYTES
from longpole.errors import UsageError
from longpole.units import parse_bytes, write_binary_bytes

_RANGE: Final = re.compile(r"(?P<low>[^.,]+)\.\.(?P<high>[^x,]+)(?:x(?P<factor>\d{1,3}))?")
_FACTOR: Final = 4
_MOST_SIZES: Final = 40
_LARGEST: Final = 1 << 40

Size: TypeAlias = Annotated[
    str, typer.Option("--size", metavar="SIZE", help="The object that decisions look at: 64MiB.")
]
Sizes: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sizes",
        metavar="RANGE",
        help="All sizes: 4KiB..1GiB (each four times the last), 4KiB..64MiBx2, 4KiB,1MiB. By default 4KiB..64MiB.",
    ),
]
Paths: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--paths", metavar="LIST", help="Only these: names, patterns (torch.*), objects (output)."),
]
Repeats: TypeAlias = Annotated[str, typer.Option("--repeats", metavar="N", help="Samples that count, of each case.")]
Warmup: TypeAlias = Annotated[str, typer.Option("--warmup", metavar="N", help="Samples before those.")]
Seed: TypeAlias = Annotated[str, typer.Option("--seed", metavar="N", help="Of the content and of the order.")]
Threads: TypeAlias = Annotated[str, typer.Option("--threads", metavar="N", help="Threads that torch may use.")]
Budget: TypeAlias = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="After this time no round begins: 90s.")
]
Folder: TypeAlias = Annotated[
    str, typer.Option("--in", metavar="FOLDER", help="A folder on the storage to be measured.")
]
Exposed: TypeAlias = Annotated[
    bool, typer.Option("--exposed", help="Also what saves cost a step that goes on, in pairs.")
]
Pairs: TypeAlias = Annotated[str, typer.Option("--pairs", metavar="N", help="Pairs of each way of saving.")]
Every: TypeAlias = Annotated[
    str | None, typer.Option("--every", metavar="TIME", help="How often your job saves: exposed time as a share.")
]
IoBudget: TypeAlias = Annotated[
    str, typer.Option("--io-budget", metavar="SHARE", help="The share of that time that a save may cost: 2%.")
]
Label: TypeAlias = Annotated[
    str | None, typer.Option("--label", metavar="TEXT", help="What the record is called; the time by default.")
]
Out: TypeAlias = Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where records go.")]
JsonFile: TypeAlias = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the record here too; - for standard output.")
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Say what would be measured, and measure nothing.")]


def parse_size(option: str, text: str) -> int:
    """Read the size of an object: a multiple of 4 KiB.

    >>> parse_size("--size", "64MiB")
    67108864

    Raises:
        UsageError: It is none.
    """
    size = parse_bytes(text)
    if size is None or not 0 < size <= _LARGEST or size % GRAIN_BYTES:
        msg = f"{option}: expected a multiple of 4 KiB with its unit, such as 64MiB; found {text!r}"
        raise UsageError(msg)
    return size


def parse_sizes(text: str | None, size_bytes: int, default: tuple[int, ...]) -> tuple[int, ...]:
    """Read all sizes, ascending, the workload's own among them.

    >>> parse_sizes("4KiB..64KiB", 4096, ()), parse_sizes("4KiB,1MiB", 8192, ())
    ((4096, 16384, 65536), (4096, 8192, 1048576))

    Raises:
        UsageError: They are no range and no list, or there are more than 40.
    """
    if text is None:
        return tuple(sorted({*default, size_bytes}))
    sizes = {size_bytes}
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            sizes.add(parse_size("--sizes", part.strip()))
            continue
        low, high = parse_size("--sizes", match["low"]), parse_size("--sizes", match["high"])
        factor = int(match["factor"] or _FACTOR)
        if low > high or factor < 2:
            msg = f"--sizes: expected a range that goes up, such as 4KiB..1GiB or 4KiB..64MiBx2; found {text!r}"
            raise UsageError(msg)
        while low <= high:
            sizes.add(low)
            low *= factor
    if len(sizes) > _MOST_SIZES:
        most = write_binary_bytes(max(sizes))
        msg = f"--sizes: expected at most {_MOST_SIZES} sizes; found {len(sizes)} up to {most}"
        raise UsageError(msg)
    return tuple(sorted(sizes))


def parse_whole(option: str, text: str, *, least: int, most: int = 1_000_000) -> int:
    """Read a whole number within bounds.

    Raises:
        UsageError: It is none.
    """
    plain = text.strip()
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 10 and least <= int(plain) <= most):
        msg = f"{option}: expected a whole number from {least} to {most:,}; found {text!r}"
        raise UsageError(msg)
    return int(plain)
