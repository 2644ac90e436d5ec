"""Ask for the verdicts on the stored records, and write them beside the expected ones into the documentation.

python -m benchmarks.verify.evaluate            # rewrites the table of docs/concepts/how-good-are-verdicts.md
python -m benchmarks.verify.evaluate --show     # shows it, and writes nothing
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.predictions.tables import milliseconds, percent, table
from benchmarks.verify.convert import MANIFEST, RECORDS
from benchmarks.verify.scenarios import SIDES
from longpole.pipeline.verify import VerifyOptions, verify_runs
from longpole.records.ledger import Unknown
from tools.generated_part import replace_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.report.verify import Verify

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "how-good-are-verdicts.md"
HEADER = ("scenario", "pairs", "expected", "verdict", "item before, ms", "after, ms", "change", "90 % interval", "part")


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, default=RECORDS, help="what `convert` wrote (tests/verify_records)")
    parser.add_argument("--show", action="store_true", help="show the table, and write nothing")
    return parser


def judge(records: Path, scenario: Mapping[str, Any]) -> Verify:
    """Judge a scenario by all its pairs, told of the part that the change was aimed at."""
    before, after = (
        [str(records / scenario["name"] / f"{side}-{number}.json") for number in range(1, scenario["pairs"] + 1)]
        for side in SIDES
    )
    return verify_runs(before, after, VerifyOptions(part=scenario["part"], paired=True))


def render_row(scenario: Mapping[str, Any], document: Verify) -> list[str]:
    """Write the row of a scenario."""
    found = document.reason if document.verdict == "rejected" else document.verdict
    row = [f"`{scenario['name']}`", str(scenario["pairs"]), f"`{scenario['verdict']}`", f"`{found}`"]
    effect, part = document.effect, document.part
    if isinstance(effect, Unknown) or isinstance(part, Unknown):
        return row + ["–"] * (len(HEADER) - len(row))
    interval = "–" if isinstance(effect.interval, Unknown) else " to ".join(map(percent, effect.interval))
    times = [None if isinstance(time, Unknown) else round(time) for time in (effect.before_ns, effect.after_ns)]
    parts = [None if isinstance(time, Unknown) else time for time in (part.before_ns, part.after_ns)]
    estimate = None if isinstance(effect.estimate, Unknown) else effect.estimate
    row += [*map(milliseconds, times), percent(estimate), interval]
    return [*row, f"{part.part}: {' → '.join(map(milliseconds, parts))}"]


def render(manifest: Mapping[str, Any], documents: Sequence[Verify]) -> str:
    """Write how it was recorded, the table, and what each scenario is with what verify said.

    Args:
        manifest: of the records.
        documents: the verdicts, in its order.

    Returns:
        Markdown.
    """
    about, scenarios = manifest["recorded"], manifest["scenario"]
    right = sum(row[2] == row[3] for row in map(render_row, scenarios, documents))
    lines = [
        f"{len(scenarios)} scenarios, {about['runs']} runs, {right} of {len(scenarios)} verdicts as expected."
        f" Recorded on {about['recorded_to'][:10]}: {about['machine']}, {about['system']}, PyTorch {about['pytorch']},"
        f" Python {about['python']}; {about['steps_recorded']} steps a run on {about['ranks']} ranks."
        f" {about['runs_recorded_again']} runs were recorded again because their pair had to wait for a core for longer"
        f" than allowed; {about['runs_disturbed']} of those that are kept had to.",
        "",
        table(HEADER, [render_row(*both) for both in zip(scenarios, documents, strict=True)], right_from=9),
        "",
    ]
    for scenario, document in zip(scenarios, documents, strict=True):
        lines.append(f"- **`{scenario['name']}`**: {scenario['says']}. *{document.says}*")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge everything; 0."""
    args = build_parser().parse_args(arguments)
    manifest = tomllib.loads((args.records / MANIFEST).read_text(encoding="utf-8"))
    text = render(manifest, [judge(args.records, scenario) for scenario in manifest["scenario"]])
    if args.show:
        print(text)
    else:
        PAGE.write_text(replace_part(PAGE.read_text(encoding="utf-8"), "figures", text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
