"""Predictions against reality: the table of changes, the plan of a recording, and its manifest. No PyTorch needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.predictions.changes import list_configurations, read_pairs
from benchmarks.predictions.knobs import Knobs, name_knobs, parse_knobs
from benchmarks.predictions.manifest import (
    Manifest,
    ManifestError,
    Recorded,
    hash_meaning,
    read_manifest,
    require_same,
    write_manifest,
)
from benchmarks.predictions.record import N_ATTEMPTS, harvest, judge, plan_round
from longpole.whatif.change import FLAGS, parse_option
from longpole.whatif.pairs import kind_of

CHANGE = """
[[change]]
name = "loader"
kind = "scale:input"
says = "no loader"
whatif = ["--remove", "input"]
pair = [{ before = { loader_ms = 8 }, after = {} }]
"""


def manifest(**parts: Any) -> Manifest:
    values: dict[str, Any] = {
        "started": "2026-01-01T00:00:00+00:00",
        "machine": {"cores": 2},
        "versions": {"torch": "2"},
        "n_warmup": 3,
        "n_recorded": 12,
        "seed": 0,
        "changes_hash": "c",
        "rules_hashes": ["r"],
    }
    return Manifest(**{**values, **parts})


def recorded(configuration: str, number: int, **parts: Any) -> Recorded:
    values: dict[str, Any] = {"attempt": 1, "load": 0.1, "wall_s": 1.0, "others_share": 0.0, "disturbed": False}
    return Recorded(configuration=configuration, round=number, **{**values, **parts})


def seen(name: str, *, own_s: float, machine_s: float) -> dict[str, Any]:
    return {"name": name, "load": 0.5, "wall_s": 1.0, "own_cpu_s": own_s, "machine_cpu_s": machine_s}


# --- the table ---------------------------------------------------------------------------------------------


def test_the_shipped_table_is_large_enough_and_every_what_if_can_be_read() -> None:
    """At least 30 pairs over at least 10 changes of three sizes, each with options that the command knows."""
    pairs = read_pairs()

    changes = {pair.change for pair in pairs}
    assert len(changes) >= 10
    assert len(pairs) == 3 * len(changes) >= 30
    for pair in pairs:
        options = list(zip(pair.whatif[::2], pair.whatif[1::2], strict=True))
        assert not set(pair.whatif) & set(FLAGS)
        assert pair.kind == kind_of([parse_option(option, value) for option, value in options])


def test_configurations_have_names_of_their_own_and_shared_ones_are_recorded_once() -> None:
    """A target of several changes is one configuration, recorded as often as a target needs."""
    pairs = read_pairs()

    found = list_configurations(pairs, n_before=3, n_after=5)

    every = {knobs for pair in pairs for knobs in (pair.before, pair.after)}
    assert len(found) == len(every) < 2 * len(pairs)
    assert found["plain"] == (Knobs(), 5)
    assert found["loader8"] == (parse_knobs({"loader_ms": [8, 8]}), 5)  # what save_of_two leads to
    assert found["pause0-8"][1] == 3
    assert all(Path(name).name == name for name in found)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("loader_ms = 8", "loader = 8", "loader.1: expected knobs of .* found 'loader'"),
        ("loader_ms = 8", "loader_ms = -8", "loader.1: loader_ms: expected milliseconds"),
        ("loader_ms = 8", "workers = 1.5", "loader.1: workers: expected a value like 0"),
        ("loader_ms = 8", "gather = 'soon'", "loader.1: gather: expected a value like 'none'"),
        ("{ loader_ms = 8 }", "{}", "loader.1: expected a what-if, and an `after` that differs"),
        ('says = "no loader"\n', "", "loader: expected the keys"),
    ],
)
def test_a_wrong_table_is_refused_by_name(tmp_path: Path, old: str, new: str, says: str) -> None:
    """The message names the pair, and the knob."""
    path = tmp_path / "changes.toml"
    path.write_text(CHANGE.replace(old, new))

    with pytest.raises(ValueError, match=says):
        read_pairs(path)


def test_a_change_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """Its pairs could not be told apart."""
    path = tmp_path / "changes.toml"
    path.write_text(CHANGE * 2)

    with pytest.raises(ValueError, match="expected every change once"):
        read_pairs(path)


def test_ranks_may_differ_in_a_name() -> None:
    """Both values are in it where they differ."""
    assert name_knobs(parse_knobs({"save_ms": [8, 0], "save_in_thread": True})) == "save8-0_save-in-thread"


# --- the plan ----------------------------------------------------------------------------------------------


def test_a_round_records_what_is_missing_and_repeats_what_was_disturbed() -> None:
    """What is settled stays out, what has no attempts left too; rounds have orders of their own."""
    configurations = {name: (Knobs(), 5 if name == "target" else 3) for name in ("target", "a", "b", "c", "d")}
    there = manifest(
        recorded=[
            recorded("a", 1),
            recorded("b", 1, disturbed=True),
            recorded("c", 1, disturbed=True, attempt=N_ATTEMPTS),
            recorded("d", 2),
        ]
    )

    first = {name for name, _ in plan_round(configurations, there, 1, 0)}
    last = [name for name, _ in plan_round(configurations, there, 5, 0)]

    assert first == {"target", "b", "d"}
    assert last == ["target"]
    orders = {tuple(name for name, _ in plan_round(configurations, manifest(), 1, seed)) for seed in range(20)}
    assert len(orders) > 1


def test_other_programs_are_what_the_machine_did_less_what_both_ranks_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.4 s of 2 core-seconds are 20 %, which disturbs; 0.1 s are 5 %, which do not."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    noisy = judge([seen("a", own_s=0.3, machine_s=1.0), seen("a", own_s=0.3, machine_s=9.9)], 2, 1)
    quiet = judge([seen("a", own_s=0.3, machine_s=0.7), seen("a", own_s=0.3, machine_s=9.9)], 2, 1)

    assert (noisy.others_share, noisy.disturbed) == (0.2, True)
    assert (quiet.others_share, quiet.disturbed) == (0.05, False)


def test_only_what_both_ranks_finished_is_kept(tmp_path: Path) -> None:
    """A rank that died in the second configuration leaves one recording, and a half-written line does no harm."""
    line = '{"name": "%s", "load": 0.1, "wall_s": 1.0, "own_cpu_s": 0.1, "machine_cpu_s": 0.2}\n'
    (tmp_path / "done-0.jsonl").write_text(line % "a" + line % "b")
    (tmp_path / "done-1.jsonl").write_text(line % "a" + '{"name": "b", "lo')
    there = manifest(recorded=[recorded("a", 1, disturbed=True)])

    count = harvest(tmp_path, 1, there)

    assert count == 1
    assert [(one.configuration, one.attempt, one.disturbed) for one in there.recorded] == [("a", 2, False)]


# --- the manifest ------------------------------------------------------------------------------------------


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    """And recordings of a configuration come by round."""
    there = manifest(recorded=[recorded("a", 2), recorded("a", 1), recorded("b", 1)])
    write_manifest(there, tmp_path)

    again = read_manifest(tmp_path)

    assert again == there
    assert [one.folder for one in again.find("a")] == ["runs/a/1", "runs/a/2"]
    assert read_manifest(tmp_path / "elsewhere") is None


def test_a_damaged_manifest_is_an_error(tmp_path: Path) -> None:
    """Not an empty folder, which would be recorded over."""
    (tmp_path / "manifest.json").write_text('{"started": 1}')

    with pytest.raises(ManifestError, match="expected a manifest"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("part", [{"changes_hash": "d"}, {"versions": {"torch": "3"}}, {"n_recorded": 10}])
def test_recordings_that_do_not_compare_are_not_mixed(part: dict[str, Any]) -> None:
    """Another table, another PyTorch, other steps: another folder."""
    with pytest.raises(ManifestError, match=next(iter(part))):
        require_same(manifest(), manifest(**part))

    require_same(manifest(), manifest(started="later", rules_hashes=["other"]))


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("rules.py", '"""Other words."""\ndef f(x):\n    """Say."""\n    return (x + 1)  # more\n', True),
        ("rules.py", "def f(x):\n    return x + 2\n", False),
        ("names.toml", "a=1 # one\n", True),
        ("names.toml", "a = 2\n", False),
    ],
)
def test_a_digest_heeds_what_files_say_not_how(tmp_path: Path, name: str, text: str, same: bool) -> None:
    """Comments, docstrings and layout may change; what is done and listed may not."""
    files = [tmp_path / "rules.py", tmp_path / "names.toml"]
    files[0].write_text('"""Words."""\n\ndef f(x):\n    return x + 1\n')
    files[1].write_text("a = 1\n")
    before = hash_meaning(files, tmp_path)

    (tmp_path / name).write_text(text)

    assert (hash_meaning(files[::-1], tmp_path) == before) is same
