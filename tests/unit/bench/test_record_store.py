"""The file of a record: reserved before, whole at any time, kept elsewhere where its place gives out."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from longpole.bench.record_store import UNFINISHED, RecordStore, record_path
from longpole.errors import UsageError
from longpole.records.run_record import SCHEMA, RecordUnit, RunRecord
from longpole.records.run_record_file import decode_record


def record() -> RunRecord:
    return RunRecord(schema=SCHEMA, units=[RecordUnit(period_ns=5)])


def without_room(monkeypatch: pytest.MonkeyPatch, below: Path) -> None:
    """Let every write below a folder fail as on a full disk."""
    really = os.fsync

    def fsync(number: int) -> None:
        if Path(f"/proc/self/fd/{number}").readlink().is_relative_to(below):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        really(number)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_record_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "id" / "before.json"
    store = RecordStore(path)
    store.finish(record())

    with pytest.raises(UsageError, match="never written over"):
        RecordStore(path)
    assert decode_record(path.read_bytes(), str(path)).units[0].period_ns == 5


def test_what_a_crash_leaves_says_that_it_is_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert RecordStore(path).keep(record()) == ""

    assert decode_record(path.read_bytes(), str(path)).failure == UNFINISHED


def test_a_measurement_that_was_given_up_leaves_nothing(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "a.json")
    store.give_up()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell which file is written")
def test_a_full_disk_costs_no_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_in = tmp_path / "temporary"
    kept_in.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(kept_in))
    full = tmp_path / "full"
    store = RecordStore(full / "a.json")
    without_room(monkeypatch, full)

    assert "No space left" in store.keep(record())
    told = store.finish(record())

    assert "No space left" in told
    assert str(store.path) in told
    assert decode_record(store.path.read_bytes(), "kept").units[0].period_ns == 5
    assert [path.name for path in full.iterdir()] == ["a.json"]  # the reservation, and no half file


def test_samples_that_fit_nowhere_are_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RecordStore(tmp_path / "a.json")

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse)

    with pytest.raises(UsageError, match="The samples are lost"):
        store.finish(record())


def test_a_folder_that_takes_no_file_is_told_before_anything_is_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="Name another place"):
        RecordStore(tmp_path / "file" / "a.json")


def test_a_label_makes_a_plain_file_name() -> None:
    path = record_path("../../etc/pass wd", "id", Path("records"))

    assert path.parent == Path("records/id")
    assert "/" not in path.name
    assert ".." not in path.parts
    assert record_path("...", "id", Path("r")).name == "run.json"
