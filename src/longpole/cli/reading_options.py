"""How a run is read, from the words that every command on traces takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from longpole.cli.values import parse_count, parse_if_given, parse_ranks, parse_units

if TYPE_CHECKING:
    from longpole.pipeline.reading import ReportOptions


def reading_options(
    *,
    step: str | None,
    units: str | None,
    rules: str | None,
    settings: str | None,
    no_cache: bool,
    verify_cache: bool,
    jobs: str | None,
    rank: str | None = None,
    job: str | None = None,
    unit: str | None = None,
    collective_record: str | None = None,
) -> ReportOptions:
    """Make the options of reading from words as typed.

    Raises:
        UsageError: A word is not a number, a range or a list of ranks.
    """
    ranks, number = parse_if_given(parse_ranks, rank), parse_if_given(parse_units, units)
    number_of_job, processes = parse_count("--job", job), parse_count("--jobs", jobs)
    from longpole.pipeline.reading import ReportOptions  # slow to import: a slip of the pen is answered without it

    return ReportOptions(
        step=step,
        units=number,
        ranks=ranks,
        rules=parse_if_given(Path, rules),
        settings=parse_if_given(Path, settings),
        use_cache=not no_cache,
        verify_cache=verify_cache,
        job=number_of_job,
        processes=processes,
        unit=unit,
        collective_record=parse_if_given(Path, collective_record),
    )
