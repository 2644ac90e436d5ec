"""Dumps of every version, as pickles and as JSON, and damaged ones."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from longpole.errors import InputError, NotATraceError
from longpole.readers.flight_recorder.decode import looks_like_dump, read_dump
from longpole.records.flight import Frame
from tests.flight_dumps import dump, entry, group, written

ALL = group(range(4))
FRAMES = (Frame("step", "train.py", 12),)
ONE = dump(3, [entry(ALL, 8), entry(ALL, 9, done=False, frames=FRAMES)])


def _read(told: object, path: str = "nccl_trace_rank_3") -> Any:
    return read_dump(pickle.dumps(told, protocol=2), path)[0]


def test_a_pickle_gives_back_what_was_written() -> None:
    found = _read(written(ONE))

    assert (found.rank, found.rank_from_name, found.version, found.groups) == (3, True, "2.10", (ALL,))
    assert [(one.sequence, one.operation, one.is_active) for one in found.entries] == [
        (8, "all_reduce", False),
        (9, "all_reduce", True),
    ]
    assert found.entries[1].frames == FRAMES


def test_json_says_the_same_with_its_own_spellings() -> None:
    """Lists for tuples, 0 for a time that is not known, no stacks; without operations the key is missing."""
    told = json.loads(json.dumps(written(ONE)))
    for one in told["entries"]:
        one["time_created_ns"] = 0
        del one["frames"]

    found, left_out = read_dump(json.dumps(told).encode(), "fr_rank3.json")
    nothing, _ = read_dump(b'{"pg_config": {}, "version": "2.10"}', "fr_rank3.json")

    assert left_out == 0
    assert [one.created_ns for one in found.entries] == [None, None]
    assert nothing.entries == ()


def test_the_oldest_form_is_a_bare_list_with_one_number_and_microseconds() -> None:
    """torch 2.2: no groups, `seq_id`, `time_created_us`."""
    old = {"pg_id": 0, "seq_id": 7, "profiling_name": "nccl:all_reduce", "time_created_us": 5, "state": "completed"}

    found = _read([old])

    assert (found.version, found.entries[0].sequence, found.entries[0].created_ns) == ("", 7, 5000)


def test_a_transfer_names_its_ends() -> None:
    pipeline = group((4, 5), "7", "PP")
    one = dump(5, [entry(pipeline, 2, "recv", peers=(0, 1), done=False)])
    told = written(one)
    told["entries"][0]["profiling_name"] = "nccl:recv 1<-0"

    found = _read(told, "trace_5")

    assert (found.entries[0].operation, found.entries[0].peers, found.entries[0].is_p2p) == ("recv", (0, 1), True)


@pytest.mark.parametrize(
    ("path", "rank"),
    [("nccl_trace_rank_node02_5", 5), ("_dump_12.gz", 12), ("comm_lib_trace_rank_0.json", 0), ("rank-7.pickle.gz", 7)],
)
def test_a_name_tells_the_rank_where_the_dump_does_not(path: str, rank: int) -> None:
    assert _read(written(ONE), path).rank == rank


def test_a_dumps_own_rank_goes_before_its_name() -> None:
    found = _read(written(ONE) | {"rank": 40}, "nccl_trace_rank_node07_5")

    assert (found.rank, found.rank_from_name) == (40, False)


def test_entries_that_are_none_are_counted_and_the_rest_stays() -> None:
    told = written(ONE)
    told["entries"] += ["text", {"profiling_name": "nccl:all_reduce"}, {"collective_seq_id": 3}]

    found, left_out = read_dump(pickle.dumps(told, protocol=2), "rank_3")

    assert (len(found.entries), left_out) == (2, 3)


def test_a_pickle_that_would_run_something_is_refused() -> None:
    with pytest.raises(InputError, match=r"asks for .*plain data needs no class"):
        read_dump(pickle.dumps({"entries": [ValueError("x")], "pg_config": {}}), "rank_3")


@pytest.mark.parametrize("content", [pickle.dumps({"segments": []}), b'{"pg": 1}', pickle.dumps([1, 2])])
def test_other_data_is_no_dump(content: bytes) -> None:
    with pytest.raises(NotATraceError, match="no dump of a flight recorder"):
        read_dump(content, "rank_3")


@pytest.mark.parametrize("kept", [2, 40, 300])
def test_a_cut_dump_is_refused_with_a_sentence(kept: int) -> None:
    with pytest.raises(InputError, match=r"cut or damaged|cannot be read"):
        read_dump(pickle.dumps(written(ONE), protocol=2)[:kept], "rank_3")


def test_credentials_and_control_signs_do_not_pass() -> None:
    told = written(dump(3, [entry(ALL, 8, frames=(Frame("f\x1b[2J", "HF_TOKEN=hunter2hunter2", 1),))]))

    text = repr(_read(told))

    assert "hunter2" not in text
    assert "\x1b" not in text


def test_traces_and_other_pickles_do_not_look_like_dumps() -> None:
    assert looks_like_dump(pickle.dumps(written(ONE), protocol=2))
    assert looks_like_dump(json.dumps(written(ONE)).encode())
    assert not looks_like_dump(b'{"traceEvents": [], "pg_config": {}}'.replace(b"pg_config", b'"pg_config"'))
    assert not looks_like_dump(pickle.dumps({"segments": [], "device_traces": []}, protocol=2))
