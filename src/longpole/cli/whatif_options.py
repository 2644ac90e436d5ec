"""The options of `longpole whatif` that are changes: what each takes, and what it says of itself."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SELECTOR=VALUE",
        help="What is selected takes 0.5x as long, 0, or +2ms (-2ms) for each occurrence; may be repeated.",
    ),
]
Remove: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--remove", metavar="SELECTOR", help="What is selected takes no time: --set SELECTOR=0."),
]
Prefetch: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--prefetch", metavar="input", help="The next batch is prepared while this one is worked on."),
]
AsyncCopy: TypeAlias = Annotated[
    bool, typer.Option("--async-copy", help="Copies that the host waits for become asynchronous.")
]
Fuse: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--fuse", metavar="KIND=SIZE", help="Join successive collectives of a kind: all_reduce=25MB."),
]
Split: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--split", metavar="KIND=SIZE", help="Cut collectives of a kind into parts of at most that size."),
]
Equalise: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--equalise",
        metavar="work|speed",
        help="Ranks get equal work (the same spread evenly), or do their own at the others' median pace.",
    ),
]
IssueEarly: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--issue-early", metavar="SELECTOR", help="Collectives or copies start once their inputs are there."),
]
GraphLaunches: TypeAlias = Annotated[
    bool, typer.Option("--graph-launches", help="Launches are captured once and replayed as a graph.")
]
OffPath: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--off-path", metavar="SELECTOR", help="Writes go on beside the work that waits for them now."),
]
JsonFile: TypeAlias = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the answer as JSON; - for standard output.")
]
