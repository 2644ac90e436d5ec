"""`longpole report`: read and digest each file, bring the ranks together, replay the run, build the report."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from longpole.digest.cache import Cache
from longpole.digest.jobs import choose_run
from longpole.pipeline.collective_record import with_models
from longpole.pipeline.reading import (
    choose_ranks,
    graph_folder,
    has_graphs,
    read_digests,
    selection_of,
)
from longpole.pipeline.version import package_version
from longpole.records.critical_path import ANSWER_VERSION
from longpole.report.build import build_report as build_document
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.digest.jobs import Run
    from longpole.pipeline.reading import ReportOptions
    from longpole.records.critical_path import PathAnswer
    from longpole.report.document import Report
    from longpole.settings import Settings


def build_report(
    paths: Sequence[str], options: ReportOptions, progress: Callable[[str, int, int], None] | None = None
) -> Report:
    """Report on one run.

    Args:
        paths: Files, folders and patterns; together they are one run.
        options: What to report on, and how.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Raises:
        UsageError: A path, an option or the choice of a run is wrong.
        InputError: No file could be used.
    """
    return report_on(paths, options, progress)[1]


def report_on(
    paths: Sequence[str], options: ReportOptions, progress: Callable[[str, int, int], None] | None = None
) -> tuple[Run, Report]:
    """Return the digests of a run, and the report on it.

    Args:
        paths: Files, folders and patterns; together they are one run.
        options: What to report on, and how.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Raises:
        UsageError: A path, an option or the choice of a run is wrong.
        InputError: No file could be used.
    """
    settings = read_settings(options.settings)
    with ExitStack() as held:
        folder = graph_folder(options, held)
        digests, refused = read_digests(paths, options, settings, progress, folder)
        run, findings = with_models(choose_run(choose_ranks(digests, options), options.job, settings), options)
        answer = _stored_answer(run, options, settings)
        if answer is None:
            if not has_graphs(run.digests, folder):
                digests, refused = read_digests(paths, options, settings, progress, folder, graphs_needed=True)
                run = replace(choose_run(choose_ranks(digests, options), options.job, settings), recorded=run.recorded)
            from longpole.pipeline.replays import answer_run

            answer = answer_run(run, folder, settings, options.unit, options.rules)
            if options.use_cache:
                Cache.default().write_answer(_answer_key(run, options, settings), answer)
    return run, build_document(run, [*refused, *findings], selection_of(options), package_version(), settings, answer)


def _stored_answer(run: Run, options: ReportOptions, settings: Settings) -> PathAnswer | None:
    if not options.use_cache or not all(digest.graph for digest in run.digests):
        return None
    return Cache.default().read_answer(_answer_key(run, options, settings))


def _answer_key(run: Run, options: ReportOptions, settings: Settings) -> str:
    """Return the key of what a run's graph says: its ranks' graphs, and all else that it depends on."""
    graphs = "|".join(f"{digest.rank}:{digest.graph}" for digest in run.digests)
    models = run.recorded.key() if run.recorded is not None else ""
    text = f"{ANSWER_VERSION}|{graphs}|{settings}|{options.unit}|{package_version()}|{models}"
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()
