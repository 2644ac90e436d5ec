"""Generate traces of any size, of which every figure is known beforehand.

    python benchmarks/generate_trace.py --bytes 1GB --out big.json
    python benchmarks/generate_trace.py --bytes 120MB --ranks 8 --gzip --out ranks/
    python benchmarks/generate_trace.py --simple --bytes 2.2GB --out pulses.json
    python benchmarks/generate_trace.py --repeat recorded.json.gz 30 --out copies.json

A size holds for each file, uncompressed, and is met to the nearest step (`--events`: at least so many). `--truth`
prints what the files hold: sizes, counts and device times in nanoseconds. Needs the standard library only.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a script, from any folder

from benchmarks.synthetic.copies import CopyError, read_text, take_apart, write_copies
from benchmarks.synthetic.pulses import pulse_step
from benchmarks.synthetic.render import Identity
from benchmarks.synthetic.schedule import Job, place_steps
from benchmarks.synthetic.stream import Layout, TraceWriter

N_VARIANTS = 4  # distinct steps; more change nothing but memory
SIZE_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
Facts = dict[str, Any]


def parse_size(text: str) -> int:
    """Read a size such as `1GB`, `120MB`, `1.5GiB` or `5000`.

    Args:
        text: a positive number and a unit.

    Returns:
        Bytes.

    Raises:
        argparse.ArgumentTypeError: it is not of that form.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]i?B)?", text, re.IGNORECASE)
    if match is None:
        message = f"expected a size such as 1GB, 120MB or 5000, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(float(match[1]) * SIZE_UNITS[(match[2] or "").upper()])


def parse_count(text: str) -> int:
    """Read a positive whole number.

    Args:
        text: digits.

    Returns:
        The number.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) == 0:
        message = f"expected a positive whole number, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--bytes", type=parse_size, help="size of each file, uncompressed")
    size.add_argument("--events", type=parse_count, help="rows of each file, at least")
    size.add_argument("--steps", type=parse_count, help="steps of each file, exactly")
    size.add_argument("--repeat", nargs=2, metavar=("FILE", "K"), help="K shifted copies of a recorded trace")
    parser.add_argument("--out", type=Path, required=True, help="the file to make; with --ranks over 1 a folder")
    parser.add_argument("--ranks", type=parse_count, default=1, help="how many ranks, one file each (default 1)")
    parser.add_argument(
        "--layers", type=parse_count, default=6, help="layers of the model, which size a step (default 6)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same bytes (default 0)")
    parser.add_argument("--simple", action="store_true", help="steps of 1000 kernels of 8 µs every 10 µs, tail behind")
    parser.add_argument("--gzip", action="store_true", help="compress the files")
    parser.add_argument("--epoch-ts", action="store_true", help="whole µs of the epoch, as Kineto wrote until 2023")
    parser.add_argument("--tail-metadata", action="store_true", help="put baseTimeNanoseconds behind the events")
    parser.add_argument("--truth", action="store_true", help="print what the files hold, as JSON")
    return parser


def rank_paths(out: Path, n_ranks: int, *, compressed: bool) -> list[Path]:
    """Name the file of each rank, and make the folders.

    Args:
        out: a file for one rank, a folder for several.
        n_ranks: how many.
        compressed: whether the files are gzip.

    Returns:
        One path a rank.
    """
    if n_ranks == 1 and not out.is_dir():
        out.parent.mkdir(parents=True, exist_ok=True)
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    suffix = ".gz" if compressed else ""
    return [out / f"rank{rank}.pt.trace.json{suffix}" for rank in range(n_ranks)]


def generate(args: argparse.Namespace) -> list[Facts]:
    """Write the files of a synthetic job.

    Args:
        args: the parsed command line.

    Returns:
        What each file holds.
    """
    layout = Layout(
        modern=not args.epoch_ts,
        metadata_behind=args.tail_metadata or args.simple,
        compressed=args.gzip,
    )
    job = Job(args.seed, args.layers, args.ranks, grid_ns=1_000 if args.epoch_ts else 1)
    if args.simple:
        variants = [[pulse_step()] * args.ranks]
    else:
        variants = [place_steps(job, variant) for variant in range(N_VARIANTS)]
    facts: list[Facts] = []
    n_steps = args.steps
    for rank, path in enumerate(rank_paths(args.out, args.ranks, compressed=args.gzip)):
        writer = TraceWriter([steps[rank] for steps in variants], Identity(rank, args.ranks), layout, args.seed)
        if n_steps is None:  # all ranks of a job have as many steps as rank 0
            n_steps = writer.steps_for_bytes(args.bytes) if args.bytes else writer.steps_for_events(args.events)
        facts.append(writer.write(path, n_steps))
    return facts


def main(arguments: list[str] | None = None) -> int:
    """Generate what the command line asks for.

    Args:
        arguments: the command line; that of the process unless given.

    Returns:
        The exit code.
    """
    parser = build_parser()
    args = parser.parse_args(arguments)
    if args.repeat:
        if not args.repeat[1].isdecimal() or args.repeat[1] == "0":
            parser.error(f"--repeat: expected a positive whole number of copies, found {args.repeat[1]!r}")
        try:
            source = take_apart(read_text(Path(args.repeat[0])))
        except (CopyError, ValueError, OSError) as error:
            parser.error(f"--repeat {args.repeat[0]}: {error}")
        [path] = rank_paths(args.out, 1, compressed=args.gzip)
        facts = [write_copies(source, int(args.repeat[1]), path, compressed=args.gzip)]
        kind = "repeat"
    else:
        facts = generate(args)
        kind = "simple" if args.simple else "synthetic"
    if args.truth:
        sys.stdout.write(json.dumps({"kind": kind, "seed": args.seed, "files": facts}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
