"""Which edges, and how much of them, a selector is about."""

from __future__ import annotations

import pytest

from longpole.graph.kinds import EdgeKind
from longpole.whatif.selection import BLOCKING, section_parts, span_edges, thread_time, waits_inside
from longpole.whatif.selector import parse_selector
from tests.build import LOADER, OPTIMIZER, Script
from tests.run_graphs import Run, replayed


def _run() -> Run:
    """Draw two ranks: load, a gemm on stream 7, an all-reduce on stream 20, a copy, an optimizer's kernel."""
    scripts = [Script(rank=r, base_ns=0, world_size=2, path=f"rank{r}.json") for r in range(2)]
    for script in scripts:
        for step in range(3):
            at = 1000.0 * step
            script.step(step, at, at + 1000)
            script.span(LOADER, at + 10, at + 110)
            copy = script.call("cudaMemcpyAsync", at + 60, at + 65)
            script.copy("htod", at + 70, at + 90, copy, size_bytes=1 << 20)
            script.kernel(at + 130, at + 330, script.launch(at + 120, at + 123), name="gemm")
            script.collective(at + 335, at + 500, script.launch(at + 124, at + 127), stream=20)
            script.span(OPTIMIZER, at + 140, at + 200)
            script.kernel(at + 505, at + 600, script.launch(at + 150, at + 153), name="adam")
            script.sync(at + 210, at + 610, name="cudaDeviceSynchronize")
    return replayed(*scripts)


RUN = _run()


def _spans(text: str, place: int = 0) -> list[str]:
    """Return the kinds and names of the selected edges of a rank's first unit."""
    draft = RUN.draft()
    rank = RUN.graph.ranks[place]
    found = []
    for edge in span_edges(draft, place, parse_selector(text)).tolist():
        point = int(RUN.graph.edges.dst[edge]) - int(RUN.graph.base[place])
        row = int(rank.row[point])
        if rank.time_ns[point] < 1_000_000:
            found.append(rank.names[rank.spans.name[row]].split("_")[0])
    return sorted(found)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("compute", ["adam", "gemm"]),
        ("collective", ["ncclDevKernel"]),
        ("kind:all_reduce", ["ncclDevKernel"]),
        ("kind:all_gather", []),
        ("input", ["Memcpy HtoD (Pinned -> Device)"]),
        ("name:gemm|adam", ["adam", "gemm"]),
        ("name:^nccl", ["ncclDevKernel"]),
        ("stream:20", ["ncclDevKernel"]),
        ("stream:7&compute", ["adam", "gemm"]),
        ("rank:0&compute", ["adam", "gemm"]),
        ("rank:1&compute", []),
        ("stage:optimizer", ["adam"]),
        ("stage:optimizer&name:gemm", []),
        ("collective&stream:7", []),
        ("output", []),
    ],
)
def test_spans(selector: str, names: list[str]) -> None:
    assert _spans(selector) == names


def test_of_a_collective_only_the_transfer_is_selected() -> None:
    draft = RUN.draft()
    edges = span_edges(draft, 0, parse_selector("collective"))

    assert {EdgeKind(kind) for kind in RUN.graph.edges.kind[edges].tolist()} == {EdgeKind.TRANSFER}


def _inside_us(text: str, place: int = 0) -> float:
    draft = RUN.draft()
    parts = section_parts(draft, place, thread_time(draft, place, parse_selector(text)))
    return float(parts.inside_ns.sum()) / 3000


@pytest.mark.parametrize(
    ("selector", "us"),
    [
        ("input", 100),
        ("name:DataLoader", 100),
        ("name:Memcpy", 5),  # the call; its span has a name of its own
        ("rank:0&input", 100),
        ("rank:1&input", 0),
        ("stream:7", 0),  # threads have no streams
        ("kind:all_reduce", 0),
        ("stage:optimizer", 60),
    ],
)
def test_time_on_threads(selector: str, us: float) -> None:
    assert _inside_us(selector) == pytest.approx(us, abs=0.01)


def test_of_a_call_that_waited_its_own_floor_can_be_selected() -> None:
    assert 0 < _inside_us("name:Synchronize") < 20


def test_waits_lie_inside_selected_time_as_a_whole_or_not_at_all() -> None:
    draft = RUN.draft()

    def waits(text: str) -> list[EdgeKind]:
        edges = waits_inside(draft, 0, thread_time(draft, 0, parse_selector(text)))
        return [EdgeKind(kind) for kind in RUN.graph.edges.kind[edges].tolist()]

    assert len(waits("name:Synchronize")) == 3
    assert set(waits("name:Synchronize")) <= BLOCKING
    assert waits("input") == []
    assert waits("stage:optimizer") == []


def test_what_earlier_changes_took_is_no_longer_there() -> None:
    draft = RUN.draft()
    threads = thread_time(draft, 0, parse_selector("input"))
    parts = section_parts(draft, 0, threads)
    draft.shorten(0, threads, parts, 0.25)

    left = section_parts(draft, 0, thread_time(draft, 0, parse_selector("name:DataLoader")))

    assert left.inside_ns.sum() / 3000 == pytest.approx(25)
