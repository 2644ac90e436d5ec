"""The trace generator: what it says about its files is what stands in them, read back by other means."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

GENERATOR = Path(__file__).resolve().parents[3] / "benchmarks" / "generate_trace.py"
Event = dict[str, Any]
Span = tuple[int, int]
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def run_generator(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(GENERATOR), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def generate(*arguments: str | Path) -> list[dict[str, Any]]:
    done = run_generator(*arguments, "--truth")
    assert done.returncode == 0, done.stderr
    files: list[dict[str, Any]] = json.loads(done.stdout)["files"]
    return files


def read_trace(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    trace: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return trace


def events_of(path: Path) -> list[Event]:
    events: list[Event] = read_trace(path)["traceEvents"]
    return events


def span_of(event: Event) -> Span:
    start_ns, length_ns = Decimal(event["ts"]) * 1000, Decimal(event["dur"]) * 1000
    assert start_ns == int(start_ns)
    return int(start_ns), int(start_ns + length_ns)


def is_collective(event: Event) -> bool:
    return event.get("cat") == "kernel" and event["name"].startswith("nccl")


def covered_ns(*groups: list[Span]) -> int:
    """Measure a union by sweeping over its edges: another way than the generator's."""
    edges = sorted((at, change) for spans in groups for start, end in spans for at, change in ((start, 1), (end, -1)))
    total_ns, depth, since = 0, 0, 0
    for at, change in edges:
        total_ns += at - since if depth else 0
        depth, since = depth + change, at
    return total_ns


def measure(events: list[Event]) -> dict[str, int]:
    """Measure a trace's device from its events alone."""
    compute = [span_of(e) for e in events if e.get("cat") == "kernel" and not is_collective(e)]
    collective = [span_of(e) for e in events if is_collective(e)]
    copies = [span_of(e) for e in events if e.get("cat") in ("gpu_memcpy", "gpu_memset")]
    everything = compute + collective + copies
    span_ns = max(end for _, end in everything) - min(start for start, _ in everything)
    steps = sorted(
        span_of(e) for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")
    )
    return {
        "events": len(events),
        "steps": len(steps),
        "units_wall_ns": steps[-1][1] - steps[0][0],
        "span_ns": span_ns,
        "busy_ns": covered_ns(everything),
        "idle_ns": span_ns - covered_ns(everything),
        "compute_ns": covered_ns(compute),
        "collective_ns": covered_ns(collective),
        "collective_exposed_ns": covered_ns(compute, collective) - covered_ns(compute),
        "copy_ns": covered_ns(copies),
        "copy_exposed_ns": covered_ns(everything) - covered_ns(compute, collective),
    }


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("generated") / "trace.json"
    generate("--steps", "4", "--layers", "2", "--out", path)
    return path


@pytest.mark.parametrize(
    "options", [(), ("--epoch-ts",), ("--tail-metadata", "--gzip"), ("--simple",), ("--seed", "5")]
)
def test_the_printed_figures_are_those_of_the_file(tmp_path: Path, options: tuple[str, ...]) -> None:
    """An independent union over the events of the file gives every printed figure."""
    path = tmp_path / "trace.json"

    [truth] = generate("--steps", "5", "--layers", "2", *options, "--out", path)

    measured = measure(events_of(path))
    assert {key: truth[key] for key in measured} == measured
    assert truth["stored_bytes"] == path.stat().st_size


def test_every_rank_has_its_own_figures_and_says_who_it_is(tmp_path: Path) -> None:
    """With several ranks each file states its rank, and its printed figures are its own."""
    truths = generate("--steps", "3", "--layers", "2", "--ranks", "3", "--out", tmp_path)

    for rank, truth in enumerate(truths):
        trace = read_trace(tmp_path / truth["file"])
        measured = measure(trace["traceEvents"])
        assert (trace["distributedInfo"]["rank"], trace["distributedInfo"]["world_size"]) == (rank, 3)
        assert {key: truth[key] for key in measured} == measured
    assert len({truth["compute_ns"] for truth in truths}) == len(truths)


