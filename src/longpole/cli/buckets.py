"""`longpole buckets`: what other bucket caps of data-parallel gradients would leave exposed."""

from __future__ import annotations

import math
from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.documents import DocumentOutput
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.terminal import COLORS
from longpole.cli.values import parse_choice
from longpole.errors import UsageError

EXAMPLES: Final = """\b
Examples:
  longpole buckets traces/
  longpole buckets traces/ --collective-record allreduce.json
  longpole buckets rank0.pt.trace.json.gz --cost 60:12.5
  longpole buckets traces/ --of 3 --gradient-type bf16 --json buckets.json"""
GRADIENT_TYPES: Final = {"fp32": 4, "bf16": 2, "fp16": 2, "fp64": 8}

Of = Annotated[
    str | None,
    typer.Option("--of", metavar="RANK", help="Whose gradients; by default the lowest rank that reduces any."),
]
Cost = Annotated[
    str | None,
    typer.Option(
        "--cost",
        metavar="US:GB_PER_S",
        help="What an all-reduce takes: latency in µs, then bytes of its buffer over time.",
    ),
]
GradientType = Annotated[
    str | None,
    typer.Option(
        "--gradient-type",
        metavar="TYPE",
        autocompletion=lambda: list(GRADIENT_TYPES),
        help="Of a gradient, where the trace does not say: fp32, bf16, fp16 or fp64.",
    ),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the sweep as JSON; - for standard output.")
]


def buckets(
    paths: option.Paths,
    *,
    of: Of = None,
    cost: Cost = None,
    gradient_type: GradientType = None,
    collective_record: option.CollectiveRecord = None,
    json: JsonFile = None,
    step: option.Step = None,
    units: option.Units = None,
    rank: option.Ranks = None,
    rules: option.Rules = None,
    settings: option.SettingsFile = None,
    no_cache: option.NoCache = False,
    verify_cache: option.VerifyCache = False,
    job: option.Job = None,
    jobs: option.Jobs = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say which bucket cap hides most of a job's gradient all-reduces, against the one that it ran with."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    stated, whose = _parse_cost(cost), _parse_rank(of)
    if gradient_type is not None:
        gradient_type = parse_choice("--gradient-type", gradient_type, list(GRADIENT_TYPES))
    report = reading_options(
        step=step,
        units=units,
        rank=rank,
        rules=rules,
        settings=settings,
        no_cache=no_cache,
        verify_cache=verify_cache,
        job=job,
        jobs=jobs,
        collective_record=collective_record,
    )
    from longpole.pipeline.buckets import BucketOptions, sweep_buckets
    from longpole.records.strict_json import encode_document
    from longpole.report.text.buckets import render_buckets

    options = BucketOptions(
        report=report, rank=whose, cost=stated, element_bytes=GRADIENT_TYPES[gradient_type] if gradient_type else None
    )
    with Progress(wanted=not output.quiet) as progress:
        document = sweep_buckets(paths, options, progress.update)
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_buckets(document, width=width, color=color),
        sources=[source.path for source in document.run.sources],
    )
    progress.say_done()


def _parse_cost(text: str | None) -> tuple[float, float] | None:
    """Read latency and rate, and return seconds and bytes per second.

    >>> _parse_cost("60:12.5")
    (6e-05, 12500000000.0)

    Raises:
        UsageError: These are not two numbers, the second above 0.
    """
    if text is None:
        return None
    try:
        latency_us, gb_per_s = (float(part) for part in text.split(":"))
    except ValueError:
        latency_us = gb_per_s = -1.0
    if not (math.isfinite(latency_us) and math.isfinite(gb_per_s) and latency_us >= 0 and gb_per_s > 0):
        msg = f"--cost: expected latency in µs and a rate above 0 in GB/s, such as 60:12.5; found {text!r}"
        raise UsageError(msg)
    from longpole.units import NS_PER_S, NS_PER_US

    return latency_us * NS_PER_US / NS_PER_S, gb_per_s * NS_PER_S


def _parse_rank(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        msg = f"--of: expected the number of a rank; found {text!r}"
        raise UsageError(msg)
    return int(text)
