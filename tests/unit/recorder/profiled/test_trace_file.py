"""A trace is kept whole or not at all, and never over another one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from longpole.recorder.profiled.injected.longpole_recording.request import Request
from longpole.recorder.profiled.injected.longpole_recording.trace_file import keep_trace

WHOLE = '{"traceEvents": [\n{"name": "ProfilerStep#1"},\n{"name": "ProfilerStep#12"}\n]}\n'


def writes(text: str, path: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


def test_a_second_trace_of_a_rank_gets_a_name_of_its_own(tmp_path: Path) -> None:
    paths = [keep_trace(lambda path: writes(WHOLE, path), str(tmp_path / "new"), 3, None) for _ in range(2)]

    assert [path.name for path in paths] == ["rank3.pt.trace.json.gz", "rank3-2.pt.trace.json.gz"]
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    assert gzip.decompress(paths[0].read_bytes()).decode() == WHOLE


def test_the_step_that_did_not_end_is_no_step(tmp_path: Path) -> None:
    path = keep_trace(lambda raw: writes(WHOLE, raw), str(tmp_path), 0, "ProfilerStep#1")

    assert gzip.decompress(path.read_bytes()).decode() == WHOLE.replace(
        '"ProfilerStep#1"', '"unfinished ProfilerStep#1"'
    )


@pytest.mark.parametrize("text", ["", WHOLE[:40]])
def test_a_trace_that_was_cut_is_an_error_and_leaves_nothing(text: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="is the disk full"):
        keep_trace(lambda path: writes(text, path), str(tmp_path), 0, None)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ranks", [None, (0, 3)])
def test_a_request_comes_through_the_environment_as_it_was(ranks: tuple[int, ...] | None) -> None:
    request = Request(out="/a b/ü", skip=4, ranks=ranks, step="module", quiet=True)

    assert Request.decode(request.encode()) == request
    assert request.counts(3)
    assert request.counts(1) == (ranks is None)