def test_all_reduces_meet(tmp_path: Path) -> None:
    """No rank leaves an all-reduce before the last one has entered it, and all leave it within 3 µs.

    rank 0   |waiting······|moving|
    rank 1             |···|moving|
    """
    generate("--steps", "3", "--layers", "2", "--ranks", "3", "--out", tmp_path)

    per_rank = [
        sorted(span_of(event) for event in events_of(path) if is_collective(event))
        for path in sorted(tmp_path.iterdir())
    ]
    for members in zip(*per_rank, strict=True):
        ends = [end for _, end in members]
        assert min(ends) > max(start for start, _ in members)
        assert max(ends) - min(ends) < 3_000


def test_collectives_carry_their_metadata(trace: Path) -> None:
    """Modern NCCL kernels name collective, size, type and group."""
    collectives = [event["args"] for event in events_of(trace) if is_collective(event)]

    assert collectives
    for args in collectives:
        assert args["Collective name"] == "allreduce"
        assert args["In msg nelems"] > 0
        assert args["Process Group Ranks"] == "[0]"


def test_the_mixture_is_that_of_a_recorded_job(tmp_path: Path) -> None:
    """Shares of the kinds of rows lie near those of a recorded training job: 37, 23, 8 and 31 percent."""
    path = tmp_path / "trace.json"
    generate("--steps", "2", "--epoch-ts", "--out", path)

    events = events_of(path)
    shares = Counter(event.get("cat") for event in events)
    expected = {"cpu_op": 0.37, "cuda_runtime": 0.23, "kernel": 0.08, "async_cpu_to_gpu": 0.31}
    for category, share in expected.items():
        assert shares[category] / len(events) == pytest.approx(share, abs=0.02)
    assert {event["tid"] for event in events if event.get("cat") in DEVICE_WORK} == {7, 20, 22}


def test_events_are_not_sorted(trace: Path) -> None:
    """As in real files, the rows do not come in the order of their times."""
    starts = [span_of(event)[0] for event in events_of(trace) if event["ph"] == "X"]

    assert starts != sorted(starts)


def test_every_device_row_has_one_earlier_launch(trace: Path) -> None:
    """The correlation leads from each device row to exactly one runtime call, which began no later."""
    events = events_of(trace)
    calls = {event["args"]["correlation"]: event for event in events if event.get("cat") == "cuda_runtime"}
    rows = [event for event in events if event.get("cat") in DEVICE_WORK]

    assert len(calls) == sum(event.get("cat") == "cuda_runtime" for event in events)
    assert len({event["args"]["correlation"] for event in rows}) == len(rows)
    for row in rows:
        assert span_of(calls[row["args"]["correlation"]])[0] < span_of(row)[0]


def test_host_rows_nest_on_their_thread(trace: Path) -> None:
    """Of two rows of one host thread that overlap, one holds the other."""
    threads: dict[int, list[Span]] = {}
    for event in events_of(trace):
        if event.get("cat") in ("cpu_op", "user_annotation", "cuda_runtime"):
            threads.setdefault(event["tid"], []).append(span_of(event))

    assert len(threads) == 2
    for spans in threads.values():
        open_ends: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


def test_one_seed_gives_one_file(tmp_path: Path) -> None:
    """The same seed gives the same bytes, compressed too; another one gives others."""
    names = ("first", "again", "other")
    for name, seed in zip(names, ("1", "1", "2"), strict=True):
        generate("--steps", "2", "--layers", "1", "--seed", seed, "--gzip", "--out", tmp_path / name)

    first, again, other = ((tmp_path / name).read_bytes() for name in names)
    assert first == again
    assert first != other


