"""Predictions against reality: evaluating a folder of recordings with a stand-in for the command."""

from __future__ import annotations

import json
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.predictions import evaluate
from benchmarks.predictions.changes import list_configurations, read_pairs
from benchmarks.predictions.manifest import (
    Manifest,
    Recorded,
    hash_changes,
    hash_rules,
    read_manifest,
    write_manifest,
)

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.predictions.scoring import Outcome

CHANGES = "^(loader_removed|host_pause)$"
# Periods: 20 ms, and what is slept on the slowest rank. It refuses to equalise, fails on 32 ms, and is 1 ms too fast.
STAND_IN = """
import json, pathlib, re, sys
command, path = sys.argv[1:3]
slept = [int(n) for n in re.findall(r"\\d+", pathlib.Path(path).parent.name)]
period_ns = (20 + max(slept, default=0)) * 10**6
if command == "report":
    print(json.dumps({"unit": {"period_ns": {"median": period_ns}}}))
elif 32 in slept and "--remove" in sys.argv:
    sys.exit("internal: the graph has a hole")
else:
    print(json.dumps({
        "predicted_period_ns": 19 * 10**6,
        "saving_ns": period_ns - 19 * 10**6,
        "replay": {"error_of_median": 0.002},
        "what_if_error": {"kind_of_change": "scale", "pairs": 3, "p90_share": 0.05},
        "refused": {"why": "ranks do not match", "missing": []} if "--equalise" in sys.argv else None,
    }))
"""


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Make a folder whose manifest holds everything that two changes need."""
    pairs = [pair for pair in read_pairs() if pair.change in ("loader_removed", "host_pause")]
    configurations = list_configurations(pairs, n_before=2, n_after=3)
    folder = tmp_path / "recordings"
    folder.mkdir()
    recorded = [
        Recorded(configuration=name, round=number, attempt=1, load=0.1, wall_s=1.0, others_share=0.0, disturbed=False)
        for name, (_, times) in configurations.items()
        for number in range(1, times + 1)
    ]
    manifest = Manifest(
        started="2026-01-01T00:00:00+00:00",
        machine={"cores": 2, "processor": 'A "fast" one', "system": "Linux 6"},
        versions={"python": "3.11", "torch": "2.13"},
        n_warmup=3,
        n_recorded=12,
        seed=0,
        changes_hash=hash_changes(),
        rules_hashes=[hash_rules()],
        recorded=recorded,
    )
    write_manifest(manifest, folder)
    return folder


@pytest.fixture
def command(tmp_path: Path) -> str:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    return f"{sys.executable} {script}"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let everything be written into a folder of the test."""
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- figures: written by evaluate -->\n<!-- end of figures -->\n\nAfter.\n")
    for name, path in (
        ("ROOT", tmp_path),
        ("PAGE", page),
        ("RESULT", tmp_path / "pairs.json"),
        ("SHIPPED", tmp_path / "pairs.toml"),
    ):
        monkeypatch.setattr(evaluate, name, path)
    return tmp_path


def test_a_part_is_shown_and_not_written(
    recordings: Path, command: str, places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Predictions, a refusal and a failure each end up in their tables."""
    code = evaluate.main([str(recordings), "--longpole", command, "--only", CHANGES, "--first"])

    shown = capsys.readouterr().out
    assert code == 0
    assert "| `loader_removed.1` | 28.0 | 20.0 | 0.0 % | 19.0 | −5.0 % | 8.0 | 9.0 | 12.5 % | 0.2 % |" in shown
    assert "| `host_pause.2` | 1 | refused: ranks do not match |" in shown
    assert "| `loader_removed.3` | 1 | failed: exit code 1: internal: the graph has a hole |" in shown
    assert "| predictions / asked for |  | 2 / 6 | 2 / 6 |" in shown
    assert "foretells no change loses" in shown
    assert not (places / "pairs.toml").exists()


def test_everything_is_written(recordings: Path, command: str, places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page keeps what stands around the tables; pairs without a prediction are not shipped."""
    chosen = tuple(pair for pair in read_pairs() if pair.change in ("loader_removed", "host_pause"))
    monkeypatch.setattr(evaluate, "read_pairs", lambda: chosen)

    assert evaluate.main([str(recordings), "--longpole", command]) == 0

    page = (places / "page.md").read_text()
    assert page.startswith("# Page\n")
    assert page.endswith("<!-- end of figures -->\n\nAfter.\n")
    assert "6 pairs over 2 changes, 12 predictions" in page
    assert "stood before the recording began" in page
    result = json.loads((places / "pairs.json").read_text())
    assert result["summary"]["recordings"]["answered"] == 4
    assert result["outcomes"][0]["target_ns"] == 20_000_000
    shipped = tomllib.loads((places / "pairs.toml").read_text())
    assert shipped["recorded"] == result["recorded"]
    assert [row["name"] for row in shipped["pair"]] == ["loader_removed.1", "loader_removed.2"]
    assert shipped["pair"][0] == {
        "name": "loader_removed.1",
        "kind": "scale:input",
        "device": "cpu-gloo",
        "before_ns": 28_000_000,
        "predicted_ns": 19_000_000,
        "measured_ns": 20_000_000,
    }


def intervals(outcomes: list[Outcome]) -> list[Any]:
    return [one.answer.interval_ns for one in outcomes]


def test_intervals_of_the_same_pairs_do_not_count(recordings: Path, command: str) -> None:
    """They hold by construction; those of an earlier recording count."""
    manifest = read_manifest(recordings)
    assert manifest is not None
    args = evaluate.build_parser().parse_args(["--first"])
    pairs = [pair for pair in read_pairs() if pair.name == "loader_removed.1"]
    outcomes = evaluate.evaluate(
        evaluate.Longpole(tuple(command.split()), recordings), recordings, pairs, manifest, args
    )

    earlier = evaluate.drop_own_intervals(outcomes, manifest, 'recorded = "2025-01-01T00:00:00+00:00"')
    own = evaluate.drop_own_intervals(outcomes, manifest, f'recorded = "{manifest.started}"')

    assert intervals(earlier) == [(18_095_238, 20_000_000)]
    assert intervals(own) == [None]


def test_rules_that_changed_since_are_said_to_have(recordings: Path) -> None:
    """A figure from rules that were made after the recording is no test of them."""
    manifest = read_manifest(recordings)
    assert manifest is not None

    assert "no test of them" in evaluate.say_rules(manifest, "another")
    manifest.rules_hashes.append("another")
    assert "no test of them" in evaluate.say_rules(manifest, hash_rules())


def test_recordings_of_another_table_are_refused(
    tmp_path: Path, recordings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So is a folder without recordings."""
    manifest = read_manifest(recordings)
    assert manifest is not None
    manifest.changes_hash = "another"
    write_manifest(manifest, recordings)

    assert evaluate.main([str(recordings)]) == 3
    assert evaluate.main([str(tmp_path)]) == 3
    said = capsys.readouterr().err
    assert "another table" in said
    assert "none there" in said
