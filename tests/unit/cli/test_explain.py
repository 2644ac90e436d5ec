"""`longpole explain` from the command line: what is written, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from longpole.cli.main import main
from longpole.report.explain import Explain, explain_schema
from longpole.report.schema import read_schema
from longpole.report.schema_of import written_type

if TYPE_CHECKING:
    from pathlib import Path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["explain", *arguments])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_without_anything_all_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)

    assert code == 0
    assert "device-idle" in out
    assert "data_loader_periodic" in out


def test_words_lead_to_a_symptom(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "gpu idle")

    assert code == 0
    assert out.startswith("DEVICE-IDLE  ")


def test_a_cause_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "data-loader")

    assert code == 0
    assert out.startswith("data_loader  the program waits for the next batch")


def test_several_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "checkpoint")

    assert code == 0
    assert out.startswith("“checkpoint” may mean:")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["xyzzy"], "no symptom or cause is like"),
        (["gpu", "idle"], "in quotes: longpole explain 'gpu idle'"),
        (["gc", "--color", "blue"], "--color"),
        (["gc", "--json", "no/such/folder/a.json"], "--json"),
    ],
)
def test_a_wrong_call_ends_with_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)

    assert code == 2
    assert out == ""
    assert said in err


def test_json_follows_its_schema_and_can_be_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "answer.json"

    code, out, _ = run(capsys, "gpu idle", "-q", "--json", str(target))

    document: dict[str, Any] = json.loads(target.read_bytes())
    assert (code, out) == (0, "")
    assert document["schema"] == "longpole.explain/1"
    assert document["symptom"]["figures"][0]["at"] == "/ledger/device/idle_ns"
    assert "value" not in document["symptom"]["figures"][0]
    assert set(document) <= set(json.loads(explain_schema())["$defs"]["Explain"]["properties"])
    read: Any = msgspec.json.decode(target.read_bytes(), type=written_type(Explain))
    assert read.symptom.id == "device-idle"


def test_the_shipped_schema_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "explain"]) == 0

    assert capsys.readouterr().out.encode() == read_schema("explain") == explain_schema()


def test_in_a_run_the_document_has_its_figures(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(path) for path in sorted((cases / "B062").iterdir()) if not path.name.startswith("expected")]

    code, out, _ = run(capsys, "gpu idle", *paths, "--no-cache", "--json", "-")

    document = json.loads(out)
    figures = {figure["at"]: figure for figure in document["symptom"]["figures"]}
    assert code == 0
    assert document["long_pole"] == "host_sync"
    assert figures["/ledger/idle_ns/host.sync"]["is_notable"] is True
    assert figures["/ledger/idle_ns/host.sync"]["share"] == pytest.approx(0.108, abs=0.005)
    assert document["run"]["ranks_present"] == [0]


def test_an_explanation_loads_no_heavy_library() -> None:
    program = (
        "import contextlib, io, sys\n"
        "from longpole.cli.main import main\n"
        "out = io.TextIOWrapper(io.BytesIO())\n"
        "with contextlib.redirect_stdout(out):\n    main(['explain', 'gpu idle'])\n"
        "print(sorted({'numpy', 'polars', 'rich', 'scipy', 'pydantic'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert done.stdout.strip() == "[]"
