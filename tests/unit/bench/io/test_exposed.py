"""Exposed time: an identity of its parts, wrong bytes found, and a thread that hides what it can."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from longpole.bench.io.exposed import ExposureOptions, SaveInStep, SaveInThread, Saver, measure_exposure
from longpole.bench.io.formats import Raw
from longpole.bench.io.storage import read_storage
from longpole.records.ledger import Unknown
from tests.io_benches import SIZE, make_bench

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from longpole.bench.io.contents import Tensors
    from longpole.bench.io.workbench import Workbench
    from longpole.records.bench_io import IoExposure


def measure(
    tmp_path: Path, savers: list[Saver], *, pairs: int = 5, every_s: float | None = None, step_s: float = 0.0
) -> list[IoExposure]:
    if read_storage(tmp_path).is_memory():
        pytest.skip("the folder for temporary files lies in memory")
    options = ExposureOptions(size_bytes=SIZE, pairs=pairs, every_s=every_s, seed=1, clock_ns=time.perf_counter_ns)

    def compute(steps: int) -> None:
        time.sleep(min(steps * step_s, 0.05))

    bench = make_bench(tmp_path)
    if any(saver.form == "slow" for saver in savers):
        bench.formats["slow"] = Slow()
    return measure_exposure(bench, savers, compute, options)


class Slow(Raw):
    """Takes its time before it reads what it is to write."""

    def save(self, path: Path, tensors: Tensors) -> None:
        time.sleep(0.02)
        super().save(path, tensors)


class WithoutStaging:
    """Saves in a thread straight from the state, which the step goes on to change (pytorch #144657)."""

    name, says, form = "no staging", "", "slow"

    def start(self, state: dict[str, NDArray[Any]], file: Path, bench: Workbench) -> Callable[[], None]:
        def write() -> None:
            bench.formats[self.form].save(file, state)
            bench.disk.sync_file(file)

        thread = threading.Thread(target=write)
        thread.start()
        return thread.join

    def held_bytes(self) -> int:
        return 0


def test_exposed_is_block_and_slowdown_and_drain_in_every_pair(tmp_path: Path) -> None:
    found = measure(tmp_path, [SaveInStep("raw"), SaveInThread("raw")], step_s=0.001)

    for one in found:
        parts = zip(one.block_ns, one.slowdown_ns, one.drain_ns, strict=True)
        assert one.exposed_ns == [sum(values) for values in parts]
        assert len(one.exposed_ns) == len(one.without_ns) == len(one.service_ns) == one.pairs == 5
        assert (one.evidence, one.correctness.status) == ("measured", "passed")
        assert isinstance(one.interval_ns, tuple)
        assert one.interval_ns[0] <= sum(one.exposed_ns) / 5 <= one.interval_ns[1]
    assert all(value < 100_000 for value in found[0].drain_ns), "what was saved in the step leaves nothing to wait for"


def test_a_state_that_changes_while_it_is_saved_fails(tmp_path: Path) -> None:
    (found,) = measure(tmp_path, [WithoutStaging()])

    assert found.evidence == "failed"
    assert found.reason.startswith("tensor_00: byte 0")
    assert found.reason.endswith("the state was changed while it was being saved")
    assert found.pairs == 1


def test_a_copy_that_is_staged_first_is_what_it_was(tmp_path: Path) -> None:
    (found,) = measure(tmp_path, [SaveInThread("slow")])

    assert (found.evidence, found.correctness.samples) == ("measured", 5)
    assert isinstance(found.peak_bytes, Unknown) or found.peak_bytes >= SIZE


def test_a_save_that_is_not_durable_when_it_is_done_fails(tmp_path: Path) -> None:
    class NoSync(SaveInStep):
        def start(self, state: dict[str, NDArray[Any]], file: Path, bench: Workbench) -> Callable[[], None]:
            bench.formats[self.form].save(file, state)
            return lambda: None

    (found,) = measure(tmp_path, [NoSync("raw")])

    assert found.reason == "the file is not on the device when the save says that it is done"


def test_an_error_in_the_thread_reaches_who_waits(tmp_path: Path) -> None:
    class Full(Raw):
        def save(self, path: Path, tensors: Tensors) -> None:
            del path, tensors
            raise OSError(28, "No space left on device")

    bench = make_bench(tmp_path)
    bench.formats["raw"] = Full()

    with pytest.raises(OSError, match="No space left"):
        SaveInThread("raw").start(bench.content.tensors(SIZE), tmp_path / "file", bench)()


def test_below_five_pairs_there_is_no_interval(tmp_path: Path) -> None:
    (found,) = measure(tmp_path, [SaveInStep("raw")], pairs=2)

    assert found.interval_ns == Unknown("an interval needs 5 pairs, there are 2")


def test_a_share_needs_to_know_how_often_it_is_saved(tmp_path: Path) -> None:
    (known,) = measure(tmp_path, [SaveInStep("raw")], every_s=10.0)
    assert isinstance(known.exposed_share, tuple)
    assert isinstance(known.estimate_ns, int)
    assert known.exposed_share[0] == pytest.approx(known.estimate_ns / 10e9, abs=1e-6)
