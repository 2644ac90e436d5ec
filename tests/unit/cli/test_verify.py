"""`longpole verify` as it is typed: exit codes, documents, pages, and what it says of wrong input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import longpole
from longpole.cli.main import main
from longpole.records.strict_json import encode_document
from longpole.report.verify import Verify
from tests.scaling_runs import write_run
from tests.verify_runs import HEALTHY, Job
from tests.verify_samples import write_records

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB = Job()
FASTER = Job(parts={**HEALTHY, "input": 9})
MOVED = Job(parts={**HEALTHY, "input": 9, "collective": 46})


def sides(folder: Path, before: Job, after: Job, runs: int) -> list[str]:
    """The arguments that name both sides."""
    one = write_records(folder, before.runs(runs, 1), "before")
    other = write_records(folder, after.runs(runs, 2), "after")
    return [word for path in one for word in ("--before", path)] + [
        word for path in other for word in ("--after", path)
    ]


def run(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["verify", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("after", "runs", "code", "verdict"),
    [
        (FASTER, 4, 0, "accepted"),
        (MOVED, 4, 1, "rejected"),
        (JOB, 1, 5, "inconclusive"),
        (replace(FASTER, items=None), 4, 6, "not verifiable"),
    ],
)
def test_the_exit_code_is_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], after: Job, runs: int, code: int, verdict: str
) -> None:
    found, out, _ = run([*sides(tmp_path, JOB, after, runs), "--part", "input", "--json", "-"], capsys)
    document = json.loads(out)
    assert (found, document["verdict"]) == (code, verdict)
    assert document["schema"] == "longpole.verify/1"
    assert {"reason", "effect", "part", "limits", "differences", "predicted", "needs"} <= document.keys()


def test_the_effect_has_estimate_interval_statistic_and_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run([*sides(tmp_path, JOB, FASTER, 3), "--json", "-"], capsys)
    effect = json.loads(out)["effect"]
    assert effect["interval"][0] < effect["estimate"] < effect["interval"][1] < 0
    assert effect["statistic"] == "median time per item"
    assert effect["runs"] == {"before": 3, "after": 3}
    assert effect["single_run"] is False


def test_two_paths_are_one_run_a_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = sides(tmp_path, JOB, MOVED, 1)
    code, out, _ = run([words[1], words[3], "--part", "input", "--color", "never"], capsys)
    assert code == 1
    assert "the wait moved to communication" in " ".join(out.split())
    assert "single run" in out


def test_a_document_is_what_its_schema_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "verdict.json"
    words = sides(tmp_path, JOB, FASTER, 3)
    run([*words, "--limit", "peak_bytes<=1e9", "--json", str(file), "-q"], capsys)
    assert main(["schema", "verify"]) == 0
    schema = json.loads(capsys.readouterr().out)
    document = json.loads(file.read_bytes())
    parts = schema["$defs"]
    assert set(document) <= set(parts["Verify"]["properties"])
    assert set(parts["Verify"]["required"]) <= set(document)
    assert set(document["effect"]) <= set(parts["Effect"]["properties"])
    assert any(entry["at"].startswith("/limits/0") for entry in document["unknown"])


def test_traces_are_read_into_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Idle time in Python falls from 60 to 10 µs of each step."""
    paths = [
        word
        for side, idle in (("before", 60), ("after", 10))
        for place in range(2)
        for word in (f"--{side}", str(write_run(tmp_path / f"{side}{place}", 2, idle_us=idle + place)))
    ]
    code, out, _ = run([*paths, "--part", "host", "--no-cache", "--json", "-"], capsys)
    document = json.loads(out)
    assert (code, document["verdict"]) == (0, "accepted")
    assert document["part"]["shrank"] == "yes"
    assert [run["label"] for run in document["before"]] == ["before0", "before1"]
    assert all(len(source["blake2b"]) == 40 for run in document["before"] for source in run["sources"])


