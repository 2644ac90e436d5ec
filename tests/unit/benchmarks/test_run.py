"""The benchmark harness, on a stand-in for the command that it measures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).resolve().parents[3] / "benchmarks" / "run.py"
STAND_IN = """
import json, pathlib, sys
from decimal import Decimal
def device(path):
    work = ("kernel", "gpu_memcpy", "gpu_memset")
    events = [e for e in json.loads(path.read_bytes(), parse_float=Decimal)["traceEvents"] if e.get("cat") in work]
    spans = sorted((int(e["ts"] * 1000), int((e["ts"] + e["dur"]) * 1000)) for e in events)
    busy, reached = 0, 0
    for start, end in spans:
        busy += max(0, end - max(start, reached))
        reached = max(reached, end)
    return {"device_span": {"span_ns": reached - spans[0][0], "busy_ns": busy + WRONG_BY}}
if sys.argv[1] == "--help":
    print("usage")
else:
    path = pathlib.Path(sys.argv[2])
    paths = sorted(path.iterdir()) if path.is_dir() else [path]
    print(json.dumps({"ranks": [device(path) for path in paths]}))
"""


def run_bench(folder: Path, *arguments: str, stand_in: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    command = folder / "stand_in.py"
    command.write_text(stand_in)
    folders = ["--data", str(folder / "data"), "--results", str(folder / "results"), "--label", "test"]
    sizes = ["--size", "400KB", "--rank-size", "300KB", "--ranks", "2", "--repeats", "2", "--no-hta"]
    done = subprocess.run(
        [sys.executable, str(RUN), *folders, *sizes, "--longpole", f"{sys.executable} {command}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    results = list((folder / "results").glob("*-test.json"))
    return done, json.loads(results[0].read_text()) if results else {}


def test_every_part_is_measured_and_judged(tmp_path: Path) -> None:
    """Pairs, cached runs and start time are all there, the figures are checked, and nothing of the machine is told."""
    done, record = run_bench(tmp_path, "--only", "help,ranks", stand_in=STAND_IN.replace("WRONG_BY", "0"))

    assert done.returncode == 0
    assert [target["says"] for target in record["targets"]] == ["longpole --help"]
    [ranks] = record["workloads"]
    assert ranks["figures"] == "exact"
    n_runs = {name: len(runs) for name, runs in ranks["runs"].items() if runs}
    assert n_runs == {"longpole": 2, "json_load": 2, "cached": 2}
    ratio = next(target for target in ranks["targets"] if target["unit"] == "x")
    assert ratio["limit"] == 0.4
    assert ratio["spread"][0] <= ratio["value"] <= ratio["spread"][1]
    for run in ranks["runs"]["longpole"]:
        assert 0 < run["peak_process_bytes"] <= run["peak_tree_bytes"]
        assert run["wall_s"] > 0
    assert str(tmp_path) not in json.dumps(record)
    assert done.stdout.index("time / json.load") < done.stdout.index("peak memory")


def test_a_wrong_figure_is_shown_and_fails_the_gate(tmp_path: Path) -> None:
    """A fast answer that is wrong by a nanosecond does not pass."""
    wrong = STAND_IN.replace("WRONG_BY", "1")

    done, record = run_bench(tmp_path, "--only", "generated", "--gate", stand_in=wrong)

    assert done.returncode == 1
    assert record["workloads"][0]["figures"].startswith("differ")


def test_a_failing_command_is_reported_with_its_last_words(tmp_path: Path) -> None:
    """Where the measured command fails, its message is shown and the exit code says so."""
    done, record = run_bench(tmp_path, "--only", "generated,help", stand_in="import sys; sys.exit('no such option')")

    assert done.returncode == 3
    assert "no such option" in done.stdout
    assert record["workloads"] == []


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    """A misspelt part is a usage error that lists the parts."""
    done, _ = run_bench(tmp_path, "--only", "generatd", stand_in="")

    assert done.returncode == 2
    assert "help,corpus,generated,ranks" in done.stderr


@pytest.mark.parametrize("shared", [None, "empty"])
def test_a_missing_corpus_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str | None
) -> None:
    """Without the corpus the other parts still run."""
    if shared is None:
        monkeypatch.delenv("LONGPOLE_SHARED", raising=False)
    else:
        monkeypatch.setenv("LONGPOLE_SHARED", str(tmp_path / shared))

    done, record = run_bench(tmp_path, "--only", "corpus,help", stand_in="")

    assert done.returncode == 0
    assert len(record["left_out"]) == 1
    assert len(record["targets"]) == 1
