"""What `longpole journal add` was told, as values; what cannot be read names its option."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from longpole.cli.journal_options import parse_figure, parse_gain, parse_interval, parse_level, parse_records
from longpole.cli.values import parse_count, parse_if_given
from longpole.pipeline.journal_add import Effect, Evidence, NewEntry

if TYPE_CHECKING:
    from collections.abc import Mapping


def parse_entry(given: Mapping[str, Any]) -> NewEntry:
    """Read the options of a new entry.

    Args:
        given: Parameter of the command -> what was given for it.

    Raises:
        UsageError: One of them cannot be read.
    """
    return NewEntry(
        title=given["title"],
        date=given["date"],
        who=given["who"],
        job=given["job"],
        verdict=given["verdict"],
        reason=given["reason"],
        decision=given["decision"],
        effect=_parse_effect(given),
        evidence=_parse_evidence(given),
        part=given["part"],
        side_effects=given["side_effect"] or [],
        claims=given["claim"] or [],
        reverts=given["reverts"],
        notes=given["notes"],
        tags=given["tag"] or [],
    )


def _parse_effect(given: Mapping[str, Any]) -> Effect:
    return Effect(
        before=parse_figure("--before", given["before"]),
        after=parse_figure("--after", given["after"]),
        unit=given["unit"],
        better=given["better"],
        scope=given["scope"],
        speedup=parse_gain("--speedup", given["speedup"]),
        interval=parse_interval("--interval", given["interval"]),
        level=parse_level("--level", given["level"]),
        statistic=given["statistic"],
        runs=parse_count("--runs", given["runs"]),
        single_run=given["single_run"],
        expected=parse_gain("--expected", given["expected"]),
        candidate=given["candidate"],
        source=given["expected_from"],
        expected_error=parse_level("--expected-error", given["expected_error"]),
    )


def _parse_evidence(given: Mapping[str, Any]) -> Evidence:
    return Evidence(
        records=parse_records(given["record"]),
        no_record=given["no_record"],
        verdict_file=parse_if_given(Path, given["from_"]),
        config=given["config"] or [],
        config_file=parse_if_given(Path, given["config_file"]),
        config_before=parse_if_given(Path, given["config_before"]),
    )
