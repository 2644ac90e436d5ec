"""`longpole report --html --perfetto`: where the files go, and what is refused."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from tests.trace_text import steps, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LONGPOLE_CACHE", str(tmp_path / "cache"))
    return str(write(tmp_path / "traces" / "rank0.json", steps(3)))


def test_the_file_is_written_and_compressed_by_its_name(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, packed = tmp_path / "run.pftrace", tmp_path / "run.pftrace.gz"

    assert main(["report", trace, "-q", "--perfetto", str(plain)]) == 0
    assert main(["report", trace, "-q", "--perfetto", str(packed)]) == 0

    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes()[4:8] == bytes(4)
    assert capsys.readouterr() == ("", "")


def test_both_files_come_of_one_call(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, viewed = tmp_path / "report.html", tmp_path / "run.pftrace"

    assert main(["report", trace, "-q", "--html", str(page), "--perfetto", str(viewed)]) == 0

    assert page.read_bytes().startswith(b"<!doctype html>")
    assert viewed.stat().st_size > 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("-", "expected a file"),
        ("none/run.pftrace", "does not exist"),
        ("traces/rank0.json", "found one of the traces"),
    ],
)
def test_what_cannot_be_written_is_refused(
    trace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "traces" / "rank0.json").read_bytes()

    assert main(["report", trace, "-q", "--perfetto", file]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.startswith("longpole: --perfetto")
    assert (tmp_path / "traces" / "rank0.json").read_bytes() == before
