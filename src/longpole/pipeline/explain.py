"""`longpole explain`: find what is meant, and where a run is given, what its report says of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from longpole.advice.cause_pages import read_pages
from longpole.advice.symptoms import load_symptoms
from longpole.advice.topics import all_topics, find_topics
from longpole.errors import UsageError
from longpole.report.explain import SCHEMA, Explain
from longpole.report.explain_build import build_page, build_symptom, build_topics, headline_of, long_pole_of
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.advice.topics import Topic
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report

_PATTERN = set("*?[")


def explain(
    asked: str,
    paths: Sequence[str],
    options: ReportOptions,
    progress: Callable[[str, int, int], None] | None = None,
) -> Explain:
    """Say which figures decide on a symptom and what follows, or what a cause is.

    Args:
        asked: A symptom or a cause, by name or in words; empty for the list of all.
        paths: Files, folders and patterns of one run; none for the explanation alone.
        options: What to read, and how.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Returns:
        The answer; without a run it may be that several are meant.

    Raises:
        UsageError: Nothing is like it, or a run is given and several are meant; or a path or an option is wrong.
        InputError: No file could be used.
    """
    from longpole.pipeline.version import package_version

    symptoms, pages = load_symptoms(), read_pages()
    version = package_version()
    if not asked.strip():
        return Explain(SCHEMA, version, "", "list", build_topics(all_topics(symptoms, pages)))
    _check_files(asked, paths)
    found = find_topics(asked, symptoms, pages)
    if not found.topics:
        msg = f"explain: no symptom or cause is like {asked!r}; `longpole explain` lists all of them"
        raise UsageError(msg)
    if not found.is_sure:
        if paths:
            raise _ambiguous(asked, found.topics)
        return Explain(SCHEMA, version, asked, "several", build_topics(found.topics))
    topic = found.topics[0]
    report = _report(paths, options, progress)
    if topic.kind == "cause":
        answer = Explain(SCHEMA, version, asked, "cause", [], cause=build_page(topic.id, report))
    else:
        settings = read_settings(options.settings)
        entry = build_symptom(symptoms.by_id()[topic.id], settings, report, paths)
        answer = Explain(SCHEMA, version, asked, "symptom", [], symptom=entry)
    if report is not None:
        answer.run, answer.headline, answer.long_pole = report.run, headline_of(report), long_pole_of(report)
    return answer


def _check_files(asked: str, paths: Sequence[str]) -> None:
    """Refuse words that were meant for the symptom and stand where the files of a run belong."""
    if paths and not any(Path(path).exists() or _PATTERN & set(path) for path in paths):
        msg = (
            f"explain: expected the files of a run behind the symptom, found no file {paths[0]!r}; put a symptom of"
            f" several words in quotes: longpole explain {shlex.quote(' '.join([asked, *paths]))}"
        )
        raise UsageError(msg)


def _report(
    paths: Sequence[str], options: ReportOptions, progress: Callable[[str, int, int], None] | None
) -> Report | None:
    if not paths:
        return None
    from longpole.pipeline.report import build_report

    return build_report(paths, options, progress)


def _ambiguous(asked: str, topics: Sequence[Topic]) -> UsageError:
    lines = "\n".join(f"  {topic.id}: {topic.says}" for topic in topics)
    return UsageError(f"explain: {asked!r} may mean several; name one before the files of a run:\n{lines}")
