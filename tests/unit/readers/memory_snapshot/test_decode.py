"""A memory snapshot is read in every form that PyTorch writes; what is odd costs only itself, and no code is run."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.errors import InputError, NotATraceError
from longpole.readers.memory_snapshot.decode import read_snapshot
from longpole.readers.plain_pickle import read_plain_pickle
from longpole.settings import Settings
from tests.laws import check_refusal
from tests.memory_snapshots import LOSS, block, entry, failed, segment, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.errors import LongpoleError

FIELDS = snapshot(
    [segment(block(768, frames=LOSS), block(256, "inactive"))],
    [entry("alloc", 768, addr=1 << 40, frames=LOSS), failed(512, 100)],
)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _refused(path: Path) -> LongpoleError:
    with pytest.raises(InputError) as caught:
        read_snapshot(path, Settings())
    check_refusal(caught.value, path.name)
    return caught.value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_of_any_protocol_reads_as_its_json_does(tmp_path: Path, protocol: int) -> None:
    pickled = _write(tmp_path / "a.pickle", pickle.dumps(FIELDS, protocol))
    as_json = _write(tmp_path / "a.json", json.dumps(FIELDS).encode())

    assert read_snapshot(pickled, Settings()) == read_snapshot(as_json, Settings())


def test_a_packed_pickle_is_unpacked(tmp_path: Path) -> None:
    packed = _write(tmp_path / "a.pickle.gz", gzip.compress(pickle.dumps(FIELDS)))

    found = read_snapshot(packed, Settings())

    assert [each.size_bytes for each in found.segments[0].blocks] == [768 << 20, 256 << 20]
    assert [each.action for each in found.history[0]] == ["alloc", "oom"]
    assert found.history[0][1].device_free_bytes == 100 << 20


def test_equal_stacks_are_one_object(tmp_path: Path) -> None:
    found = read_snapshot(_write(tmp_path / "a.pickle", pickle.dumps(FIELDS)), Settings())

    assert found.segments[0].blocks[0].stack is found.history[0][0].stack


def test_blocks_of_torch_before_2_1_say_what_was_asked_for_in_their_history(tmp_path: Path) -> None:
    old = {"size": 1 << 21, "state": "active_pending_free", "history": [{"real_size": 1_500_000, "frames": LOSS}]}
    fields = {"segments": [{"device": 0, "total_size": 1 << 21, "stream": 0, "segment_type": "large", "blocks": [old]}]}

    (found,) = read_snapshot(_write(tmp_path / "a.pickle", pickle.dumps(fields)), Settings()).segments[0].blocks

    assert (found.state, found.requested_bytes, found.stack[-1].name) == ("awaiting_free", 1_500_000, "main")


def test_the_bare_list_of_segments_of_memory_snapshot_is_read(tmp_path: Path) -> None:
    found = read_snapshot(_write(tmp_path / "a.json", json.dumps(FIELDS["segments"]).encode()), Settings())

    assert len(found.segments) == 1


@pytest.mark.parametrize(
    "odd", [{"size": -1, "state": "inactive"}, {"size": 5, "state": "new"}, {"state": "inactive"}, 7, None]
)
def test_an_odd_block_is_counted_and_costs_no_other(tmp_path: Path, odd: object) -> None:
    fields = snapshot([segment(block(768), block(256, "inactive"))])
    fields["segments"][0]["blocks"].append(odd)

    found = read_snapshot(_write(tmp_path / "a.pickle", pickle.dumps(fields)), Settings())

    assert len(found.segments[0].blocks) == 2
    assert found.skipped == {"block": 1}


def test_blocks_that_do_not_add_up_are_noted(tmp_path: Path) -> None:
    fields = snapshot([segment(block(768), total_size=5)])

    assert read_snapshot(_write(tmp_path / "a.pickle", pickle.dumps(fields)), Settings()).skipped == {"segment_sum": 1}


# ----------------------------------------------------------------------------------------------------- refusals


class _Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.getcwd, ()


def test_a_pickle_that_asks_for_code_is_refused_before_it_runs(tmp_path: Path) -> None:
    error = _refused(_write(tmp_path / "a.pickle", pickle.dumps({"segments": [_Harmful()]})))

    assert "plain data needs no class" in str(error)


@pytest.mark.parametrize("keep", [1, 10, -1, -20])
def test_a_cut_pickle_is_refused(tmp_path: Path, keep: int) -> None:
    _refused(_write(tmp_path / "a.pickle", pickle.dumps(FIELDS)[:keep] if keep > 1 else b"\x80\x04."))


@pytest.mark.parametrize(
    "content",
    [b"{}", b"[]", b"{", b'{"traceEvents": []}', b"SQLite format 3\0", pickle.dumps({"entries": []}), b"text"],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, content: bytes) -> None:
    _refused(_write(tmp_path / "a.bin", content))


def test_a_flight_recorder_dump_is_called_no_snapshot(tmp_path: Path) -> None:
    error = _refused(_write(tmp_path / "a.pickle", pickle.dumps({"version": "2.10", "entries": []}, 2)))

    assert isinstance(error, NotATraceError)
    assert "holds no list of segments" in str(error)


@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 255))
def test_no_bytes_bring_the_unpickler_down(tail: bytes, place: int, value: int) -> None:
    content = bytearray(pickle.dumps(FIELDS, 2))
    content[place % len(content)] = value
    for text in (bytes(content), b"\x80\x02" + tail, bytes(content)[:place] + tail):
        try:
            read_plain_pickle(text, "a.pickle")
        except InputError as error:
            check_refusal(error, "a.pickle")
