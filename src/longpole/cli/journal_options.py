"""The options of `longpole journal`: what each takes, and what it says of itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from longpole.errors import UsageError

_NUMBER: Final = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MINUS: Final = "\N{MINUS SIGN}"

File: TypeAlias = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE", help="The journal; the nearest longpole-journal.jsonl by default."),
]
JsonFile: TypeAlias = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the answer as JSON; - for standard output.")
]
Markdown: TypeAlias = Annotated[bool, typer.Option("--markdown", help="Print Markdown, as for a pull request.")]
Job: TypeAlias = Annotated[str, typer.Option("--job", metavar="NAME", help="Only entries of this job.")]
Tag: TypeAlias = Annotated[str, typer.Option("--tag", metavar="TAG", help="Only entries with this tag.")]

Title: TypeAlias = Annotated[str, typer.Argument(metavar="TITLE", help="The change in a few words.")]
From: TypeAlias = Annotated[
    str | None,
    typer.Option("--from", metavar="FILE", help="A verdict of longpole verify --json: its numbers and records."),
]
Record: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--record",
        metavar="SIDE=PATH",
        help="A record that it rests on: before=, after= or other=; may be repeated.",
    ),
]
NoRecord: TypeAlias = Annotated[
    str, typer.Option("--no-record", metavar="REASON", help="There is no record, and this is why.")
]
Before: TypeAlias = Annotated[
    str | None, typer.Option("--before", metavar="FIGURE", help="The figure before the change, in --unit.")
]
After: TypeAlias = Annotated[
    str | None, typer.Option("--after", metavar="FIGURE", help="The figure after the change, in --unit.")
]
Unit: TypeAlias = Annotated[
    str, typer.Option("--unit", metavar="UNIT", help="Of both: tokens/s, ms/step, tokens/s/GPU …")
]
Better: TypeAlias = Annotated[
    str, typer.Option("--better", metavar="WAY", help="higher or lower, where the unit does not say.")
]
Scope: TypeAlias = Annotated[
    str, typer.Option("--scope", metavar="SCOPE", help="Of a throughput: total, or per_device.")
]
Speedup: TypeAlias = Annotated[
    str | None, typer.Option("--speedup", metavar="GAIN", help="In place of both figures: 1.25x, or 20% less time.")
]
Interval: TypeAlias = Annotated[
    str | None, typer.Option("--interval", metavar="LOW..HIGH", help="Of the speed-up: 1.22x..1.28x.")
]
Level: TypeAlias = Annotated[
    str | None, typer.Option("--level", metavar="SHARE", help="How sure the interval is: 0.9 or 90%.")
]
Statistic: TypeAlias = Annotated[
    str, typer.Option("--statistic", metavar="TEXT", help="What the figures are: median of 5 pairs …")
]
Runs: TypeAlias = Annotated[str | None, typer.Option("--runs", metavar="N", help="How many runs a side.")]
SingleRun: TypeAlias = Annotated[bool, typer.Option("--single-run", help="One recorded run a side is all there is.")]
Expected: TypeAlias = Annotated[
    str | None,
    typer.Option("--expected", metavar="GAIN", help="What was predicted: 1.25x as fast, or 20% less time per item."),
]
Candidate: TypeAlias = Annotated[
    str, typer.Option("--candidate", metavar="ID", help="The candidate that predicted it: input.prefetch …")
]
ExpectedFrom: TypeAlias = Annotated[
    str, typer.Option("--expected-from", metavar="TEXT", help="What else predicted it: a longpole whatif command …")
]
ExpectedError: TypeAlias = Annotated[
    str | None,
    typer.Option("--expected-error", metavar="SHARE", help="How far such predictions were off: 10%."),
]
Verdict: TypeAlias = Annotated[
    str,
    typer.Option("--verdict", metavar="WORD", help="accepted, rejected, mixed, inconclusive or not_verifiable."),
]
Reason: TypeAlias = Annotated[
    str,
    typer.Option(
        "--reason", metavar="WORD", help="Of a rejection: moved, no_effect, worse, contract, limit; or a sentence."
    ),
]
Decision: TypeAlias = Annotated[
    str, typer.Option("--decision", metavar="WORD", help="kept or reverted; kept where it is accepted.")
]
Reverts: TypeAlias = Annotated[
    str, typer.Option("--reverts", metavar="ID", help="This takes back the change of an earlier entry.")
]
Config: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        metavar="KEY=VALUE",
        help="What was set, over what the job had before; KEY= takes a key away; may be repeated.",
    ),
]
ConfigFile: TypeAlias = Annotated[
    str | None, typer.Option("--config-file", metavar="FILE", help="The whole configuration after it: JSON or TOML.")
]
ConfigBefore: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--config-before",
        metavar="FILE",
        help="The one before it; by default that of the record before, else of the last kept entry.",
    ),
]
Part: TypeAlias = Annotated[
    str, typer.Option("--part", metavar="TEXT", help="What became of the part that was to shrink.")
]
SideEffect: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--side-effect", metavar="TEXT", help="What else changed: peak memory +2 GB …; may be repeated."),
]
StatedClaim: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--claim",
        metavar="WHAT=VALUE",
        help="A figure that somebody stated: 'mfu=55 %', before:mfu=…, both:gpus=8; may be repeated.",
    ),
]
OfJob: TypeAlias = Annotated[
    str, typer.Option("--job", metavar="NAME", help="Which job it is about, where the journal holds several.")
]
Who: TypeAlias = Annotated[str, typer.Option("--who", metavar="NAME", help="Who made the change.")]
Date: TypeAlias = Annotated[
    str, typer.Option("--date", metavar="DATE", help="A day, or an instant in UTC; now by default.")
]
Notes: TypeAlias = Annotated[str, typer.Option("--notes", metavar="TEXT", help="Anything else.")]
Tags: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A word to find it by; may be repeated.")
]


def parse_figure(option: str, text: str | None) -> float | None:
    """Read a number; None where the option was not given.

    Raises:
        UsageError: It is none.
    """
    if text is None:
        return None
    plain = text.strip().replace(",", "").replace(_MINUS, "-")
    if not _NUMBER.fullmatch(plain):
        msg = f"{option}: expected a number; found {text!r}"
        raise UsageError(msg)
    return float(plain)


def parse_gain(option: str, text: str | None) -> float | None:
    """Read a gain as a speed-up: `1.25x` as it is, `20%` or `0.2` as the share of the time per item that it saves.

    >>> parse_gain("--expected", "1.25x"), parse_gain("--expected", "20%")
    (1.25, 1.25)

    Raises:
        UsageError: It is neither, or saves all of the time or more.
    """
    if text is None:
        return None
    plain = text.strip().lower().removesuffix("×").removesuffix("x").strip()
    times = plain != text.strip().lower()
    figure = plain.removesuffix("%").strip()
    if not _NUMBER.fullmatch(figure.replace(_MINUS, "-")) or (times and figure != plain):
        msg = (
            f"{option}: expected 1.25x (so many times as fast), or 20% (of the time per item is saved); found {text!r}"
        )
        raise UsageError(msg)
    value = float(figure.replace(_MINUS, "-"))
    speedup = value if times else _speedup_of_saving(value / 100 if figure != plain else value)
    if speedup <= 0:
        msg = f"{option}: expected more than 0x, or less than 100% saved; found {text!r}"
        raise UsageError(msg)
    return speedup


def _speedup_of_saving(share: float) -> float:
    return 1 / (1 - share) if share < 1 else 0.0


def parse_interval(option: str, text: str | None) -> tuple[float, float] | None:
    """Read an interval of a speed-up, its lower end first or last: ends are gains.

    >>> parse_interval("--interval", "1.2x..1.25x")
    (1.2, 1.25)

    Raises:
        UsageError: It is none.
    """
    if text is None:
        return None
    ends = [parse_gain(option, end) for end in text.split("..")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        msg = f"{option}: expected two gains with .. between them, such as 1.22x..1.28x; found {text!r}"
        raise UsageError(msg)
    return min(ends[0], ends[1]), max(ends[0], ends[1])


def parse_level(option: str, text: str | None) -> float | None:
    """Read a share between 0 and 1, or a percentage.

    Raises:
        UsageError: It is none.
    """
    if text is None:
        return None
    percent = text.strip().endswith("%")
    value = parse_figure(option, text.strip().removesuffix("%").strip())
    share = (value or 0.0) / (100 if percent else 1)
    if not 0 < share < 1:
        msg = f"{option}: expected a share between 0 and 1, such as 0.9 or 90%; found {text!r}"
        raise UsageError(msg)
    return share


def parse_records(texts: list[str] | None) -> list[tuple[str, str]]:
    """Read records as SIDE=PATH; a path alone is of no side.

    >>> parse_records(["before=runs/a.json", "notes.txt"])
    [('before', 'runs/a.json'), ('other', 'notes.txt')]
    """
    records = []
    for text in texts or []:
        side, equals, path = text.partition("=")
        records.append((side, path) if equals and not Path(text).exists() else ("other", text))
    return records
