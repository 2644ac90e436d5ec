"""The full timelines of a run, for those who want every span; nothing of them is kept in the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longpole.pipeline.discover import find_traces
from longpole.pipeline.span_files import without_spans_beside_traces
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.pipeline.reading import ReportOptions
    from longpole.timeline.timeline import Timeline


def timelines_of(paths: Sequence[str], options: ReportOptions) -> list[Timeline]:
    """Read every file of a run into timelines, in order of rank; files without a rank get the lowest free ones.

    Raises:
        UsageError: A path is wrong.
        InputError: A file cannot be used.
    """
    settings = read_settings(options.settings)
    context = WorkContext(None, settings, None, None, None)
    files, _ = without_spans_beside_traces(find_traces(paths, settings))
    timelines = [t for file in files for t in read_timelines(file, context)]
    taken = {t.identity.rank for t in timelines if not t.identity.rank_assumed}
    free = (rank for rank in range(len(timelines) + len(taken) + 1) if rank not in taken)
    numbered = [
        replace(t, identity=replace(t.identity, rank=next(free))) if t.identity.rank_assumed else t for t in timelines
    ]
    return sorted(numbered, key=lambda t: t.identity.rank)