def test_records_of_traces_give_the_same_verdict_as_the_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [write_run(tmp_path / name, 1, idle_us=idle) for name, idle in (("a", 60), ("b", 10))]
    files = []
    for folder in folders:
        files.append(str(folder) + ".json")
        assert main(["report", str(folder), "-q", "--no-cache", "--record", files[-1]]) == 0
    documents = []
    for paths in (map(str, folders), files):
        _, out, _ = run([*paths, "--no-cache", "--json", "-"], capsys)
        documents.append(json.loads(out))
    for key in ("verdict", "effect", "part", "moved", "differences"):
        assert documents[0][key] == documents[1][key]


def test_a_prediction_stands_beside_what_came(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was changed, so that the promise of `whatif` is missed."""
    run_folder = str(root / "examples" / "loader-bound")
    assert main(["whatif", run_folder, "--remove", "input", "--no-cache", "--json", "-"]) == 0
    promised = json.loads(capsys.readouterr().out)
    _, out, _ = run([run_folder, run_folder, "--change", "remove input", "--no-cache", "--json", "-"], capsys)
    document = json.loads(out)
    predicted = document["predicted"]
    share = promised["predicted_period_ns"] / promised["replayed_period_ns"] - 1
    assert predicted["changes"] == ["--set input=0"]
    assert predicted["predicted"] == pytest.approx(share)
    assert predicted["missed"]
    assert any(entry["key"] == "run_id" for entry in document["differences"])


def test_a_record_has_no_prediction_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*sides(tmp_path, JOB, FASTER, 3), "--candidate", "input.prefetch", "--json", "-"]
    code, out, _ = run(words, capsys)
    document = json.loads(out)
    assert code == 0
    assert document["candidate"] == "input.prefetch"
    assert document["part"]["chosen"] == "candidate"
    assert "needs traces" in document["predicted"]["predicted"]["unknown"]


def test_items_may_be_declared_where_records_lack_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = replace(JOB, items=None)
    words = sides(tmp_path, bare, replace(bare, parts={"compute": 170, "input": 30}), 4)
    code, out, _ = run([*words, "--items", "before=32", "--items", "after=64:sample", "--json", "-"], capsys)
    assert code == 0
    assert json.loads(out)["effect"]["estimate"] == pytest.approx(200 / 240 - 1, abs=0.02)


def test_a_pattern_of_records_is_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides(tmp_path, JOB, FASTER, 4)
    words = ["--before", str(tmp_path / "before*.json"), "--after", str(tmp_path / "after*.json"), "--json", "-"]
    code, out, _ = run(words, capsys)
    assert code == 0
    assert json.loads(out)["effect"]["runs"] == {"before": 4, "after": 4}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], "found no --before and --after"),
        (["a.json"], "found one path"),
        (["a.json", "b.json", "c.json"], "found 3 paths"),
        (["a.json", "b.json", "--before", "c.json"], "found both"),
        (["--before", "a.json"], "found no --after"),
        (["a.json", "b.json", "--paired"], "at least two pairs"),
        (["a.json", "b.json", "--threshold", "3"], "--threshold: expected a percentage"),
        (["a.json", "b.json", "--threshold", "0%"], "--threshold: expected a percentage"),
        (["a.json", "b.json", "--part", "inptu"], "--part inptu: expected an object"),
        (["a.json", "b.json", "--part", "idle:sleep"], "idle reasons"),
        (["a.json", "b.json", "--limit", "p99"], "--limit 'p99'"),
        (["a.json", "b.json", "--items", "many"], "--items: expected N or N:KIND"),
        (["a.json", "b.json", "--items", "3", "--items", "before=4"], "given twice"),
        (["a.json", "b.json", "--statistic", "min"], "--statistic: expected one of auto, median, mean"),
        (["a.json", "b.json", "--candidate", "input.prefetsh"], "close to it: input.prefetch"),
        (["a.json", "b.json", "--change", "faster"], "expected one of --set"),
        (["a.json", "b.json", "--metric", "none.json"], "--metric none.json: cannot be read"),
        (["none/", "b.json"], "before: none/: there is no such file"),
    ],
)
def test_a_wrong_call_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], found: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, job in (("a", JOB), ("b", FASTER)):
        write_records(tmp_path, job.runs(1, 1), name)
        Path(f"{name}1.json").rename(f"{name}.json")
    code, _, err = run(words, capsys)
    assert code == 2
    assert found in " ".join(err.split())


def test_unequal_numbers_of_runs_are_no_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run([*sides(tmp_path, JOB, FASTER, 3)[2:], "--paired"], capsys)
    assert code == 2
    assert "found 2 and 3" in err


def test_a_damaged_record_names_file_and_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_records(tmp_path, JOB.runs(1, 1), "good")[0]
    bad = tmp_path / "bad.json"
    bad.write_text(Path(good).read_text().replace('"period_ns": ', '"period_ns": "x', 1).replace(",", '",', 1))
    for text, field in (
        ('{"schema": "longpole.record/1", "units": [{"period_ns": "x"}]}', "$.units[0].period_ns"),
        ('{"schema": "longpole.record/9", "units": []}', "$.schema"),
        ('{"schema": "longpole.record/1", "uni', "$"),
    ):
        bad.write_text(text)
        code, _, err = run([good, str(bad)], capsys)
        assert code == 3
        assert f"bad.json: {field}: " in err


def test_a_verdict_is_never_written_over_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = sides(tmp_path, JOB, FASTER, 2)
    code, _, err = run([*words, "--json", words[1]], capsys)
    assert code == 2
    assert "expected a file to write to" in err
    assert json.loads(Path(words[1]).read_bytes())["schema"] == "longpole.record/1"


def test_the_library_gives_the_same_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = sides(tmp_path, JOB, FASTER, 3)
    _, out, _ = run([*words, "--part", "input", "--json", "-"], capsys)
    found = longpole.verify(words[1:6:2], words[7::2], part="input")
    assert isinstance(found, Verify)
    assert json.loads(encode_document(found)) == json.loads(out)


def test_real_traces_of_one_job_are_compared(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two periods a side are too few for an interval; what differs is shown all the same."""
    kineto = corpus / "own-torch-cpu" / "kineto"
    arguments = [str(kineto / "ddp2_slow_rank"), str(kineto / "ddp2_balanced"), "--no-cache", "--json", "-"]
    code, out, _ = run(arguments, capsys)
    document: dict[str, Any] = json.loads(out)
    assert (code, document["reason"]) == (5, "few_samples")
    assert document["effect"]["estimate"] < -0.2
    grown = {change["part"]: change["change_ns"] for change in document["moved"]["fell"]}
    assert grown["waiting:all_reduce"] < 0


def test_a_candidate_is_predicted_on_the_traces_before(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workers were added to the loader: `input.prefetch` names the part, and its replay stands beside what came."""
    single = corpus / "own-torch-cpu" / "kineto" / "single"
    pair = [str(single / f"dl_workers{workers}.pt.trace.json.gz") for workers in (0, 2)]
    _, out, _ = run([*pair, "--candidate", "input.prefetch", "--no-cache", "--json", "-"], capsys)
    document = json.loads(out)
    assert document["part"]["part"] == "input"
    assert document["part"]["change_ns"] < 0
    assert document["predicted"]["changes"] == ["--prefetch input"]
    assert document["predicted"]["predicted"] < -0.2
    assert document["predicted"]["measured"] == document["effect"]["estimate"]


def test_real_traces_of_two_jobs_are_not_comparable(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kineto = corpus / "own-torch-cpu" / "kineto"
    code, out, _ = run([str(kineto / "ddp2_balanced"), str(kineto / "ddp2_sweep"), "--no-cache", "--json", "-"], capsys)
    document = json.loads(out)
    assert code in (5, 6)
    assert document["verdict"] != "accepted"


def test_a_run_on_more_ranks_needs_items(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = root / "examples"
    pair = [str(examples / "ddp-gloo-1rank"), str(examples / "ddp-gloo-2ranks"), "--no-cache", "--json", "-"]
    code, out, _ = run(pair, capsys)
    assert (code, json.loads(out)["reason"]) == (6, "items_unknown")
    code, out, _ = run([*pair, "--items", "before=32", "--items", "after=64"], capsys)
    effect = json.loads(out)["effect"]
    assert effect["per_item"]
    assert -0.5 < effect["estimate"] < -0.2
