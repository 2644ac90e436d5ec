"""The options of `longpole bench collectives`: what each takes, and what it says of itself."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

SIZES: Final = "1KiB..64MiBx4"
KINDS_SHOWN: Final = "all_reduce,all_gather,reduce_scatter,broadcast,all_to_all,send_recv"

Backend: TypeAlias = Annotated[
    str,
    typer.Option("--backend", metavar="NAME", help="gloo, nccl, or auto: nccl where each rank has a device."),
]
World: TypeAlias = Annotated[str, typer.Option("--world", metavar="N", help="Ranks, all on this machine.")]
Kinds: TypeAlias = Annotated[
    str | None,
    typer.Option("--kinds", metavar="LIST", help=f"Which of {KINDS_SHOWN}; with --read, of logs that do not say it."),
]
Sizes: TypeAlias = Annotated[
    str,
    typer.Option(
        "--sizes", metavar="RANGE", help="Bytes of the full buffer: 1KiB..64MiB (doubling), 1KiB..64MiBx4, 4KiB,1MB."
    ),
]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=V,V", help="A variable and its values; all combinations are measured."),
]
Bucket: TypeAlias = Annotated[
    str | None,
    typer.Option("--bucket", metavar="LIST", help="Also in pieces of this size, begun together: 1MiB,25MiB."),
]
Dtype: TypeAlias = Annotated[str, typer.Option("--dtype", metavar="TYPE", help="Element type.")]
Repeats: TypeAlias = Annotated[
    str, typer.Option("--repeats", metavar="N", help="Timed operations of each point in each set of processes.")
]
Warmup: TypeAlias = Annotated[str, typer.Option("--warmup", metavar="N", help="Operations before those.")]
Rounds: TypeAlias = Annotated[
    str, typer.Option("--rounds", metavar="N", help="Sets of fresh processes for each setting; 3 tell settings apart.")
]
Seed: TypeAlias = Annotated[str, typer.Option("--seed", metavar="N", help="Of the order of points and settings.")]
Timeout: TypeAlias = Annotated[
    str, typer.Option("--timeout", metavar="TIME", help="A set of processes that stands still so long is ended.")
]
Label: TypeAlias = Annotated[
    str | None, typer.Option("--label", metavar="TEXT", help="What the record is called; the time by default.")
]
Out: TypeAlias = Annotated[
    str, typer.Option("--out", metavar="DIR", help="Records go to DIR/<semantic id>/<label>.json, never over one.")
]
Read: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--read", metavar="FILE", help="Measure nothing: read logs of nccl-tests, or a record; may be repeated."
    ),
]
SettingsFile: TypeAlias = Annotated[
    str | None, typer.Option("--settings", metavar="FILE", help="Your own thresholds (TOML), over the shipped ones.")
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Say what would be measured, and measure nothing.")]
JsonFile: TypeAlias = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Also write the record here; - for standard output.")
]
