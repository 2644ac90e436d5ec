"""Candidates: their order, what all bring together, what is said where nothing can be replayed."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from longpole.advice.catalogue import conflicts_of, load_catalogue
from longpole.records.ledger import Unknown
from tests.catalogue_runs import GEMM, OWN_LOADER, WORKER_LOADER, Collective, Job, finding, proposed, run_of

LOADING_US, LOGGING_US = 8000.0, 1500.0
BOTH = Job(before=((OWN_LOADER, LOADING_US),), after=(("log_metrics", LOGGING_US),))
LARGE = Job(ranks=2, collectives=(Collective(kind="all_reduce", dur=2000.0),))


def test_the_most_gainful_comes_first() -> None:
    found = proposed(BOTH)
    shares = [e.predicted_gain_share for e in found.entries if isinstance(e.predicted_gain_share, float)]

    assert shares == sorted(shares, reverse=True)
    assert found.entries[0].object == "input"
    assert found.entries[-1].id in ("input.trace_path", "output.trace_drain")


def test_the_predicted_period_and_share_agree() -> None:
    for entry in proposed(BOTH).entries:
        if isinstance(entry.predicted_gain_share, float):
            assert isinstance(entry.predicted_period_ns, int)
            period_us = entry.predicted_period_ns / 1000
            assert 1 - period_us / (4023 + LOADING_US + LOGGING_US + 1) == pytest.approx(
                entry.predicted_gain_share, abs=0.001
            )


def test_savings_that_do_not_meet_add_up() -> None:
    """The loader's half and the logging lie behind one another on one thread."""
    together = proposed(replace(BOTH, before=((WORKER_LOADER, LOADING_US),))).together

    assert together is not None
    assert together.ids == ["input.add_workers", "output.async_log"]
    assert together.saving_ns == pytest.approx(together.sum_ns, rel=0.01)


def test_savings_that_meet_are_less_than_their_sum() -> None:
    """Workers hide the loader but for 2.5 ms; a cache halves what is left of it, not what is gone."""
    together = proposed(BOTH).together

    assert together is not None
    assert together.ids == ["input.prefetch", "input.cache", "output.async_log"]
    assert together.sum_ns == pytest.approx((5500 + 4000 + 1500) * 1000, rel=0.001)
    assert isinstance(together.saving_ns, int)
    assert 7_000_000 <= together.saving_ns <= 8_500_000


def test_rows_that_exclude_each_other_are_not_replayed_together() -> None:
    found = proposed(LARGE)
    excluded = conflicts_of(load_catalogue())
    gaining = [e.id for e in found.entries if e.id.startswith("collective.split")]

    assert gaining == ["collective.split_fused", "collective.split_buckets", "collective.split_coarse"]
    assert found.together is None or all(
        other not in excluded[one] for one in found.together.ids for other in found.together.ids
    )


def test_two_ways_to_one_change_count_once() -> None:
    """Caching and moving the preprocessing are both replayed as half of the loader's time."""
    together = proposed(BOTH).together

    assert together is not None
    assert "input.cache" in together.ids
    assert "input.move_preprocessing" in together.left_out


def test_the_ceiling_is_what_the_ledger_charges() -> None:
    entry = next(e for e in proposed(BOTH).entries if e.id == "input.cache")

    assert entry.ceiling_ns == pytest.approx(LOADING_US * 1000, rel=0.01)


def test_a_finding_raises_the_ceiling_and_is_named() -> None:
    entry = next(e for e in proposed(BOTH, [finding("logging", 20_000_000)]).entries if e.id == "output.async_log")

    assert entry.ceiling_ns == 20_000_000
    assert entry.findings == ["f1"]


def test_without_a_replay_there_are_ceilings_only() -> None:
    run = run_of(BOTH)
    assert not isinstance(run.replayed, Unknown)
    refused = replace(run.replayed, why_refused="22 % of the path is unexplained")
    found = proposed(replace(run, replayed=refused))

    assert found.together is None
    entries = [e for e in found.entries if e.changes]
    assert entries
    for entry in entries:
        assert isinstance(entry.predicted_period_ns, Unknown)
        assert "22 % of the path is unexplained" in entry.refused
        assert entry.ceiling_ns
        assert entry.command
    ceilings = [e.ceiling_ns for e in entries if isinstance(e.ceiling_ns, int)]
    assert ceilings == sorted(ceilings, reverse=True)


