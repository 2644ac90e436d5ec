"""Gates from end to end: commands whose samples are written down, records as files, looks, and the next command."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.bench.gate.asked import Asked
from longpole.errors import InputError, UsageError
from longpole.pipeline.gate import GateOptions, Run, gate_commands, gate_records, parse_command
from longpole.records.run_record_file import decode_record, encode_record
from longpole.records.strict_json import encode_document
from longpole.report.gate import Gate
from longpole.report.schema_of import written_type
from tests.gate_runs import Bench, pair, record

if TYPE_CHECKING:
    from pathlib import Path

# A program that takes no time, and says that it took as long as it was told, with 1 % of noise that is always the same.
FAKE = """
import json, os, random, sys
scale, seed = float(sys.argv[1]), sys.argv[2]
folder = os.environ["LONGPOLE_RECORD"]
place = len(os.listdir(os.path.dirname(__file__)))
rng = random.Random(f"{seed} {place}")
open(os.path.join(os.path.dirname(__file__), f"run{place}"), "w").close()
lines = [{"k": "header", "schema": "longpole.spans/1", "clock_ns": 0, "epoch_ns": 0, "pid": 1, "main_thread": 1}]
now = 0
for step in range(8):
    took = round(1e7 * scale * (1 + rng.gauss(0, 0.01)))
    lines.append({"k": "span", "n": "forward", "s": now, "d": took, "t": 1, "stage": "forward"})
    lines.append({"k": "unit", "n": f"step {step}", "s": now, "d": took, "t": 1})
    now += took
with open(os.path.join(folder, "fake.spans.jsonl"), "w") as file:
    file.write("".join(json.dumps(line) + chr(10) for line in lines))
