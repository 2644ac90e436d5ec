"""`longpole bench io` and `bench show` as a person calls them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.bench.io.storage import read_storage
from longpole.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

TINY = ["--size", "16KiB", "--sizes", "4KiB", "--repeats", "2", "--warmup", "1", "--paths", "raw.read.*,memory.copy"]


@pytest.fixture(autouse=True)
def in_a_folder_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if read_storage(tmp_path).is_memory():
        pytest.skip("the folder for temporary files lies in memory")
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> int:
    return main(["bench", *arguments])


def test_a_run_ends_on_its_page_and_show_prints_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("io", *TINY, "--label", "one")
    page = capsys.readouterr().out
    (record,) = tmp_path.glob("benchmarks/results/*/one.json")

    assert code == 0
    assert page.startswith("MEASURED  3 paths")
    assert max(map(len, page.splitlines())) <= 80
    assert run("show", str(record.relative_to(tmp_path))) == 0
    assert capsys.readouterr().out == page


def test_the_record_goes_to_standard_output_with_every_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("io", *TINY, "--json", "-") == 0

    record = json.loads(capsys.readouterr().out)
    assert record["schema"] == "longpole.bench-io/1"
    assert [len(case["service_ns"]) for path in record["paths"] for case in path["cases"]] == [3] * 6


def test_a_label_that_is_taken_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("io", *TINY, "--label", "one", "-q") == 0

    assert run("io", *TINY, "--label", "one", "-q") == 2
    assert "never written over" in capsys.readouterr().err


def test_a_dry_run_says_what_would_be_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("io", "--dry-run") == 0

    page = capsys.readouterr().out
    assert "sizes 4 KiB, 16 KiB" in page
    assert "raw.read.cold" in page
    assert "written in all" in page
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--size", "1000B"], "multiple of 4 KiB"),
        (["--sizes", "64KiB..4KiB"], "a range that goes up"),
        (["--repeats", "0"], "a whole number from 1"),
        (["--paths", "ftp"], "expected names of paths"),
        (["--every", "often"], "--every"),
        (["--io-budget", "200%"], "--io-budget"),
        (["--in", "nowhere"], "expected a folder that exists"),
    ],
)
def test_a_mistake_in_the_call_is_named(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("io", *arguments) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_show_names_what_is_no_record_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text('{"schema": "longpole.record/1", "units": []}')

    assert run("show", "other.json") == 3
    assert "expected 'longpole.bench-io/1', found 'longpole.record/1'" in capsys.readouterr().err
