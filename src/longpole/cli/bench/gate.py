"""`longpole bench gate`: whether something became worse, in an exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.bench import gate_options as asked
from longpole.cli.bench.durations import parse_duration_s
from longpole.cli.documents import DocumentOutput
from longpole.cli.outputs import check_file, write_file
from longpole.cli.terminal import COLORS, tell
from longpole.cli.values import parse_choice, parse_if_given
from longpole.cli.verify_options import parse_share

if TYPE_CHECKING:
    from longpole.bench.gate.judge import Judged
    from longpole.pipeline.gate import GateOptions
    from longpole.report.gate import Gate
    from longpole.stats.looks import Look

EXAMPLES: Final = """\b
Examples:
  longpole bench gate --a 'python old.py' --b 'python new.py'
  longpole bench gate --a 'old/step.sh' --b './step.sh' --threshold 5%
  longpole bench gate base.json new.json --metric time --metric peak_memory=5%
  longpole bench gate base.json new.json --junit gate.xml --markdown gate.md

\b
Exit codes: 0 same or improved, 1 regressed, 5 inconclusive, 6 invalid."""


@dataclass(frozen=True, slots=True)
class _Files:
    """Where the answer goes beside its page and JSON."""

    junit: Path | None
    markdown: Path | None

    def check(self) -> None:
        for name, path in (("--junit", self.junit), ("--markdown", self.markdown)):
            if path is not None:
                check_file(name, path)

    def write(self, document: Gate) -> None:
        from longpole.report.gate_junit import render_gate_junit
        from longpole.report.gate_markdown import render_gate_markdown

        if self.junit is not None:
            write_file("--junit", self.junit, render_gate_junit(document))
        if self.markdown is not None:
            write_file("--markdown", self.markdown, render_gate_markdown(document).encode())


def gate(
    records: asked.Records = None,
    *,
    a: asked.CommandA = None,
    b: asked.CommandB = None,
    threshold: asked.Threshold = None,
    metric: asked.Metric = None,
    fail_when: asked.FailWhen = "likely",
    inconclusive: asked.Inconclusive = "neutral",
    allow_diff: asked.AllowDiff = None,
    calibration: asked.Calibration = None,
    critical: asked.Critical = None,
    min_contribution: asked.MinContribution = None,
    benchmark: asked.BenchmarkName = "",
    pairs: asked.Pairs = 10,
    max_pairs: asked.MaxPairs = 40,
    budget: asked.Budget = "10min",
    seed: asked.Seed = 42,
    warmup: asked.WarmUp = 0,
    timeout: asked.Timeout = None,
    keep: asked.KeepRecords = None,
    junit: asked.JUnitFile = None,
    markdown: asked.MarkdownFile = None,
    json: asked.JsonFile = None,
    settings: option.SettingsFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Say whether something became worse: regressed, same, improved, inconclusive or invalid, in an exit code."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    files = _Files(parse_if_given(Path, junit), parse_if_given(Path, markdown))
    output.check()
    files.check()
    given = list(records or [])
    asked.check_form(given, a, b)
    from longpole.bench.gate.asked import Asked, parse_metrics
    from longpole.pipeline.gate import GateOptions, Run

    share = parse_share("--threshold", threshold)
    options = GateOptions(
        asked=Asked(
            metrics=parse_metrics(metric or []),
            threshold=_default_threshold(settings) if share is None else share,
            threshold_given=share is not None,
            proven=parse_choice("--fail-when", fail_when, asked.FAIL_WHEN) == "proven",
            allow=frozenset(allow_diff or []),
            critical=frozenset(critical or []),
            min_contribution=parse_share("--min-contribution", min_contribution) or 0.01,
        ),
        settings=parse_if_given(Path, settings),
        benchmark=benchmark,
        calibration=parse_if_given(Path, calibration),
        inconclusive=parse_choice("--inconclusive", inconclusive, asked.INCONCLUSIVE),
        run=Run(
            pairs=pairs,
            max_pairs=max(max_pairs, pairs),
            budget_s=parse_duration_s("--budget", budget),
            order_seed=seed,
            warmup_units=warmup,
            timeout_s=parse_duration_s("--timeout", timeout),
            records=parse_if_given(Path, keep),
        ),
    )
    document = _answer(given, (a, b), options, output)
    files.write(document)
    if document.exit_code:
        raise typer.Exit(document.exit_code)


def _default_threshold(settings: str | None) -> float:
    from longpole.settings import read_settings

    return read_settings(parse_if_given(Path, settings)).regression_min_share


def _answer(
    records: list[str], commands: tuple[str | None, str | None], options: GateOptions, output: DocumentOutput
) -> Gate:
    from longpole.pipeline.gate import gate_commands, gate_records
    from longpole.records.strict_json import encode_document
    from longpole.report.text.gate import render_gate

    if records:
        document = gate_records(records[0], records[1:], options)
    else:
        assert commands[0] is not None
        assert commands[1] is not None

        def say_look(look: Look, judged: Judged) -> None:
            if not output.quiet:
                tell(f"{look.pairs} pairs: {judged.verdict}")

        document = gate_commands(commands[0], commands[1], options, on_look=say_look)
    output.write(
        lambda: encode_document(document),
        lambda width, color: render_gate(document, width=width, color=color),
        sources=[*document.base.paths, *document.new.paths],
    )
    return document
