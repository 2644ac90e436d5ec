"""Recordings for verify: the table of scenarios, the order of recording, and what becomes of it. No PyTorch needed."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.predictions.knobs import Knobs
from benchmarks.verify.convert import MANIFEST, complete, write_manifest
from benchmarks.verify.record import N_ATTEMPTS, SEEN, list_pairs, needs_attempt, run_folder, summarise
from benchmarks.verify.scenarios import SIDES, Scenario, read_scenarios
from benchmarks.verify.setting import Setting, changed_values, parse_setting
from longpole.records.run_record import RecordUnit, RunRecord

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """
[[scenario]]
name = "loader"
says = "no loader"
verdict = "accepted"
part = "input"
pairs = 3
before = { loader_ms = 8 }
after = {}
"""


def scenario(tmp_path: Path, text: str = SCENARIO) -> Scenario:
    path = tmp_path / "scenarios.toml"
    path.write_text(text)
    return read_scenarios(path)[0]


def seen(**parts: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "scenario": "loader",
        "side": "before",
        "pair": 1,
        "place_in_pair": 2,
        "attempt": 1,
        "disturbed": False,
        "others_share": 0.02,
        "delay_share": 0.07,
        "realtime": True,
        "started": "2026-01-01T00:00:00+00:00",
        "seed": 0,
        "batch_per_rank": 16,
        "items_per_step": 32,
        "loss_per_step": [2.5, 2.25],
        "held_out_loss": 1.5,
        "peak_rss_bytes": 380_000_000,
        "dtype": "float32",
        "setting": {"loader_ms": [8, 8], "batch": 16},
        "machine": {"cores": 2, "processor": "a processor", "system": "Linux 6"},
        "versions": {"python": "3.11", "torch": "2.13"},
    }
    return values | parts


def record() -> RunRecord:
    return RunRecord("longpole.record/1", [RecordUnit(period_ns=1000)])


# --- the table ---------------------------------------------------------------------------------------------


def test_the_shipped_table_asks_for_every_kind_of_verdict() -> None:
    """Real improvements, a doubled batch among them; three that only move the wait; the same twice; and the rest."""
    scenarios = read_scenarios()

    verdicts = [one.verdict for one in scenarios]
    doubled = [one for one in scenarios if one.after.batch == 2 * one.before.batch]
    same = [one for one in scenarios if one.before == one.after]
    assert verdicts.count("accepted") >= 4
    assert verdicts.count("moved") >= 3
    assert "contract" in verdicts
    assert [one.verdict for one in doubled] == ["accepted"]
    assert doubled[0].without_items == "not_verifiable"
    assert [(one.verdict, one.few, one.pairs) for one in same] == [("no_effect", "inconclusive", 10)]
    assert any(one.limited == "limit" for one in scenarios)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("loader_ms = 8", "loader = 8", "loader: expected knobs of .* found 'loader'"),
        ("loader_ms = 8", "loader_ms = -8", "loader: loader_ms: expected milliseconds"),
        ("loader_ms = 8", "batch = 0", "loader: batch: expected a value like 16"),
        ("loader_ms = 8", "item_ms = -1", "loader: item_ms: expected a value like 0.0"),
        ("loader_ms = 8", "barrier = 1", "loader: barrier: expected a value like False"),
        ("loader_ms = 8", "fetch = 'soon'", "loader: fetch: expected a value like 'fresh'"),
        ("pairs = 3\n", "", "loader: expected the keys"),
        ("pairs = 3\n", "pairs = 3\npear = 1\n", "loader: expected the keys"),
    ],
)
def test_a_wrong_table_is_refused_by_name(tmp_path: Path, old: str, new: str, says: str) -> None:
    """The message names the scenario, and the knob."""
    with pytest.raises(ValueError, match=says):
        scenario(tmp_path, SCENARIO.replace(old, new))


def test_a_scenario_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """Its runs could not be told apart."""
    with pytest.raises(ValueError, match="expected every scenario once"):
        scenario(tmp_path, SCENARIO * 2)


def test_a_setting_has_the_knobs_of_the_predictions_and_its_own() -> None:
    """One number stands for both ranks; what is written down is what differs from the defaults."""
    setting = parse_setting({"loader_ms": 8, "batch": 32, "pace_ms": 60})

    assert setting == Setting(loader_ms=(8.0, 8.0), batch=32, pace_ms=60.0)
    assert changed_values(setting) == {"loader_ms": (8.0, 8.0), "batch": 32, "pace_ms": 60.0}
    assert set(vars(Knobs())) < set(vars(setting))


# --- the order of a recording ------------------------------------------------------------------------------


def test_rounds_are_shuffled_and_hold_one_pair_of_each_scenario() -> None:
    """A slow hour of the machine falls on all scenarios; the same seed gives the same order."""
    scenarios = read_scenarios()

    pairs = list_pairs(scenarios, None, seed=0)

    assert len(pairs) == sum(one.pairs for one in scenarios)
    first, second = ([one.name for one, number in pairs if number == wanted] for wanted in (1, 2))
    assert sorted(first) == sorted(one.name for one in scenarios)
    assert sorted(second) == sorted(first) != first != second
    assert [number for _, number in pairs] == sorted(number for _, number in pairs)
    assert list_pairs(scenarios, None, seed=0) == pairs
    assert len(list_pairs(scenarios, 2, seed=0)) == 2 * len(scenarios)


def test_a_pair_is_recorded_again_when_one_run_is_missing_or_was_disturbed(tmp_path: Path) -> None:
    """Whichever of the two: the runs of a pair belong together. After the last attempt it is left as it is."""
    wanted = scenario(tmp_path)

    def write(side: str, **parts: Any) -> None:
        folder = run_folder(tmp_path, wanted, side, 1)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SEEN).write_text(json.dumps(seen(side=side, **parts)))

    assert needs_attempt(tmp_path, wanted, 1) == 1
    write("before")
    assert needs_attempt(tmp_path, wanted, 1) == 1
    write("after", disturbed=True)
    assert needs_attempt(tmp_path, wanted, 1) == 2
    write("after", disturbed=True, attempt=N_ATTEMPTS)
    assert needs_attempt(tmp_path, wanted, 1) == 0
    write("after")
    assert needs_attempt(tmp_path, wanted, 1) == 0


def test_a_rank_that_waited_long_for_a_core_makes_the_run_a_disturbed_one(monkeypatch: Any) -> None:
    """Half of rank 1's two seconds. Of four core-seconds 2.5 were used, 1.5 by the ranks, so a quarter by others."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    rank = {"held_out_loss": 1.0, "dtype": "float32", "load": 0.1, "wall_s": 2.0, "machine_cpu_s": 2.5}
    ranks = [
        rank | {"own_cpu_s": 1.0, "delay_s": 0.01, "peak_rss_bytes": 5, "losses": [2.0, 1.0]},
        rank | {"own_cpu_s": 0.5, "delay_s": 1.0, "peak_rss_bytes": 7, "losses": [4.0, 2.0]},
    ]

    found = summarise(ranks)

    assert found["loss_per_step"] == [3.0, 1.5]
    assert found["peak_rss_bytes"] == 7
    assert (found["others_share"], found["delay_share"], found["disturbed"]) == (0.25, 0.5, True)
    assert not summarise(ranks[:1])["disturbed"]


