"""`longpole balance` from the command line to its outputs."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lengths(tmp_path: Path) -> Path:
    file = tmp_path / "lengths.txt"
    file.write_text("8 7 6 5 4")
    return file


def test_a_page_and_a_file(lengths: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "balance.json"

    assert main(["balance", str(lengths), "--ranks", "2", "--json", str(file)]) == 0

    out, err = capsys.readouterr()
    assert "UNEVEN  dealt out in turn, the last rank has 1.20 times the mean" in out
    assert err == ""
    assert json.loads(file.read_text(encoding="utf-8"))["optimum"] == 15.0


def test_json_on_standard_output_is_all_there_is(lengths: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["balance", str(lengths), "--ranks", "2", "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "longpole.balance/1"
    assert sorted(map(sorted, document["assignment"][0])) == [[0, 1], [2, 3, 4]]


def test_every_option_reaches_the_division(lengths: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--speed", "1,1,0.5", "--batch", "4", "--crossover", "6", "--equal-counts", "--before", "in_blocks"]

    assert main(["balance", str(lengths), *options, "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert [rank["speed"] for rank in document["ranks"]] == [1.0, 1.0, 0.5]
    assert (document["batch_size"], document["batches"], document["equal_counts"]) == (4, 1, True)
    assert document["cost"]["formula"] == "s + s²/6"
    assert document["before"]["method"] == "in_blocks"


def test_a_key_and_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text("".join(json.dumps({"n": n}) + "\n" for n in (900, 80, 70, 60)))
    options = ["--key", "n", "--ranks", "2", "--model", "llama-3-8b", "--convention", "mcore"]

    assert main(["balance", str(file), *options]) == 0

    assert "convention mcore" in capsys.readouterr().out


def test_lengths_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"8 7 6 5 4")))

    assert main(["balance", "-", "--ranks", "2"]) == 0

    assert "standard input · 5 sequences" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--ranks", "0"], 2, "--ranks: expected a whole number of at least 1; found '0'"),
        (["--speed", "1,x"], 2, "--speed: expected numbers above 0 with commas between them"),
        (["--speed", "1,-2"], 2, "--speed: expected numbers above 0"),
        (["--ranks", "2", "--before", "random"], 2, "--before: expected one of in_turn, in_blocks"),
        (["--ranks", "2", "--crossover", "-1"], 2, "--crossover: expected a number above 0"),
        (["--ranks", "9"], 2, "5 sequences of a batch cannot go to 9 ranks"),
        ([], 2, "over how many ranks is not said"),
        (["--from", "no/such/trace"], 2, "no/such/trace"),
        (["--ranks", "2", "--key", "n"], 3, "has no 'n'"),
    ],
)
def test_a_mistake_is_told_with_its_exit_code(
    arguments: list[str], code: int, says: str, lengths: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["balance", str(lengths), *arguments]) == code

    out, err = capsys.readouterr()
    assert says in err
    assert "Traceback" not in err
    assert out == ""


def test_the_lengths_are_never_written_over(lengths: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["balance", str(lengths), "--ranks", "2", "--json", str(lengths)]) == 2

    assert lengths.read_text() == "8 7 6 5 4"
    assert "expected a file to write to" in capsys.readouterr().err