def test_the_error_is_that_of_recorded_pairs_and_never_of_the_replay() -> None:
    entry = proposed(BOTH).entries[0]

    assert isinstance(entry.error_share, Unknown)
    assert "no pairs of recordings" in entry.error_share.unknown


def test_options_of_a_finding_are_replayed_where_a_row_removes_its_cause() -> None:
    job = Job(after=(("the_cat_walks_by", 2000.0),))
    found = proposed(job, [finding("gc", what_if=("--remove name:the_cat",))])
    entry = next(e for e in found.entries if e.id == "host.control_gc")

    assert entry.changes == ["--set name:the_cat=0"]
    assert entry.predicted_gain_share == pytest.approx(2001 / 6024, abs=0.01)
    assert entry.command == "longpole whatif PATH --set name:the_cat=0"


def test_what_a_replayed_finding_costs_stands_in_for_a_change_that_cannot_be_replayed() -> None:
    """One size only: no cost model, so that joining cannot be replayed; the finding knew a price."""
    same = Job(ranks=2, collectives=(Collective(kind="all_reduce", dur=60.0, bytes=1000),) * 12)
    known = msgspec.structs.replace(finding("many_small_collectives", 500_000), basis="replay")
    entry = next(e for e in proposed(same, [known]).entries if e.id == "collective.fuse_small")

    assert entry.refused == ""
    assert entry.predicted_gain_share == pytest.approx(500 / (4023 + 12 * 61), rel=0.02)
    assert "f1 costs" in entry.assumptions[-1]


def test_without_such_a_finding_it_is_refused_with_the_reason() -> None:
    same = Job(ranks=2, collectives=(Collective(kind="all_reduce", dur=60.0, bytes=1000),) * 12)
    entry = next(e for e in proposed(same).entries if e.id == "collective.fuse_small")

    assert "no cost model for all_reduce" in entry.refused


def test_a_rare_stall_is_predicted_in_the_mean() -> None:
    save = Job(after=(("save_checkpoint", 8000.0),), rare=3)
    entry = next(e for e in proposed(save).entries if e.id == "output.async_checkpoint")

    assert any("in the mean" in text for text in entry.assumptions)
    assert entry.predicted_gain_share == pytest.approx(1600 / 5623, abs=0.01)


def test_what_is_paid_once_has_no_prediction_per_unit() -> None:
    entry = next(
        e for e in proposed(BOTH, [finding("recompilation", once=True)]).entries if e.id == "host.stop_recompiling"
    )

    assert "only marked units pay for it" in entry.refused


def test_names_in_steady_units_give_no_gain_to_what_was_paid_once() -> None:
    """A recorded run searched in one unit; its steady ones only ask whether they are being compiled."""
    job = replace(BOTH, before=(("checkpoint.py(1155): _is_compiling", 3000.0),))
    entry = next(
        e for e in proposed(job, [finding("per_shape_search", once=True)]).entries if e.id == "host.stop_recompiling"
    )

    assert "only marked units pay for it" in entry.refused
    assert isinstance(entry.predicted_gain_share, Unknown)


def test_commands_are_quoted_for_a_shell() -> None:
    from longpole.advice.figures import run_view
    from longpole.advice.propose import propose
    from longpole.pipeline.replays import scene_of

    scene = scene_of(run_of(BOTH))
    assert scene.ground is not None
    found = propose(load_catalogue(), run_view(scene, []), scene.ground, ["my traces/"])
    entry = next(e for e in found.entries if e.id == "output.async_log")

    assert entry.command.startswith("longpole whatif 'my traces/' --off-path 'output&name:")


def test_a_busy_device_is_left_alone() -> None:
    """Nothing waits: no candidate gains anything, and none is proposed for the input, the host or communication."""
    found = proposed(Job(kernels=((GEMM, 20000.0),)))

    assert [e.id for e in found.entries] == []
    assert found.together is None
