"""Predict every recorded change from the recording before it, and compare with the recordings after it.

    python -m benchmarks.predictions.evaluate                          # all of it, and write the results
    python -m benchmarks.predictions.evaluate --first --only loader    # a part, shown and not written

Runs `longpole report` for every measured period and `longpole whatif` for every prediction, as a user would. Writes
the tables of docs/concepts/how-good-are-predictions.md, `pairs.json` beside this file, and the pairs that the package
ships.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.predictions.changes import Pair, read_pairs
from benchmarks.predictions.knobs import name_knobs
from benchmarks.predictions.manifest import Manifest, ManifestError, hash_changes, hash_rules, read_manifest
from benchmarks.predictions.record import N_BEFORE, RECORDINGS
from benchmarks.predictions.scoring import Answer, Outcome, read_answer, summarize
from benchmarks.predictions.tables import first_of_each, render_tables
from tools.generated_part import replace_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "concepts" / "how-good-are-predictions.md"
RESULT = Path(__file__).with_name("pairs.json")
SHIPPED = ROOT / "src" / "longpole" / "whatif" / "pairs.toml"
DEVICE = "cpu-gloo"  # the class of device that these pairs speak for
ASK_LIMIT_S = 300
SHIPPED_HEAD = """\
# Pairs of recordings before and after a real change, each with what was predicted from the one before: the spread of
# predicted_ns / measured_ns - 1 over the pairs of a kind is the error that a what-if of this kind is printed with.
# Written by `python -m benchmarks.predictions.evaluate`, from its pairs.json; do not edit.
#
#   recorded      date and time of the recording (UTC); empty before the first one
#   machine       what it was recorded on
#   pair.name     the change in benchmarks/predictions/changes.toml, and its size
#   pair.kind     of what-if (scale, prefetch, fuse, equalise, issue_early, off_path), and what it was done to; several
#   pair.device   class of device; says nothing about another one
#   pair.before_ns, pair.predicted_ns, pair.measured_ns   periods: recorded before, predicted, recorded after
"""


class AskError(Exception):
    """A command that gave no document."""


@dataclass(frozen=True)
class Longpole:
    """The command, with a cache of its own."""

    command: tuple[str, ...]
    cache: Path

    def ask(self, *arguments: str) -> dict[str, Any]:
        """Run one command that writes JSON to its standard output.

        Args:
            arguments: of `longpole`.

        Returns:
            The document.

        Raises:
            AskError: it failed, took too long, or wrote something else; the message holds its last words.
        """
        environment = {**os.environ, "LONGPOLE_CACHE": str(self.cache)}
        try:
            done = subprocess.run(
                [*self.command, *arguments],
                env=environment,
                capture_output=True,
                text=True,
                timeout=ASK_LIMIT_S,
                check=False,  # a refusal has an exit code of its own, and a document
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AskError(str(error)) from error
        try:
            document = json.loads(done.stdout)
        except json.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            said = " ".join(done.stderr.split())[-300:]
            message = f"exit code {done.returncode}: {said}"
            raise AskError(message)
        return document

    def measure_period_ns(self, folder: Path) -> int:
        """Read the median period of a recording from its report.

        Args:
            folder: with the traces of all ranks.

        Returns:
            The period.

        Raises:
            AskError: there is no report, or it does not know the period.
        """
        document = self.ask("report", str(folder), "--json", "-", "--detail", "run", "--jobs", "1")
        period_ns = document["unit"]["period_ns"]["median"]
        if not isinstance(period_ns, int):
            message = f"the report knows no period: {period_ns}"
            raise AskError(message)
        return period_ns

    def predict(self, folder: Path, pair: Pair) -> Answer:
        """Ask what a change would bring.

        Args:
            folder: with the traces of all ranks, before the change.
            pair: with the options that stand for the change.

        Returns:
            The prediction, or why there is none.
        """
        try:
            return read_answer(self.ask("whatif", str(folder), *pair.whatif, "--json", "-", "--jobs", "1"))
        except AskError as error:
            return Answer(why_not=f"failed: {error}")


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path, nargs="?", default=RECORDINGS, help="the folder that record filled")
    parser.add_argument("--longpole", default=f"{shlex.quote(sys.executable)} -m longpole", metavar="CMD")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX", help="changes to look at")
    parser.add_argument("--first", action="store_true", help="only from the first recording of each pair")
    parser.add_argument("--jobs", type=int, default=2, help="commands at once (2)")
    return parser


def list_questions(
    pairs: Iterable[Pair], manifest: Manifest, *, first_only: bool
) -> tuple[list[tuple[Pair, int, str]], dict[str, list[str]]]:
    """List what is to be predicted from what, and what it is compared with.

    Args:
        pairs: to look at.
        manifest: of the recordings.
        first_only: only from the first recording before each change.

    Returns:
        Pair, round and folder of each recording before a change; name of the pair -> folders after it. A pair that
        lacks recordings on a side is left out.
    """
    n_before = 1 if first_only else N_BEFORE  # a configuration that is a target too was recorded more often
    questions: list[tuple[Pair, int, str]] = []
    targets: dict[str, list[str]] = {}
    for pair in pairs:
        before, after = (manifest.find(name_knobs(knobs)) for knobs in (pair.before, pair.after))
        if before and after:
            targets[pair.name] = [one.folder for one in after]
            n_before = (
                1 if first_only else min(len(before), 3)
            )  # of a configuration that is a target too there are more
            questions += [(pair, one.round, one.folder) for one in before[:n_before]]
    return questions, targets


def evaluate(
    longpole: Longpole, recordings: Path, pairs: Sequence[Pair], manifest: Manifest, args: argparse.Namespace
) -> list[Outcome]:
    """Predict and measure.

    Args:
        longpole: the command.
        recordings: the folder.
        pairs: to look at.
        manifest: of the recordings.
        args: the parsed command line.

    Returns:
        One outcome for each pair and recording before it, in the order of the table.

    Raises:
        AskError: a recording has no period.
    """
    questions, targets = list_questions(pairs, manifest, first_only=args.first)
    folders = sorted({folder for *_, folder in questions} | {folder for some in targets.values() for folder in some})
    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        measured = pool.map(lambda folder: longpole.measure_period_ns(recordings / folder), folders)
        periods = count_up(measured, len(folders), "periods measured")
        period_ns = dict(zip(folders, periods, strict=True))
        predicted = pool.map(lambda question: longpole.predict(recordings / question[2], question[0]), questions)
        answers = list(count_up(predicted, len(questions), "predictions made"))
    return [
        Outcome(
            pair=pair.name,
            change=pair.change,
            kind=pair.kind,
            round=number,
            before_ns=period_ns[folder],
            targets_ns=tuple(period_ns[target] for target in targets[pair.name]),
            answer=answer,
        )
        for (pair, number, folder), answer in zip(questions, answers, strict=True)
    ]


def count_up(values: Iterable[Any], total: int, what: str) -> Iterable[Any]:
    """Pass values on, and say on standard error how far they are, where that is a terminal."""
    for place, value in enumerate(values, start=1):
        if sys.stderr.isatty():
            print(f"\r{place} of {total} {what}", end="" if place < total else "\n", file=sys.stderr, flush=True)
        yield value


def drop_own_intervals(outcomes: Sequence[Outcome], manifest: Manifest, shipped: str) -> list[Outcome]:
    """Take away intervals that rest on these very pairs: they would hold by construction.

    Args:
        outcomes: with intervals as printed.
        manifest: of the recordings.
        shipped: the pairs that the package shipped when it was asked (TOML).

    Returns:
        The outcomes, with intervals only where the shipped pairs are from other recordings.
    """
    if tomllib.loads(shipped).get("recorded") != manifest.started:
        return list(outcomes)
    return [replace(one, answer=replace(one.answer, interval_ns=None)) for one in outcomes]


def say_rules(manifest: Manifest, now: str) -> str:
    """Say whether the rules are those that stood before the recording.

    Args:
        manifest: of the recordings.
        now: digest of the rules in use.

    Returns:
        A sentence.
    """
    if manifest.rules_hashes == [now]:
        return f"The rules of the prediction stood before the recording began and are the same now (digest `{now}`)."
    return (
        f"The rules of the prediction have changed since the recording began (digest `{now}`, then"
        f" `{', '.join(manifest.rules_hashes)}`): these figures are no test of them until it is repeated."
    )


def render_shipped(outcomes: Sequence[Outcome], manifest: Manifest) -> str:
    """Render the pairs that the package ships: one row a pair, from its first recording.

    Args:
        outcomes: all of them.
        manifest: of the recordings.

    Returns:
        TOML; pairs without a prediction are not in it.
    """
    machine = f"{manifest.machine['cores']} cores, {manifest.machine['processor']}"
    lines = [SHIPPED_HEAD, f"recorded = {json.dumps(manifest.started)}", f"machine = {json.dumps(machine)}"]
    for one in first_of_each(outcomes):
        if one.answer.predicted_ns is not None:
            lines += [
                "",
                "[[pair]]",
                f"name = {json.dumps(one.pair)}",
                f"kind = {json.dumps(one.kind)}",
                f"device = {json.dumps(DEVICE)}",
                f"before_ns = {one.before_ns}",
                f"predicted_ns = {one.answer.predicted_ns}",
                f"measured_ns = {one.target_ns}",
            ]
    return "\n".join(lines) + "\n"


def render_result(outcomes: Sequence[Outcome], manifest: Manifest) -> dict[str, Any]:
    """Put everything measured and predicted into one value for other programs.

    Args:
        outcomes: all of them.
        manifest: of the recordings.

    Returns:
        What `pairs.json` holds.
    """
    summary = {"pairs": summarize(first_of_each(outcomes)), "recordings": summarize(outcomes)}
    return {
        "recorded": manifest.started,
        "machine": manifest.machine,
        "versions": manifest.versions,
        "rules": {"recorded": manifest.rules_hashes, "now": hash_rules()},
        "summary": {name: None if one is None else asdict(one) for name, one in summary.items()},
        "outcomes": [{**asdict(one), "target_ns": one.target_ns} for one in outcomes],
    }


def write_all(outcomes: Sequence[Outcome], manifest: Manifest, tables: str) -> None:
    """Write the page's part, the result and the shipped pairs."""
    PAGE.write_text(replace_part(PAGE.read_text(encoding="utf-8"), "figures", tables), encoding="utf-8")
    RESULT.write_text(json.dumps(render_result(outcomes, manifest), indent=1) + "\n", encoding="utf-8")
    SHIPPED.write_text(render_shipped(outcomes, manifest), encoding="utf-8")
    for path in (PAGE, RESULT, SHIPPED):
        print(f"written: {path.relative_to(ROOT)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate; 0 when it was done, whatever came out, 3 where the recordings do not serve."""
    args = build_parser().parse_args(arguments)
    try:
        manifest = read_manifest(args.recordings)
        if manifest is None or manifest.changes_hash != hash_changes():
            what = "none there" if manifest is None else "those of another table of changes"
            print(f"{args.recordings}: expected recordings of this table of changes, found {what}", file=sys.stderr)
            return 3
        shipped = SHIPPED.read_text(encoding="utf-8") if SHIPPED.is_file() else ""
        pairs = [pair for pair in read_pairs() if args.only.search(pair.change)]
        with tempfile.TemporaryDirectory(prefix="predictions-cache-") as cache:
            longpole = Longpole(tuple(shlex.split(args.longpole)), Path(cache))
            outcomes = evaluate(longpole, args.recordings, pairs, manifest, args)
    except (AskError, ManifestError) as error:
        print(error, file=sys.stderr)
        return 3
    if not outcomes:
        print("no pair has recordings on both sides; record some", file=sys.stderr)
        return 3
    outcomes = drop_own_intervals(outcomes, manifest, shipped)
    tables = render_tables(outcomes, manifest, rules=say_rules(manifest, hash_rules()))
    if args.first or args.only.pattern:
        print(tables)
    else:
        write_all(outcomes, manifest, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
