"""A journal as a file: what stands in it never changes, and two writers never cut into one another."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.advice.journal.entry import make_id
from longpole.advice.journal.lines import write_line
from longpole.errors import InputError, UsageError
from longpole.pipeline.journal_file import append_entry, find_journal, hash_record, need_journal, read_journal
from longpole.records.journal import FILE_NAME
from tests.journals import entries, entry

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.advice.journal.lines import Journal
    from longpole.records.journal import Entry

_EACH = 25


@given(st.lists(entries, min_size=1, max_size=4))
def test_what_was_added_is_read_back_in_order(tmp_path_factory: pytest.TempPathFactory, written: list[Entry]) -> None:
    path = tmp_path_factory.mktemp("journal") / FILE_NAME

    for one in written:
        append_entry(path, lambda _, one=one: one)  # type: ignore[misc]

    assert read_journal(path).entries == written


@given(st.lists(st.sampled_from([b"{}\n", b"\n", b"<<<<<<< HEAD\n", b"torn", b"\xff\n"]), max_size=3), entries)
def test_bytes_that_stand_there_stay(
    tmp_path_factory: pytest.TempPathFactory, damage: list[bytes], added: Entry
) -> None:
    path = tmp_path_factory.mktemp("journal") / FILE_NAME
    there = write_line(entry("first")) + b"".join(damage)
    path.write_bytes(there)

    append_entry(path, lambda _: added)

    data = path.read_bytes()
    assert data.startswith(there)
    assert data[len(there) :].lstrip(b"\n") == write_line(added)
    assert read_journal(path).entries == [entry("first"), added]


def test_a_line_that_a_crash_cut_off_keeps_its_own_number(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(write_line(entry("first")) + write_line(entry("second"))[:40])

    append_entry(path, lambda _: entry("third"))

    journal = read_journal(path)
    assert ([one.id for one in journal.entries], journal.lines) == (["first", "third"], [1, 3])
    assert [line.line for line in journal.damaged] == [2]


def _add_many(path: Path, name: str, started: multiprocessing.synchronize.Barrier) -> None:
    started.wait()
    for _ in range(_EACH):

        def make(journal: Journal) -> Entry:
            taken = {one.id for one in journal.entries}
            return entry(make_id("2026-11-30", "same title", taken), title="same title", who=name, notes="x" * 5000)

        append_entry(path, make)


def test_two_processes_at_once_lose_nothing_and_share_no_id(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    context = multiprocessing.get_context("fork")
    started = context.Barrier(2)
    writers = [context.Process(target=_add_many, args=(path, name, started)) for name in ("a", "b")]

    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    journal = read_journal(path)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert journal.damaged == []
    assert len({one.id for one in journal.entries}) == 2 * _EACH
    assert sorted(one.who for one in journal.entries) == ["a"] * _EACH + ["b"] * _EACH


def test_a_disk_that_is_full_midway_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE_NAME
    append_entry(path, lambda _: entry("first"))
    there = path.read_bytes()
    real = os.write
    calls: list[int] = []

    def write(descriptor: int, data: bytes) -> int:
        calls.append(descriptor)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, bytes(data)[:20])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(UsageError, match="No space left on device"):
        append_entry(path, lambda _: entry("second"))

    assert len(calls) == 2
    assert path.read_bytes() == there


def test_an_entry_that_cannot_be_made_makes_no_file(tmp_path: Path) -> None:
    def make(_: Journal) -> Entry:
        msg = "no"
        raise UsageError(msg)

    with pytest.raises(UsageError, match="no"):
        append_entry(tmp_path / FILE_NAME, make)

    assert list(tmp_path.iterdir()) == []


def test_nothing_is_added_to_a_file_that_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# A page\n", encoding="utf-8")

    with pytest.raises(InputError, match=r"none of its lines is an entry of a journal \(line 1: not JSON"):
        append_entry(path, lambda _: entry("first"))

    assert path.read_text(encoding="utf-8") == "# A page\n"


@pytest.mark.parametrize("name", ["folder", "missing/journal.jsonl"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(UsageError, match=f"--file .*{name}: cannot be written"):
        append_entry(tmp_path / name, lambda _: entry("first"))


def test_the_nearest_journal_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_journal(None, inner) is None or not str(find_journal(None, inner)).startswith(str(tmp_path))
    (tmp_path / FILE_NAME).write_bytes(write_line(entry("outer")))

    outer = need_journal(None, inner)
    (tmp_path / "a" / FILE_NAME).write_bytes(write_line(entry("nearer")))
    nearer = need_journal(None, inner)

    assert [one.id for one in read_journal(outer).entries] == ["outer"]
    assert [one.id for one in read_journal(nearer).entries] == ["nearer"]


def test_a_journal_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such journal; `longpole journal add` makes one"):
        find_journal(tmp_path / "none.jsonl", tmp_path)


def test_a_folder_is_hashed_as_sha256sum_would(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "inner").mkdir(parents=True)
    (folder / "b.json").write_bytes(b"1")
    (folder / "inner" / "a.json").write_bytes(b"2")
    (folder / ".hidden").write_bytes(b"3")
    command = "sha256sum b.json inner/a.json | sha256sum | cut -d' ' -f1"
    wanted = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout

    assert hash_record(folder) == wanted.strip()
    assert hash_record(folder / "b.json") == hashlib.sha256(b"1").hexdigest()
    assert hash_record(folder / "none") == ""


def test_branches_that_each_add_an_entry_merge_without_a_hand(tmp_path: Path) -> None:
    """The reason for lines: decision 0020."""

    def git(*words: str) -> None:
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *names, *words], cwd=tmp_path, capture_output=True, check=True)

    path = tmp_path / FILE_NAME
    git("init", "-q")
    (tmp_path / ".gitattributes").write_text(f"{FILE_NAME} merge=union\n", encoding="utf-8")
    append_entry(path, lambda _: entry("both"))
    git("add", "-A")
    git("commit", "-qm", "both")
    git("branch", "side")
    append_entry(path, lambda _: entry("ours"))
    git("commit", "-qam", "ours")
    git("checkout", "-q", "side")
    append_entry(path, lambda _: entry("theirs"))
    git("commit", "-qam", "theirs")

    git("merge", "-q", "main", "-m", "merged")

    journal = read_journal(path)
    assert {one.id for one in journal.entries} == {"both", "ours", "theirs"}
    assert journal.damaged == []
