"""Stacks as py-spy and faulthandler print them."""

from __future__ import annotations

import json

import pytest

from longpole.advice.hang.stacks import doing
from longpole.errors import InputError, NotATraceError
from longpole.readers.stacks.decode import looks_like_stacks, read_stacks

PY_SPY = b"""Process 4711: python train.py --token hunter2hunter2
Python v3.11.7 (/usr/bin/python3.11)

Thread 4711 (idle): "MainThread"
    _try_get_data (torch/utils/data/dataloader.py:1131)
    train (train.py:88)
Thread 4712 (active+gil): "helper thread"
    work (helper.py:3)
"""
FAULT_HANDLER = b"""Thread 0x00007f44e5ffb6c0 (most recent call first):
  File "helper.py", line 3 in work

Current thread 0x00007f44f5ffb6c0 (most recent call first):
  File "/opt/torch/distributed/distributed_c10d.py", line 2799 in recv
  File "train.py", line 88 in train
"""


def test_py_spy_names_threads_and_who_holds_the_lock() -> None:
    found = read_stacks(PY_SPY, "pyspy_rank_2.txt")

    main, helper = found.threads
    assert found.rank == 2
    assert (main.is_main, main.holds_gil, helper.holds_gil) == (True, False, True)
    assert [frame.line for frame in main.frames] == [1131, 88]
    assert doing(found)[0] == "data_loader"


def test_py_spy_in_json_says_the_same() -> None:
    threads = [
        {
            "thread_name": "MainThread",
            "owns_gil": False,
            "frames": [{"name": "_try_get_data", "filename": "torch/utils/data/dataloader.py", "line": 1131}],
        }
    ]

    found = read_stacks(json.dumps(threads).encode(), "pyspy_rank_2.json")

    assert doing(found) == ("data_loader", ["_try_get_data (torch/utils/data/dataloader.py:1131)"])


def test_fault_handler_lists_the_main_thread_last() -> None:
    found = read_stacks(FAULT_HANDLER, "faulthandler_rank_0.txt")

    assert [thread.is_main for thread in found.threads] == [False, True]
    assert doing(found)[0] == "transfer"


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        ("all_reduce (torch/distributed/distributed_c10d.py:3252)", "collective"),
        ("save (torch/serialization.py:900)", "checkpoint"),
        ("compile_inner (torch/_dynamo/convert_frame.py:10)", "compilation"),
        ("synchronize (torch/cuda/__init__.py:900)", "device"),
        ("read (botocore/httpsession.py:5)", "remote"),
        ("mine (train.py:7)", "other"),
    ],
)
def test_the_innermost_frame_that_says_something_decides(frame: str, what: str) -> None:
    text = f'Process 1: x\n\nThread 1 (idle): "MainThread"\n    inner (lib.py:1)\n    {frame}\n'

    assert doing(read_stacks(text.encode(), "rank_1.txt"))[0] == what


def test_a_lock_that_another_thread_holds_is_said() -> None:
    text = PY_SPY.replace(b"_try_get_data (torch/utils/data/dataloader.py:1131)", b"f (train.py:9)")

    assert doing(read_stacks(text, "rank_1.txt"))[0] == "gil"


def test_what_is_no_stack_is_refused() -> None:
    with pytest.raises(NotATraceError, match="no stacks of threads"):
        read_stacks(b"Process 1: x\nnothing else\n", "rank_1.txt")
    with pytest.raises(InputError, match="does not say its rank"):
        read_stacks(PY_SPY, "stacks.txt")


def test_what_looks_like_stacks() -> None:
    assert looks_like_stacks(PY_SPY)
    assert looks_like_stacks(FAULT_HANDLER)
    assert not looks_like_stacks(b"Process everything\n")
