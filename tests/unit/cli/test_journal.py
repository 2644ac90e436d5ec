"""`longpole journal` from the command line to its pages, documents and exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.journal_options import parse_gain, parse_interval, parse_level, parse_records
from longpole.cli.main import main
from longpole.errors import UsageError
from longpole.records.journal import FILE_NAME
from longpole.report.journal import journal_schema
from longpole.report.schema import read_schema

if TYPE_CHECKING:
    from pathlib import Path

NOTE = ["journal", "add", "Two more workers", "--verdict", "accepted", "--no-record", "told by hand"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def example(root: Path) -> list[str]:
    return ["--file", str(root / "examples" / "journal-7b" / FILE_NAME)]


def test_an_entry_is_added_shown_and_found(capsys: pytest.CaptureFixture[str]) -> None:
    figures = ["--before", "1,200", "--after", "1500", "--unit", "tokens/s", "--date", "2026-11-30"]

    assert main([*NOTE, *figures, "--expected", "20%", "--candidate", "input.add_workers"]) == 0
    assert main(["journal", "show", "workers"]) == 0
    assert main(["journal", "search", "have", "we", "tried", "workers?"]) == 0

    out, err = capsys.readouterr()
    assert err == ""
    assert "ADDED  2026-11-30-two-more-workers to longpole-journal.jsonl" in out
    assert "expected    +25 % from input.add_workers" in out
    assert "measured    +25 % · 1,200 → 1,500 tokens/s" in out
    assert "FOUND  1 of 1 entry, 1 kept, 0 reverted" in out


@pytest.mark.parametrize("command", [["list"], ["show", "graph"], ["search", "graph"], ["summary"], ["check"]])
def test_every_answer_is_a_document_too(
    command: list[str], example: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["journal", *command, *example, "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["command"]) == ("longpole.journal/1", command[0])
    assert set(document) <= set(json.loads(journal_schema())["$defs"]["JournalDocument"]["properties"])


def test_the_schema_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "journal"]) == 0

    assert capsys.readouterr().out.encode() == read_schema("journal") == journal_schema()


def test_nothing_found_is_said(example: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "search", "tensor parallel", *example]) == 0

    assert capsys.readouterr().out.startswith("NOT FOUND  nothing in 5 entries has a word of: tensor parallel\n")


def test_what_an_entry_only_ran_with_was_not_tried(example: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "search", "layout", *example]) == 0

    assert capsys.readouterr().out.startswith("NOT TRIED  no change of this, but 5 entries ran with it; for: layout\n")


def test_a_damaged_line_is_named_and_the_others_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*NOTE, "--quiet"])
    with (folder / FILE_NAME).open("a", encoding="utf-8") as file:
        file.write("<<<<<<< HEAD\n")
    main([*NOTE, "--quiet"])

    assert main(["journal", "list"]) == 0
    listed = capsys.readouterr().out
    assert main(["journal", "check"]) == 1
    checked = capsys.readouterr().out

    assert "JOURNAL  2 entries" in listed
    assert "DAMAGED  1 line could not be read, and the others were\n  line 2: a mark that a merge left behind" in listed
    assert "NOT SOUND  1 error in 2 entries" in checked
    assert "error line 2: a mark that a merge left behind" in checked


def test_a_sound_journal_ends_with_zero(example: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "check", *example]) == 0

    assert "SOUND  5 entries, 35 linked records: all are what they were" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["journal", "list"], 2, f"expected {FILE_NAME} in this folder or one above it"),
        (["journal", "list", "--file", "none.jsonl"], 2, "--file none.jsonl: there is no such journal"),
        (["journal", "add", "x", "--verdict", "accepted"], 2, "say why with --no-record REASON"),
        ([*NOTE, "--from", "none.json"], 2, "--from none.json: there is no such file"),
        ([*NOTE, "--file", "no/where.jsonl"], 2, "the folder no does not exist"),
        ([*NOTE, "--before", "many"], 2, "--before: expected a number; found 'many'"),
        ([*NOTE, "--expected", "fast"], 2, "--expected: expected 1.25x"),
        ([*NOTE, "--runs", "0"], 2, "--runs: expected a whole number"),
        ([*NOTE, "--json", "/nowhere/at/all.json"], 2, "does not exist"),
        ([*NOTE, "--markdown", "--json", "-"], 2, "--markdown: expected no --json beside it"),
    ],
)
def test_a_wrong_call_is_a_sentence_and_leaves_nothing(
    folder: Path, command: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == code

    out, err = capsys.readouterr()
    assert (out, list(folder.iterdir())) == ("", [])
    assert says in err


def test_a_file_that_is_no_journal_ends_with_three(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "notes.md").write_text("# Notes\n", encoding="utf-8")

    assert main(["journal", "summary", "--file", "notes.md"]) == 3

    assert "notes.md: none of its lines is an entry of a journal (line 1" in capsys.readouterr().err


def test_a_journal_and_its_records_are_never_written_over(
    example: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["journal", "list", *example, "--json", example[1]]) == 2

    assert "name another" in capsys.readouterr().err
    assert main(["journal", "check", *example, "--quiet"]) == 0


def test_markdown_is_a_table_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    main(["journal", "add", "<b>@all</b> | x", "--verdict", "accepted", "--no-record", "x", "--quiet"])

    assert main(["journal", "list", "--markdown"]) == 0

    assert r"| \<b\>\@&#8203;all\</b\> \| x | – | – | accepted | kept |" in capsys.readouterr().out


def test_no_control_sequence_of_an_entry_reaches_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    nasty = "a\x1b[2Jb"
    texts = ["--notes", nasty, "--who", nasty, "--tag", nasty, "--config", f"k{nasty}={nasty}", "--claim", f"w={nasty}"]
    main(["journal", "add", nasty, "--verdict", "accepted", "--no-record", nasty, *texts])

    for command in (["list"], ["show", "a"], ["search", "b"], ["summary"], ["check"], ["show", "a", "--markdown"]):
        assert main(["journal", *command]) == 0

    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "speedup"), [("1.25x", 1.25), ("20%", 1.25), ("0.2", 1.25), ("2×", 2.0), ("−25 %", 0.8), ("-25%", 0.8)]
)
def test_a_gain_is_a_factor_or_a_share_of_the_time(text: str, speedup: float) -> None:
    assert parse_gain("--expected", text) == pytest.approx(speedup)


@pytest.mark.parametrize("text", ["", "x", "0x", "-1x", "100%", "1.5", "20%x", "nan", "1e999x%"])
def test_a_gain_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--expected: expected"):
        parse_gain("--expected", text)


def test_ends_of_an_interval_may_come_in_any_order() -> None:
    assert parse_interval("--interval", "1.3x..20%") == (1.25, 1.3)
    with pytest.raises(UsageError, match="two gains"):
        parse_interval("--interval", "1.3x")


@pytest.mark.parametrize("text", ["0", "1", "100%", "x"])
def test_a_level_lies_between_nothing_and_all(text: str) -> None:
    with pytest.raises(UsageError, match="--level: expected"):
        parse_level("--level", text)


def test_a_path_that_holds_an_equals_sign_is_a_path(folder: Path) -> None:
    (folder / "lr=1.json").write_text("{}", encoding="utf-8")

    assert parse_records(["lr=1.json", "after=lr=1.json"]) == [("other", "lr=1.json"), ("after", "lr=1.json")]
