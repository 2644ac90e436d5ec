"""Turn recordings into small run records with what a contract needs, and a manifest of the verdicts that must come.

    python -m benchmarks.verify.convert --recordings ../recordings-verify     # writes tests/verify_records

The figures are those of `longpole report --record`; what a trace does not hold (batch, losses, peak memory, seed, which
run was the other of a pair) is added from what the recorder wrote beside the traces.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.predictions.knobs import N_RANKS
from benchmarks.verify.record import N_RECORDED, N_WARMUP, RECORDINGS, read_seen
from benchmarks.verify.scenarios import OTHER_VERDICTS, SIDES, Scenario, read_scenarios
from benchmarks.verify.setting import changed_values, parse_setting
from longpole.records.run_record import RecordCheck, RecordContract, RecordCorrectness, RecordMetric, RunRecord
from longpole.records.run_record_file import decode_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RECORDS = Path(__file__).resolve().parents[2] / "tests" / "verify_records"
MANIFEST = "manifest.toml"
HELD_OUT_TOLERANCE = 0.02  # of the loss before: runs of one setting do not differ at all
LOSS_DIGITS = 9


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="what `record` wrote")
    parser.add_argument("--out", type=Path, default=RECORDS, help="takes the records (tests/verify_records)")
    return parser


def read_run(recordings: Path, run: str, seen: Mapping[str, Any]) -> RunRecord:
    """Let the program itself make a record of a run's traces.

    Args:
        recordings: the folder of all.
        run: folder of the run in it; the record's paths start there.
        seen: what the recorder wrote.

    Returns:
        The record, as `longpole report --record` writes it.
    """
    with tempfile.TemporaryDirectory(prefix="verify-") as name:
        file = Path(name) / "record.json"
        command = [sys.executable, "-m", "longpole", "report", run, "--no-cache", "--record", str(file)]
        command += ["--items", f"{seen['items_per_step']}:sample", "--label", run.replace("/", " ")]
        subprocess.run(command, cwd=recordings, check=True, stdout=subprocess.DEVNULL)
        return decode_record(file.read_bytes(), run)


def complete(record: RunRecord, seen: Mapping[str, Any], *, same_outputs: bool) -> RunRecord:
    """Add what a trace does not hold.

    Args:
        record: of the traces; changed.
        seen: what the recorder wrote.
        same_outputs: the losses step by step are promised to stay what they were, not only the held-out loss.

    Returns:
        The record.
    """
    losses = [round(loss, LOSS_DIGITS) for loss in seen["loss_per_step"]]
    fingerprint = hashlib.blake2b(json.dumps(losses).encode(), digest_size=10).hexdigest()
    held_out = round(seen["held_out_loss"], LOSS_DIGITS)
    record.kind = "training"
    record.contract = RecordContract(
        global_batch=seen["items_per_step"],
        micro_batch=seen["batch_per_rank"],
        dtype=seen["dtype"],
        seed=seen["seed"],
        sampler="in order",
        layout={"data": N_RANKS},
        shapes=record.contract.shapes,
        elements_per_unit=record.contract.elements_per_unit,
        input_bytes_per_unit=record.contract.input_bytes_per_unit,
    )
    record.correctness = RecordCorrectness(
        checks=[RecordCheck("losses are finite numbers", "passed" if all(map(_is_finite, losses)) else "failed")],
        metrics=[RecordMetric("held_out_loss", [held_out], "lower", HELD_OUT_TOLERANCE, relative=True)],
        outputs={"loss_per_step": fingerprint} if same_outputs else {},
    )
    record.limits = {"peak_bytes": seen["peak_rss_bytes"]}
    record.configuration = changed_values(parse_setting(seen["setting"]))
    record.environment.must_match |= {name: seen["machine"][name] for name in ("processor", "cores")}
    record.environment.must_match |= {"torch": seen["versions"]["torch"], "python": seen["versions"]["python"]}
    record.environment.informational = {"started": seen["started"], "system": seen["machine"]["system"]}
    for row in record.rows:
        row.host = ""  # names of machines stay where they are
    record.extra = {name: seen[name] for name in ("pair", "place_in_pair", "attempt", "others_share", "delay_share")}
    record.extra["loss_per_step"] = losses
    return record


def _is_finite(value: float) -> bool:
    return value - value == 0


def convert_scenario(scenario: Scenario, recordings: Path, out: Path) -> list[dict[str, Any]]:
    """Write the records of one scenario: of all its pairs of which both runs are there.

    Args:
        scenario: which.
        recordings: the folder of all recordings.
        out: the folder of all records.

    Returns:
        What was seen of each run.
    """
    all_seen = []
    place = out / scenario.name
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.json"):
        old.unlink()
    for number in range(1, scenario.pairs + 1):
        pair = [(side, read_seen(recordings / scenario.name / f"{side}-{number}")) for side in SIDES]
        for side, seen in pair:
            if seen is None or any(other is None for _, other in pair):
                continue
            record = read_run(recordings, f"{scenario.name}/{side}-{number}", seen)
            record = complete(record, seen, same_outputs=scenario.same_outputs)
            (place / f"{side}-{number}.json").write_bytes(msgspec.json.encode(record) + b"\n")
            all_seen.append(seen)
    return all_seen


def write_manifest(scenarios: Sequence[Scenario], seen: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write what was recorded on what, and the verdicts that must come.

    Args:
        scenarios: the converted ones.
        seen: of each run.
        out: the folder of the records.
    """
    first, starts = seen[0], [one["started"] for one in seen]
    about: dict[str, Any] = {
        "machine": f"{first['machine']['cores']} cores, {first['machine']['processor']}",
        "system": first["machine"]["system"],
        "pytorch": first["versions"]["torch"],
        "python": first["versions"]["python"],
        "recorded_from": min(starts),
        "recorded_to": max(starts),
        "ranks": N_RANKS,
        "steps_before_recording": N_WARMUP,
        "steps_recorded": N_RECORDED,
        "realtime": first["realtime"],
        "runs": len(seen),
        "runs_recorded_again": sum(one["attempt"] > 1 for one in seen),
        "runs_disturbed": sum(one["disturbed"] for one in seen),
    }
    lines = ["# Written by benchmarks.verify.convert; the verdicts are those of benchmarks/verify/scenarios.toml."]
    lines += ["", "[recorded]", *_lines(about)]
    for one in scenarios:
        lines += ["", "[[scenario]]", *_lines(_say(one, [run for run in seen if run["scenario"] == one.name]))]
    (out / MANIFEST).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _say(scenario: Scenario, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a scenario's entry of the manifest; what is empty is left out."""
    said = {name: getattr(scenario, name) for name in ("name", "says", "part", "verdict", *OTHER_VERDICTS)}
    said = {name: value for name, value in said.items() if value}
    said["pairs"] = len({run["pair"] for run in runs})
    return said | {"disturbed": sorted(f"{run['side']}-{run['pair']}" for run in runs if run["disturbed"])}


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items()]  # as TOML has it


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert everything; 0."""
    args = build_parser().parse_args(arguments)
    scenarios, seen = read_scenarios(), []
    for scenario in scenarios:
        seen += convert_scenario(scenario, args.recordings, args.out)
    write_manifest(scenarios, seen, args.out)
    sizes = [file.stat().st_size for file in args.out.rglob("*.json")]
    print(f"{len(sizes)} records, {sum(sizes) / 1e6:.2f} MB in all, the largest {max(sizes) / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
