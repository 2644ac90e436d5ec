"""`longpole bench gate` as it is typed: exit codes, files, and what it says of wrong options."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.records.run_record_file import encode_record
from tests.gate_runs import Bench, pair

if TYPE_CHECKING:
    from pathlib import Path

BASE = Bench()


@pytest.mark.parametrize(
    ("new", "code", "verdict"),
    [
        (BASE, 0, "same"),
        (Bench(stages=BASE.scaled(forward=0.5)), 0, "improved"),
        (Bench(stages=BASE.scaled(forward=1.5)), 1, "regressed"),
        (Bench(noise=0.2), 5, "inconclusive"),
        (Bench(process={0: {"exit_code": 1}}), 6, "invalid"),
    ],
)
def test_the_exit_code_is_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], new: Bench, code: int, verdict: str
) -> None:
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path, record in zip(paths, pair(BASE, new), strict=True):
        (tmp_path / path).write_bytes(encode_record(record))
    files = [str(tmp_path / name) for name in ("gate.xml", "gate.md")]

    found = main(["bench", "gate", *paths, "--json", "-", "--junit", files[0], "--markdown", files[1]])
    out, _ = capsys.readouterr()

    assert (found, json.loads(out)["verdict"], json.loads(out)["exit_code"]) == (code, verdict, code)
    assert (tmp_path / "gate.xml").read_bytes().startswith(b"<?xml")
    assert verdict in (tmp_path / "gate.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "BASELINE NEW"),
        (["one.json"], "found one"),
        (["a.json", "b.json", "--a", "true"], "found both"),
        (["--a", "true"], "no --b"),
        (["a", "b", "--metric", "speed"], "--metric speed"),
        (["a", "b", "--threshold", "3"], "--threshold"),
        (["a", "b", "--fail-when", "never"], "--fail-when"),
        (["a", "b", "--inconclusive", "maybe"], "--inconclusive"),
        (["--a", "true", "--b", "true", "--budget", "soon"], "--budget"),
        (["--a", "no-such-program-here", "--b", "true"], "no-such-program-here"),
        (["a", "b", "--junit", "no/such/folder/x.xml"], "--junit"),
    ],
)
def test_a_wrong_call_says_what_was_expected(
    capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    code = main(["bench", "gate", *arguments])

    assert code == 2
    assert why in capsys.readouterr().err
