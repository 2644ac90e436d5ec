"""The page of bench io: what follows comes first, figures carry units, nothing from a record moves the cursor."""

from __future__ import annotations

import pytest

from longpole.bench.io.case import Checked
from longpole.bench.io.decide import decide
from longpole.bench.io.figures import check_all, make_path
from longpole.records.bench_io import BenchIo, IoSkipped, IoStorage, IoWorkload
from longpole.report.text.bench_io import render_bench_io
from tests.io_benches import ROWS, sampled

SIZES = [4096 * 4**power for power in range(8)]


def record() -> BenchIo:
    laws = {
        "torch.load.warm": (2_000_000, 1.0),
        "safetensors.load.warm": (500_000, 8.0),
        "torch.save.fsync": (3_000_000, 0.4),
        "safetensors.save.fsync": (2_000_000, 0.5),
    }
    paths = []
    for name, (latency, rate) in laws.items():
        checked = Checked(differs="writes files of mode 0600 where 0644 is usual") if "s.save" in name else Checked()
        cases = [
            sampled(name, size, [round(latency + size / rate) + place for place in range(20)], checked=checked)
            for size in SIZES
        ]
        paths.append(make_path(ROWS[name], cases, 20.0, cold_method=""))
    found = BenchIo(
        schema="longpole.bench-io/1",
        profile="default",
        semantic_id="io-65536k-float32-0",
        label="night\x1b[2J",
        written_by="test",
        started_at="2026-01-01T00:00:00+00:00",
        status="measured",
        workload=IoWorkload(SIZES[-1], SIZES, "float32", 16, 0, 20, 42, "random", "", 1, 0, 20, 20),
        storage=IoStorage("/data", filesystem="ext4", device="vda"),
        evidence="measured in one process",
        paths=paths,
        skipped=[IoSkipped("device.upload.pinned", "no device: torch finds no GPU here")],
    )
    found.correctness = check_all(paths, [])
    found.decisions = decide(found)
    return found


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    page = render_bench_io(record(), width=width, color=False, written="records/night.json")

    assert max(map(len, page.splitlines())) <= width


def test_the_decision_table_comes_before_the_figures_and_says_what_limits_them() -> None:
    page = render_bench_io(record(), width=80, color=False)
    lines = page.splitlines()

    titles = [line.split("   ")[0] for line in lines if line[:1].isupper()]
    assert titles == [
        "MEASURED  4 paths, every byte of every sample checked",
        "DECISION",
        "LOADS",
        "SAVES",
        "MODELS",
        "NOT MEASURED",
    ]
    words = " ".join(page.split())
    assert "correctness DIFFERS: safetensors.save.fsync: writes files of mode 0600" in words
    assert "ACCEPT safetensors.load.warm instead of torch.load.warm: -87% time" in words
    assert "TUNE no measured path beats torch.save.fsync (171 ms)" in words
    assert "state move 64 MiB to the device not decided no device here" in words


def test_times_rates_and_laws_are_shown_with_what_they_rest_on() -> None:
    words = " ".join(render_bench_io(record(), width=80, color=False).split())

    assert "torch.load.warm 69.1 ms 69.1 ms 0.97 – 20" in words
    assert "torch.load.warm 2.00 ms 1.00 [1.00, 1.00] 2.00 MB 0%" in words


def test_a_record_cannot_move_the_cursor() -> None:
    page = render_bench_io(record(), width=80, color=False)

    assert "\x1b" not in page
    assert "night\\x1b[2J" in page


def test_a_run_that_failed_half_way_decides_nothing() -> None:
    broken = record()
    broken.status, broken.failure, broken.decisions = "failed", "No space left on device", []

    page = render_bench_io(broken, width=80, color=False, written="r.json")

    assert page.startswith("FAILED  No space left on device")
    assert "none: the run did not come to its end" in page
    assert "longpole ledger" not in page
