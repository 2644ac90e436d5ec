"""`longpole balance`: sequences divided over ranks so that no rank waits for another."""

from __future__ import annotations

import math
from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_amount, parse_choice, parse_count
from longpole.errors import UsageError

EXAMPLES: Final = """\b
Examples:
  longpole balance lengths.txt --ranks 8 --batch 256
  longpole balance data.jsonl --key num_tokens --speed 1,1,0.6
  longpole balance data.npy --ranks 8 --model llama-3-8b --convention mcore
  longpole balance lengths.txt --from traces/ --cost square --json out.json"""

_DIVISIONS: Final = ("in_turn", "in_blocks")

Lengths = Annotated[
    str,
    typer.Argument(
        metavar="LENGTHS", help="Tokens of each sequence: text, JSON, JSON Lines, CSV or .npy; - for standard input."
    ),
]
Ranks = Annotated[str | None, typer.Option("--ranks", metavar="N", help="Over how many ranks.")]
Speed = Annotated[
    str | None, typer.Option("--speed", metavar="LIST", help="Speed of each rank, in proportion: 1,1,0.6.")
]
From = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="TRACE", help="Measure the ranks' speeds in traces of a run; may be repeated."),
]
BatchSize = Annotated[
    str | None,
    typer.Option("--batch", metavar="N", help="Sequences of a global batch, over all ranks; all at once by default."),
]
Cost = Annotated[
    str | None,
    typer.Option(
        "--cost", metavar="WHAT", autocompletion=lambda: ["tokens", "square"], help="tokens, or attention's square."
    ),
]
Crossover = Annotated[
    str | None,
    typer.Option(
        "--crossover", metavar="TOKENS", help="Cost of both: the length at which attention costs as much as the rest."
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Cost by a model's FLOPs: a known name, or config.json.")
]
ConventionName = Annotated[
    str | None, typer.Option("--convention", metavar="NAME", help="How the model's FLOPs are counted, such as mcore.")
]
EqualCounts = Annotated[
    bool, typer.Option("--equal-counts", help="Every rank gets as many sequences, give or take one.")
]
Before = Annotated[
    str,
    typer.Option(
        "--before",
        metavar="HOW",
        autocompletion=lambda: list(_DIVISIONS),
        help="How they are divided today: in_turn (DistributedSampler) or in_blocks.",
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", metavar="NAME", help="Key or column that holds the lengths, or the tokens.")
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the division as JSON; - for standard output.")
]


def balance(
    lengths: Lengths,
    *,
    ranks: Ranks = None,
    speed: Speed = None,
    trace: From = None,
    batch: BatchSize = None,
    cost: Cost = None,
    crossover: Crossover = None,
    model: Model = None,
    convention: ConventionName = None,
    equal_counts: EqualCounts = False,
    before: Before = "in_turn",
    key: Key = None,
    json: JsonFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Divide sequences over ranks, so that none waits for the one with the longest."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    speeds, before = _parse_speeds(speed), parse_choice("--before", before, _DIVISIONS)
    n_ranks, batch_size = parse_count("--ranks", ranks), parse_count("--batch", batch)
    crossover_tokens = parse_amount("--crossover", crossover)
    from longpole.pipeline.balance import BalanceOptions, balance_lengths
    from longpole.records.strict_json import encode_document
    from longpole.report.text.balance import render_balance

    options = BalanceOptions(
        ranks=n_ranks,
        speeds=speeds,
        trace=trace or (),
        batch_size=batch_size,
        cost=cost,
        crossover=crossover_tokens,
        model=model,
        convention=convention,
        equal_counts=equal_counts,
        before=before,
        key=key,
    )
    with Progress(wanted=not output.quiet, counted=not trace) as progress:
        document = balance_lengths(lengths, options, progress.update)
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_balance(document, width=width, color=color),
        sources=[lengths, *(trace or ())],
    )
    progress.say_done()


def _parse_speeds(text: str | None) -> list[float]:
    """Read the speeds of ranks: numbers above 0 with commas between them.

    >>> _parse_speeds("1,1,0.6")
    [1.0, 1.0, 0.6]

    Raises:
        UsageError: One of them is none.
    """
    if text is None:
        return []
    try:
        speeds = [float(part) for part in text.split(",")]
    except ValueError:
        speeds = []
    if not speeds or not all(math.isfinite(one) and one > 0 for one in speeds):
        msg = f"--speed: expected numbers above 0 with commas between them, one for each rank; found {text!r}"
        raise UsageError(msg)
    return speeds
