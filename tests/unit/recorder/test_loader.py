"""Input: what the loop waits for, and what worker processes do meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from longpole import record
from longpole.recorder.batches import count_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.span_files import Recording

BATCHES = [b"abc", b"de"]


class Sized:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


@dataclass
class Sample:
    image: Sized
    label: int


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        (b"abc", 3),
        (Sized(7), 7),
        ({"image": Sized(7), "more": [Sized(1), (Sized(2), "text", 5, None)]}, 10),
        (Sample(Sized(4), 1), 4),
        ("text", None),
        ([1, 2, 3], None),
        (list(range(100_000)), None),
        ([[Sized(1)] * 200] * 2, None),
        (object(), None),
        ({}, None),
    ],
)
def test_bytes_of_a_batch_are_those_of_its_arrays_or_not_known(batch: Any, size: int | None) -> None:
    assert count_bytes(batch) == size


def test_a_wrapped_loader_hands_out_the_same_batches_and_keeps_its_length(recording: Recording) -> None:
    loader = record.loader(BATCHES, items=len)

    assert list(loader) == BATCHES
    assert list(loader) == BATCHES
    assert len(loader) == 2
    assert loader.index(b"de") == 1
    spans = recording.stop().spans
    assert [(span.b, span.items) for span in spans] == [(3, 3), (2, 2), (None, None)] * 2
    assert {(span.o, span.stage, span.waits) for span in spans} == {("input", "input", False)}


@pytest.mark.parametrize("wrapped", [True, False])
def test_each_batch_is_a_unit_with_one_wait_for_input(wrapped: bool, recording: Recording) -> None:
    seen = []
    for batch in record.units(record.loader(BATCHES) if wrapped else BATCHES, start=5, items=len):
        with record.stage("forward"):
            seen.append(batch)

    file = recording.stop()
    assert seen == BATCHES
    assert [(unit.n, unit.items) for unit in file.units] == [("step 5", 3), ("step 6", 2)]
    for unit in file.units:
        inside = [span.n for span in file.spans if unit.s <= span.s and span.s + span.d <= unit.s + unit.d]
        assert inside == ["input.next", "forward"]


def test_a_loop_that_is_left_ends_its_unit(recording: Recording) -> None:
    for _ in record.units(BATCHES):
        break

    assert [unit.n for unit in recording.stop().units] == ["step 0"]


def test_a_loader_that_fails_fails_as_before_and_the_unit_says_so(recording: Recording) -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise OSError("gone")  # noqa: EM101

    with pytest.raises(OSError, match="gone"):
        list(record.units(failing()))

    file = recording.stop()
    assert [unit.failed for unit in file.units] == [False, True]
    assert [span.failed for span in file.spans] == [False, True]


def test_a_loader_works_while_recording_is_off() -> None:
    assert list(record.units(record.loader(BATCHES))) == BATCHES


LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Images(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.full((4,), float(i))

class Stream(IterableDataset):
    def __iter__(self):
        return iter(Images()[i] for i in range(8))

def prepare(worker):
    torch.set_num_threads(1)
"""


@pytest.mark.parametrize(
    ("data", "workers"),
    [
        pytest.param("Images()", 0, marks=pytest.mark.slow),
        ("Images()", 2),
        pytest.param("Stream()", 1, marks=pytest.mark.slow),
    ],
)
def test_workers_of_a_data_loader_record_what_they_load(data: str, workers: int, recording: Recording) -> None:
    pytest.importorskip("torch")
    code, errors = recording.run_program(
        f"""{LOADER}
loader = DataLoader({data}, batch_size=2, num_workers={workers}, worker_init_fn=prepare)
batches = list(record.units(record.loader(loader), items=len))
assert torch.cat(batches).shape == (8, 4)
assert loader.worker_init_fn is prepare
"""
    )

    assert (code, errors) == (0, "")
    files = recording.files()
    (main,) = [file for file in files if file.header.role == ""]
    loading = [file for file in files if file.header.role == "loader_worker"]
    assert [(unit.n, unit.items) for unit in main.units] == [(f"step {n}", 2) for n in range(4)]
    waits = [span for span in main.spans if span.n == "input.next"]
    assert [span.b for span in waits] == [32, 32, 32, 32, None]
    assert {span.waits for span in waits} == {workers > 0}
    assert sorted(file.header.worker or 0 for file in loading) == list(range(workers))
    assert all(file.header.parent_pid == main.header.pid and file.close is not None for file in loading)
    loads = [span for file in loading for span in file.spans if span.n == "input.load" and span.b is not None]
    assert [(span.o, span.b, span.waits, span.failed) for span in loads] == [("input", 32, False, False)] * (
        4 if workers else 0
    )
    assert all(span.d >= 20_000_000 for span in loads), "two samples of 10 ms each"