# --- records -----------------------------------------------------------------------------------------------


def test_a_record_gets_what_a_trace_does_not_hold() -> None:
    """Batch, seed, memory and losses; the same losses give the same fingerprint, others another."""
    one, same, other = (
        complete(record(), seen(loss_per_step=losses), same_outputs=True)
        for losses in ([2.5, 2.25], [2.5, 2.25], [2.5, 2.0])
    )

    assert (one.contract.global_batch, one.contract.micro_batch, one.contract.seed) == (32, 16, 0)
    assert one.limits == {"peak_bytes": 380_000_000}
    assert one.configuration == {"loader_ms": (8.0, 8.0)}
    assert one.correctness.metrics[0].values == [1.5]
    assert one.correctness.outputs == same.correctness.outputs != other.correctness.outputs
    assert [check.status for check in one.correctness.checks] == ["passed"]


def test_losses_that_are_no_numbers_fail_their_check_and_another_batch_promises_no_loss_of_a_step() -> None:
    """A training that diverged is told; where the batch is the change, only the held-out loss is compared."""
    diverged = complete(record(), seen(loss_per_step=[2.5, float("nan")]), same_outputs=False)

    assert [check.status for check in diverged.correctness.checks] == ["failed"]
    assert diverged.correctness.outputs == {}


def test_the_manifest_can_be_read_and_names_the_disturbed_runs(tmp_path: Path) -> None:
    """It is TOML, whatever the texts hold; the verdicts are the table's."""
    text = SCENARIO.replace("no loader", 'no \\"loader\\" → memory') + 'few = "inconclusive"\n'
    wanted = scenario(tmp_path, text)
    runs = [seen(side=side, pair=n, attempt=n, disturbed=n == 2) for n in (1, 2) for side in SIDES]

    write_manifest([wanted], runs, tmp_path)

    found = tomllib.loads((tmp_path / MANIFEST).read_text(encoding="utf-8"))
    assert found["recorded"]["runs"] == 4
    assert found["recorded"]["runs_disturbed"] == found["recorded"]["runs_recorded_again"] == 2
    (entry,) = found["scenario"]
    assert entry["says"] == 'no "loader" → memory'
    assert (entry["verdict"], entry["few"], entry["pairs"]) == ("accepted", "inconclusive", 2)
    assert entry["disturbed"] == ["after-2", "before-2"]
    assert not re.search("limit|without", json.dumps(entry))
