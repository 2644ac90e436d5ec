"""Figures of a run: what each is in a job that is known, and what is not known rather than 0."""

from __future__ import annotations

import pytest

from longpole.advice.figures import FIGURES, compute_figures, run_view
from longpole.advice.fillings import PLACEHOLDERS, fill, fillings_of, placeholders_of
from longpole.pipeline.replays import scene_of
from longpole.records.ledger import Unknown
from longpole.whatif.change import Scale, parse_change
from tests.catalogue_runs import GEMM, MB, OWN_LOADER, WORKER_LOADER, Collective, Job, finding, run_of

LOADING = Job(before=((OWN_LOADER, 8000.0),))
TEAM = Job(
    ranks=2,
    slow={1: 1.1},
    shapes={0: "[[8, 128]]", 1: "[[8, 192]]"},
    collectives=(
        *(Collective(kind="all_reduce", dur=60.0, bytes=1000),) * 3,
        Collective(kind="all_gather", dur=900.0, bytes=64 * MB),
    ),
)


def _figures(job: Job, *causes: str) -> dict[str, object]:
    return dict(compute_figures(run_view(scene_of(run_of(job)), [finding(cause) for cause in causes])))


def test_every_figure_is_there() -> None:
    assert set(_figures(LOADING)) == set(FIGURES) == set(_figures(TEAM))


def test_the_ledger_adds_up() -> None:
    figures = _figures(TEAM)
    objects = ("compute", "collective", "input", "artifact", "state", "output", "host", "unknown")

    assert sum(figures[f"{name}.exposed_share"] for name in objects) == pytest.approx(1.0)  # type: ignore[misc]
    assert figures["device.busy_share"] + figures["device.idle_share"] == pytest.approx(1.0)  # type: ignore[operator]


def test_of_one_rank_that_loads() -> None:
    figures = _figures(LOADING, "data_loader")

    assert figures["input.waiting_share"] == pytest.approx(8000 / 12023, abs=0.001)
    assert figures["loader.seen"] is True
    assert figures["loader.has_workers"] is False
    assert figures["cause.data_loader"] == 0.1
    assert figures["cause.gc"] == 0.0
    assert figures["run.ranks"] == figures["run.world_size"] == 1
    assert figures["kernel.count"] == 1
    assert figures["kernel.mean_ns"] == pytest.approx(4_000_000)
    assert figures["kernel.matmul_share"] == 1.0
    assert figures["kernel.full_precision_share"] == 0.0
    assert (figures["collective.count"], figures["collective.costliest"], figures["collective.kinds"]) == (0, "", [])


def test_of_workers_and_of_a_loader_that_does_not_say() -> None:
    assert _figures(Job(before=((WORKER_LOADER, 900.0),)))["loader.has_workers"] is True
    assert isinstance(_figures(Job(before=(("fetch_batch", 900.0),)))["loader.has_workers"], Unknown)


def test_of_two_ranks() -> None:
    figures = _figures(TEAM)

    assert figures["collective.count"] == 4
    assert figures["collective.small_count"] == 3
    assert figures["collective.costliest"] == "all_gather"
    assert figures["collective.largest_bytes"] == 64 * MB
    assert figures["collective.kinds"] == ["all_gather", "all_reduce"]
    assert figures["work.imbalance"] == pytest.approx(200 / 4200, abs=0.001)
    assert figures["batch.size_spread"] == pytest.approx(1 - 128 / 192)
    assert figures["run.all_ranks"] is True
    # Rank 0 waits 400 µs for rank 1 in the first operation: 200 µs in the mean over both.
    assert figures["collective.waiting_share"] == pytest.approx(200 / 5510, abs=0.005)


def test_what_a_trace_does_not_say_is_not_known() -> None:
    figures = _figures(LOADING)

    for name in ("memory.peak_share", "unit.items", "batch.size_spread", "copy.input_bytes", "overlap.slowdown"):
        assert isinstance(figures[name], Unknown)
    assert figures["memory.peak_share"].missing == ["peak device memory"]  # type: ignore[attr-defined]


def test_without_a_search_for_causes_none_is_known_to_be_absent() -> None:
    figures = compute_figures(run_view(scene_of(run_of(LOADING)), None))

    assert all(isinstance(figures[name], Unknown) for name in FIGURES if name.startswith("cause."))


def test_one_of_several_ranks() -> None:
    """Three ranks are missing: what collectives wait and what they move cannot be told apart."""
    from dataclasses import replace

    import msgspec

    run = run_of(TEAM)
    alone = [msgspec.structs.replace(run.run.digests[0], world_size=4)]
    view = replace(run_view(scene_of(run), []), digests=alone)
    figures = compute_figures(view)

    assert figures["run.world_size"] == 4
    assert isinstance(figures["run.all_ranks"], Unknown)


def test_placeholders_are_filled_from_the_run() -> None:
    fillings = fillings_of(run_view(scene_of(run_of(TEAM)), []))

    assert fillings["kind"] == "all_gather"
    assert fillings["small_kind"] == "all_reduce"
    assert fill("--fuse {small_kind}={bucket}", fillings) == "--fuse all_reduce=25MB"
    assert fillings["half"] == "32MB"
    assert isinstance(fillings["link_factor"], Unknown)
    assert set(fillings) == set(PLACEHOLDERS)


def test_a_run_without_collectives_fills_nothing() -> None:
    fillings = fillings_of(run_view(scene_of(run_of(Job(kernels=((GEMM, 100.0),)))), []))

    assert all(isinstance(value, Unknown) for value in fillings.values())
    assert isinstance(fill("--set kind:{kind}=0.5x", fillings), Unknown)
    assert fill("--async-copy", fillings) == "--async-copy"


def test_what_compiles_is_selected_by_its_class_and_not_by_words_in_names() -> None:
    """Regions that were compiled once run in every unit, and a graph's launch is no capture."""
    after = (
        ("_compile.compile_inner (dynamo_timed)", 1500.0),
        ("Torch-Compiled Region: 0/0", 900.0),
        ("a & b: recompile graph", 300.0),
    )
    fillings = fillings_of(run_view(scene_of(run_of(Job(after=after))), []))

    filled = fill("--remove name:{compiling}", fillings)
    assert isinstance(filled, str)
    (change,) = [parse_change(filled)]
    assert isinstance(change, Scale)
    pattern = change.selector.name_pattern()
    assert pattern is not None
    assert [pattern.search(name) is not None for name, _ in after] == [True, False, True]


def test_braces_of_a_regular_expression_are_no_placeholders() -> None:
    assert placeholders_of(r"--remove name:a{2}|\d{1,3}") == set()
