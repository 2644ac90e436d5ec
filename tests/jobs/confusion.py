"""Reports on many jobs and says how good the findings were: `python -m tests.jobs.confusion [--seeds N] [--write]`."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.jobs.draw import draw, write
from tests.jobs.score import Verdict, by_cause, confusion, judge, summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "how-good-are-findings.md"
CRASH = "crash"
BEGIN, END = "<!-- generated: tests.jobs.confusion -->", "<!-- end of generated -->"


def report_of(folder: Path) -> dict[str, Any]:
    """Return the report document of a folder of traces."""
    from longpole.pipeline.reading import ReportOptions
    from longpole.pipeline.report import build_report
    from longpole.report.json import render_json

    report = build_report([str(folder)], ReportOptions(use_cache=False, processes=1))
    document: dict[str, Any] = json.loads(render_json(report))
    return document


def judge_seed(seed: int) -> Verdict:
    """Draw a job, report on it, and judge the report; a report that crashes names nothing, and is wrong."""
    job = draw(seed)
    with tempfile.TemporaryDirectory(prefix="longpole-job-") as folder:
        write(job, Path(folder))
        try:
            document = report_of(Path(folder))
        except Exception as error:  # noqa: BLE001 (whatever it is, the other jobs are judged all the same)
            sys.stderr.write(f"seed {seed}: {type(error).__name__}: {error}\n")
            document = {"findings": [{"id": "crash", "cause": CRASH, "ranks": []}], "long_pole": "crash"}
        return judge(job, document)


def judge_all(seeds: Iterable[int], processes: int = 2) -> list[Verdict]:
    """Judge many jobs, side by side where there is more than one process."""
    if processes == 1:
        return [judge_seed(seed) for seed in seeds]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return pool.map(judge_seed, seeds, chunksize=4)


def page_part(verdicts: Sequence[Verdict]) -> str:
    """Return what the page of the docs says of these verdicts."""
    shares = summary(verdicts)
    jobs = {kind: sum(one.kind == kind for one in verdicts) for kind in ("single", "pair", "half", "healthy")}
    lines = [
        f"{len(verdicts)} jobs: {jobs['single']} with one cause, {jobs['pair']} with two, "
        f"{jobs['half']} with less than half of what is worth a finding, {jobs['healthy']} with nothing wrong.",
        "",
        "| figure | share |",
        "| --- | ---: |",
        f"| right cause, rank and cost within 5 % | {shares['right']:.1%} |",
        f"| right cause | {shares['cause']:.1%} |",
        f"| two causes, the costlier one named first, with its cost | {shares['pair']:.1%} |",
        f"| findings where there is nothing worth one | {shares['false alarms']:.1%} |",
        "",
        by_cause(verdicts),
        "",
        confusion(verdicts),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the tables into the page of the docs")
    parser.add_argument("--misses", action="store_true", help="list the jobs that were judged wrong")
    options = parser.parse_args(arguments)
    verdicts = judge_all(range(options.first, options.first + options.seeds), options.processes)
    part = page_part(verdicts)
    sys.stdout.write(part + "\n")
    if options.misses:
        for one in verdicts:
            if not one.right:
                sys.stdout.write(f"{one}\n")
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n\n{part}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