"""
FIVE = Run(pairs=5, max_pairs=5)


def fake(folder: Path, scale: float) -> str:
    program = folder / "step" / "fake.py"
    program.parent.mkdir(exist_ok=True)
    program.write_text(FAKE)
    return shlex.join([sys.executable, "-I", "-S", str(program), str(scale), "7"])


def test_a_command_against_itself_is_not_regressed(tmp_path: Path) -> None:
    gate = gate_commands(fake(tmp_path, 1.0), fake(tmp_path, 1.0), GateOptions(run=FIVE))

    assert gate.verdict in ("same", "inconclusive")
    assert gate.design == "paired"
    assert gate.figures[0].n == 5


def test_a_fifth_more_is_found_named_and_kept(tmp_path: Path) -> None:
    run = Run(pairs=5, max_pairs=20, records=tmp_path / "kept")
    looked = []

    gate = gate_commands(
        fake(tmp_path, 1.0),
        fake(tmp_path, 1.2),
        GateOptions(run=run),
        on_look=lambda look, _: looked.append(look.pairs),
    )

    assert (gate.verdict, gate.exit_code, gate.explains) == ("regressed", 1, "forward")
    assert looked == [5]  # settled at the first look, so no more pairs were made
    assert gate.looks[0].tail_share == pytest.approx(0.01)
    kept = tmp_path / "kept" / "a.json"
    assert gate.next == shlex.join(["longpole", "bench", "compare", str(kept), str(tmp_path / "kept" / "b.json")])
    again = gate_records(str(kept), [str(tmp_path / "kept" / "b.json")], GateOptions())
    assert (again.verdict, again.design, again.figures[0].n) == ("regressed", "paired", 5)


def test_a_command_that_fails_is_invalid_and_its_samples_are_kept(tmp_path: Path) -> None:
    run = Run(pairs=5, max_pairs=5, records=tmp_path / "kept")
    fails = shlex.join([sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"])

    gate = gate_commands(fake(tmp_path, 1.0), fails, GateOptions(run=run))

    assert (gate.verdict, gate.exit_code) == ("invalid", 6)
    assert "exit code 3" in gate.says
    assert gate.next == fails
    assert decode_record((tmp_path / "kept" / "a.json").read_bytes(), "a").counted() == []


def test_time_that_runs_out_before_five_pairs_is_invalid(tmp_path: Path) -> None:
    gate = gate_commands(
        fake(tmp_path, 1.0), fake(tmp_path, 1.0), GateOptions(run=Run(pairs=5, max_pairs=5, budget_s=0.001))
    )

    assert gate.verdict == "invalid"


def test_variables_before_a_command_are_set_for_it() -> None:
    command = parse_command("--a", "OMP_NUM_THREADS=2 python train.py --lr=0.1", Run())

    assert (command.env, list(command.argv)) == ({"OMP_NUM_THREADS": "2"}, ["python", "train.py", "--lr=0.1"])


@pytest.mark.parametrize("text", ["", "A=1", "python 'x"])
def test_what_is_no_command_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--b"):
        parse_command("--b", text, Run())


def test_credentials_of_a_command_reach_no_document(tmp_path: Path) -> None:
    command = fake(tmp_path, 1.0) + " --api-key=sk-verysecretvalue123456"

    gate = gate_commands(command, command, GateOptions(run=Run(pairs=5, max_pairs=5, budget_s=0.001)))

    assert b"verysecret" not in encode_document(gate)


def written(folder: Path, base: Bench, new: Bench) -> tuple[str, str]:
    paths = folder / "a.json", folder / "b.json"
    for path, made in zip(paths, pair(base, new), strict=True):
        path.write_bytes(encode_record(made))
    return str(paths[0]), str(paths[1])


def test_the_document_keeps_its_schema(tmp_path: Path) -> None:
    base, new = written(tmp_path, Bench(), Bench(stages=Bench().scaled(forward=1.3)))

    data = encode_document(gate_records(base, [new], GateOptions()))

    assert msgspec.to_builtins(msgspec.json.decode(data, type=written_type(Gate)))["schema"] == "longpole.gate/1"
    assert {entry["at"] for entry in json.loads(data)["unknown"]} >= {"/figures/0/pairs_needed"}


@pytest.mark.parametrize(("how", "code"), [("neutral", 5), ("fail", 1), ("pass", 0)])
def test_an_inconclusive_answer_counts_as_was_asked(tmp_path: Path, how: str, code: int) -> None:
    noisy = Bench(noise=0.1)
    base, new = written(tmp_path, noisy, noisy)

    gate = gate_records(base, [new], GateOptions(inconclusive=how))

    assert (gate.verdict, gate.exit_code) == ("inconclusive", code)
    assert gate.next.startswith("longpole bench gate --a")


def test_a_folder_of_records_is_one_side(tmp_path: Path) -> None:
    folder = tmp_path / "nightly"
    folder.mkdir()
    for place in range(6):
        made = record(Bench(), f"n{place}", processes=1, seed=place)
        made.processes = []
        (folder / f"{place}.json").write_bytes(encode_record(made))
    new = tmp_path / "new.json"
    new.write_bytes(encode_record(record(Bench(), "new", processes=6, seed=50)))

    gate = gate_records(str(folder), [str(new)], GateOptions(asked=Asked(threshold=0.05)))

    assert (gate.verdict, gate.design, gate.base.processes) == ("same", "unpaired", 6)


def test_sides_with_several_benchmarks_ask_which_one(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("first", "second"):
        made = record(Bench(), name)
        assert made.design is not None
        made.design.benchmark = name
        (folder / f"{name}.json").write_bytes(encode_record(made))

    with pytest.raises(UsageError, match="--benchmark"):
        gate_records(str(folder), [str(folder)], GateOptions())
    assert gate_records(str(folder), [str(folder)], GateOptions(benchmark="first")).benchmark == "first"


def test_a_record_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"schema": "longpole.record/9", "units": []}')

    with pytest.raises(InputError, match="record/9"):
        gate_records(str(path), [str(path)], GateOptions())
