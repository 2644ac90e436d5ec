"""What a cause costs: what the median period falls by in the replay, else the mean, else what the ledger says.

main     ├ loader ┤ 50 ├ launch ┤├─ sync ─┤ 195 ┤       a step of 500 µs and the loader's time
device                     ├ gemm ┤
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from longpole.advice.pricing import price
from longpole.advice.removal import without_time
from longpole.advice.suspect import Suspect
from longpole.graph.kinds import EdgeKind
from tests.scenes import loading_job, scene_of

if TYPE_CHECKING:
    from longpole.advice.scene import Scene
    from longpole.advice.suspect import Removal
    from longpole.whatif.draft import Draft

US = 1000
EVENLY = (300.0,) * 6
ONCE = (0.0, 0.0, 0.0, 300.0, 0.0, 0.0)


def _suspect(*remove: Removal, **more: Any) -> Suspect:
    return Suspect(cause="data_loader", ranks=[0], says="", evidence=[], remove=remove, **more)


def _no_loader(scene: Scene) -> Removal:
    view = scene.views[0]
    return without_time({0: [(view.main, view.activity_time("data_loader"))]})


def test_it_costs_what_the_median_period_falls_by() -> None:
    scene = scene_of(loading_job(*EVENLY))

    found = price(scene, _suspect(_no_loader(scene)))

    assert (found.statistic, found.basis) == ("median", "replay")
    assert found.cost_ns == found.ceiling_ns == found.weight_ns == pytest.approx(300 * US, abs=US)
    assert found.share == pytest.approx(300 / 800, abs=0.01)


def test_what_strikes_one_unit_of_five_is_told_by_the_mean() -> None:
    """The first unit has no period: five have one, one of them loads."""
    scene = scene_of(loading_job(*ONCE))

    found = price(scene, _suspect(_no_loader(scene)))

    assert (found.statistic, found.basis) == ("mean", "replay")
    assert found.cost_ns == pytest.approx(60 * US, abs=US)
    assert found.share == pytest.approx(60 / 560, abs=0.01)


def test_a_cost_in_every_unit_stays_a_median_one_where_it_differs() -> None:
    """The mean is larger than the median, which is not small for all that."""
    scene = scene_of(loading_job(100, 100, 100, 100, 100, 600))

    found = price(scene, _suspect(_no_loader(scene)))

    assert found.statistic == "median"
    assert found.cost_ns == pytest.approx(100 * US, abs=US)
    assert found.weight_ns == pytest.approx(200 * US, abs=US)


def test_what_is_given_already_is_not_saved_again() -> None:
    scene = scene_of(loading_job(*EVENLY))
    remove = _no_loader(scene)

    assert price(scene, _suspect(remove), [remove]).cost_ns == 0


def test_without_a_removal_the_ledger_stands_in() -> None:
    scene = scene_of(loading_job(*EVENLY))

    found = price(scene, _suspect(ledger_ns=80 * US))

    assert (found.cost_ns, found.statistic, found.basis) == (80 * US, "mean", "ledger")
    assert found.share == pytest.approx(0.1)


def test_a_removal_that_the_replay_refuses_is_none() -> None:
    scene = scene_of(loading_job(*EVENLY))

    def refuse(draft: Draft) -> None:
        """Say no."""
        draft.refusals.append("not here")

    assert price(scene, _suspect(refuse, ledger_ns=80 * US)).basis == "ledger"


def test_a_removal_that_makes_it_longer_costs_nothing() -> None:
    scene = scene_of(loading_job(*EVENLY))

    def slower(draft: Draft) -> None:
        """Let every kernel take twice as long."""
        edges = np.flatnonzero(draft.graph.edges.kind == EdgeKind.DURATION)
        draft.set_length(edges, 2 * draft.length_ns[edges])
        draft.rows += len(edges)

    found = price(scene, _suspect(slower))

    assert (found.cost_ns, found.weight_ns, found.share) == (0, 0, 0.0)


def test_what_marked_units_paid_counts_over_all_recorded_ones() -> None:
    """It is no cost of a steady unit; for the order of findings its mean counts."""
    scene = scene_of(loading_job(*EVENLY))

    found = price(scene, _suspect(once_ns=2400 * US))

    assert (found.cost_ns, found.statistic) == (0, "one_off")
    assert found.weight_ns == 400 * US
    assert found.share == pytest.approx(0.5, abs=0.01)


def test_the_ceiling_is_never_below_the_cost() -> None:
    scene = scene_of(loading_job(*EVENLY))
    remove = _no_loader(scene)

    assert price(scene, _suspect(remove, ceiling_ns=10)).ceiling_ns == pytest.approx(300 * US, abs=US)
    assert price(scene, _suspect(remove, ceiling_ns=900 * US)).ceiling_ns == 900 * US


def test_what_costs_nothing_does_so_in_every_unit() -> None:
    found = price(scene_of(loading_job(*EVENLY)), _suspect())

    assert (found.cost_ns, found.statistic, found.basis) == (0, "median", "ledger")