def test_the_asked_size_is_met(tmp_path: Path) -> None:
    """A size in bytes is met to within half a step of the largest kind, and a count of rows is at least reached."""
    [by_size] = generate("--bytes", "2MB", "--layers", "1", "--out", tmp_path / "size.json")
    [by_count] = generate("--events", "5000", "--layers", "1", "--out", tmp_path / "count.json")

    step_bytes = by_size["bytes"] / by_size["steps"]
    assert abs(by_size["bytes"] - 2_000_000) < step_bytes
    assert 5_000 <= by_count["events"] < 5_000 + 2 * by_count["events"] / by_count["steps"]


@pytest.mark.parametrize(("option", "behind"), [("--tail-metadata", True), ("--seed=0", False)])
def test_the_time_base_stands_where_it_was_asked_for(tmp_path: Path, option: str, *, behind: bool) -> None:
    """`--tail-metadata` puts the base of all times behind the events."""
    path = tmp_path / "trace.json"
    generate("--steps", "1", "--layers", "1", option, "--out", path)

    text = path.read_text()

    assert (text.index("baseTimeNanoseconds") > text.index("traceEvents")) == behind


def test_pulses_keep_the_device_busy_for_four_fifths(tmp_path: Path) -> None:
    """Each step of a simple trace lasts 10 ms, of which kernels run 8 ms; the time base stands behind the events."""
    path = tmp_path / "pulses.json"
    [truth] = generate("--simple", "--steps", "3", "--out", path)

    events = events_of(path)
    kernels = [span_of(event) for event in events if event.get("cat") == "kernel"]
    for event in events:
        if event.get("cat") == "user_annotation":
            begin, end = span_of(event)
            inside = [span for span in kernels if begin <= span[0] and span[1] <= end]
            assert (end - begin, len(inside), covered_ns(inside)) == (10_000_000, 1_000, 8_000_000)
    assert truth["busy_ns"] * 10 == truth["units_wall_ns"] * 8
    assert path.read_text().index("baseTimeNanoseconds") > path.read_text().index("traceEvents")


@pytest.mark.parametrize("options", [(), ("--epoch-ts", "--gzip")])
def test_copies_multiply_the_figures(tmp_path: Path, options: tuple[str, ...]) -> None:
    """K copies hold K times the steps, rows and busy time of the source, and nothing of two copies is linked."""
    source, copies = tmp_path / "source.json", tmp_path / "copies.json"
    [of_source] = generate("--steps", "2", "--layers", "1", *options, "--out", source)

    [of_copies] = generate("--repeat", source, "3", "--out", copies)

    events = events_of(copies)
    measured = measure(events)
    assert of_copies["devices"] == {"0": {key: measured[key] for key in ("span_ns", "busy_ns", "idle_ns")}}
    assert of_copies["events"] == measured["events"]
    for key in (
        "steps",
        "busy_ns",
        "compute_ns",
        "collective_ns",
        "collective_exposed_ns",
        "copy_ns",
        "copy_exposed_ns",
    ):
        assert measured[key] == 3 * of_source[key]
    correlations = Counter(event["args"]["correlation"] for event in events if event.get("cat") == "cuda_runtime")
    assert set(correlations.values()) == {1}
    steps = [
        event["name"] for event in events if event.get("cat") == "user_annotation" and "ProfilerStep" in event["name"]
    ]
    assert len(set(steps)) == 6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--bytes", "much"), "expected a size such as 1GB"),
        (("--events", "0"), "expected a positive whole number"),
        (("--repeat", str(GENERATOR), "2"), "expected an object with traceEvents"),
        (("--repeat", "nowhere.json", "2"), "nowhere.json"),
        (("--repeat", "nowhere.json", "some"), "expected a positive whole number of copies"),
    ],
)
def test_a_wrong_call_is_refused_in_a_sentence(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    """What cannot be done is said in one line, with exit code 2."""
    done = run_generator(*arguments, "--out", tmp_path / "out.json")

    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
