"""Marks on collectives: who entered, who left, and after a kill who never arrived."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from longpole import record
from longpole.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.span_file_read import SpanFile
    from tests.span_files import Recording

RANK = """
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + os.environ["MEETING"], rank=rank, world_size=2)
early = dist.all_reduce
{marks}
x = torch.ones(4)
early(x)
work = dist.all_reduce(x, async_op=True)
assert isinstance(work, dist.Work)
work.wait()
dist.barrier()
op = dist.P2POp(dist.isend if rank == 0 else dist.irecv, x, 1 - rank)
for work in dist.batch_isend_irecv([op]):
    work.wait()
{then}
"""


def run_ranks(recording: Recording, meeting: Path, text: str) -> list[SpanFile]:
    """Run two ranks to their end; return their files, by rank."""
    programs = [recording.start_program(text, RANK=str(rank), MEETING=str(meeting)) for rank in range(2)]
    ends = [program.communicate(timeout=120) for program in programs]
    assert [program.returncode for program in programs] == [0, 0], ends
    return sorted(recording.files(), key=lambda file: file.rank or 0)


def test_every_operation_is_marked_on_both_sides(recording: Recording, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = RANK.format(marks="marks = record.collectives()", then="marks.restore()\ndist.all_reduce(x)")

    files = run_ranks(recording, tmp_path / "meeting", text)

    assert [(file.rank, file.world_size) for file in files] == [(0, 2), (1, 2)]
    for file, direction in zip(files, ("send", "recv"), strict=True):
        enters = [mark for mark in file.collectives if mark.what == "enter"]
        assert [(mark.kind, mark.seq, mark.b, mark.dtype) for mark in enters] == [
            ("all_reduce", 0, 16, "float32"),
            ("all_reduce", 1, 16, "float32"),
            ("barrier", 2, 0, ""),
            (direction, 0, 16, "float32"),
        ], "one that was imported before is marked too, and none after the marks were taken off"
        assert [mark.members for mark in enters] == [[0, 1], None, None, None]
        assert enters[3].peer == 1 - (file.rank or 0)
        assert file.open_collectives() == []
        waits = [span for span in file.spans if span.n == "all_reduce.wait"]
        assert [(span.o, span.waits) for span in waits] == [("collective", True)]


@pytest.mark.parametrize("write_through", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_who_never_arrived_can_be_read_after_a_kill(write_through: bool, recording: Recording, tmp_path: Path) -> None:
    """Rank 1 stops before the third all-reduce; rank 0 hangs in it, and both are killed."""
    pytest.importorskip("torch")
    there = tmp_path / "there"
    then = f"if rank == 1:\n    time.sleep(600)\nopen({str(there)!r}, 'w').close()\ndist.all_reduce(x)"
    text = RANK.format(marks=f"record.collectives(write_through={write_through})", then=then)
    programs = [recording.start_program(text, RANK=str(r), MEETING=str(tmp_path / "meeting")) for r in range(2)]
    for _ in range(600):
        if there.exists():
            break
        time.sleep(0.1)
    time.sleep(0.5 if write_through else 3)
    for program in programs:
        program.send_signal(signal.SIGKILL)
        program.communicate()

    first, second = sorted(recording.files(), key=lambda file: file.rank or 0)
    (hung,) = first.open_collectives()
    assert (hung.kind, hung.seq) == ("all_reduce", 3)
    if not write_through:
        assert second.open_collectives() == []
    assert all(mark.seq < 3 for mark in second.collectives), "rank 1 never arrived"


def test_marks_without_torch_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.distributed", None)
    with pytest.raises(UsageError, match="import torch"):
        record.collectives()
