"""From suspects to findings: priced, in order, without doubles, and one of them the long pole.

Rules are stood in for by suspects that say what they would remove: so many µs of each step's loader.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from longpole.advice import diagnose as module
from longpole.advice.diagnose import diagnose, unit_word
from longpole.advice.removal import without_time
from longpole.advice.suspect import Suspect
from longpole.records.ledger import Unknown
from tests.scenes import loading_job, scene_of, team

if TYPE_CHECKING:
    from longpole.advice.diagnose import Diagnosis
    from longpole.advice.scene import Scene

US = 1000


@pytest.fixture
def scene() -> Scene:
    """Steps of 1000 µs, half of it in the loader."""
    return scene_of(loading_job(*(500.0,) * 6))


@pytest.fixture
def diagnosed(monkeypatch: pytest.MonkeyPatch) -> Any:
    def with_suspects(scene: Scene, *suspects: Suspect) -> Diagnosis:
        monkeypatch.setattr(module, "RULES", (SimpleNamespace(find=lambda _: list(suspects)),))
        return diagnose(scene)

    return with_suspects


def _suspect(scene: Scene, cause: str, us: float, **more: Any) -> Suspect:
    """Suspect a cause whose removal saves so many µs per step: that share of the loader's 500."""
    view = scene.views[0]
    remove = without_time({0: [(view.main, view.activity_time("data_loader"))]}, left={0: 1 - us / 500})
    ranks = more.pop("ranks", [0])
    return Suspect(cause=cause, ranks=ranks, says="it costs {cost}", evidence=[], remove=[remove], **more)


def _lines(found: Diagnosis) -> list[tuple[str, int]]:
    return [(finding.cause, round(finding.cost_ns_per_unit / US)) for finding in found.findings]


def test_the_costliest_comes_first_and_is_the_long_pole(scene: Scene, diagnosed: Any) -> None:
    found = diagnosed(scene, _suspect(scene, "gc", 100), _suspect(scene, "logging", 300))

    assert _lines(found) == [("logging", 300), ("gc", 100)]
    assert [finding.id for finding in found.findings] == ["f1", "f2"]
    assert found.long_pole == "f1"
    assert found.findings[0].says == "it costs 300 µs per step"
    assert found.findings[0].object == "output"
    assert found.findings[0].units == scene.units


def test_what_costs_less_than_three_hundredths_of_the_period_is_left_out(scene: Scene, diagnosed: Any) -> None:
    found = diagnosed(scene, _suspect(scene, "gc", 28), _suspect(scene, "logging", 32))

    assert [cause for cause, _ in _lines(found) if cause != "gpu_work"] == ["logging"]


def test_memory_is_spoken_of_whatever_it_costs(scene: Scene, diagnosed: Any) -> None:
    found = diagnosed(scene, _suspect(scene, "leak", 0, always=True), _suspect(scene, "gc", 200))

    assert _lines(found) == [("gc", 200), ("leak", 0)]


def test_one_finding_a_cause_and_set_of_ranks(scene: Scene, diagnosed: Any) -> None:
    found = diagnosed(
        scene, _suspect(scene, "gc", 100), _suspect(scene, "gc", 200), _suspect(scene, "gc", 50, ranks=[1])
    )

    assert _lines(found) == [("gc", 200), ("gc", 50)]


def test_a_hypothesis_goes_where_steady_units_pay_for_anything_else(scene: Scene, diagnosed: Any) -> None:
    guess = _suspect(scene, "protocol", 100, hypothesis=True)
    once = Suspect(cause="cold_start", ranks=[0], says="{cost}", evidence=[], once_ns=3000 * US)

    assert _lines(diagnosed(scene, guess)) == [("protocol", 100)]
    assert _lines(diagnosed(scene, guess, _suspect(scene, "slow_link", 60))) == [("slow_link", 60)]
    assert [cause for cause, _ in _lines(diagnosed(scene, guess, once))] == ["cold_start", "protocol"]


def test_what_may_be_either_of_two_things_costs_from_the_one_to_the_other(scene: Scene, diagnosed: Any) -> None:
    less, as_much = _suspect(scene, "slow_rank", 150), _suspect(scene, "slow_rank", 297)

    open_, told = (
        diagnosed(scene, _suspect(scene, "slow_rank", 300, otherwise=other.remove)).findings[0]
        for other in (less, as_much)
    )

    assert (open_.cost_ns_per_unit, open_.cost_between_ns) == (300 * US, [150 * US, 300 * US])
    assert open_.says == "it costs 150 µs to 300 µs per step"
    assert (told.cost_ns_per_unit, told.cost_between_ns) == (300 * US, [])


def test_a_call_that_waits_is_priced_without_what_it_waits_for(scene: Scene, diagnosed: Any) -> None:
    """Once the pause is gone there is nothing left that the synchronisation hides."""
    waits = _suspect(scene, "host_sync", 500, tier=2)

    alone = diagnosed(scene, waits)
    behind = diagnosed(scene, waits, _suspect(scene, "gc", 500, holds_host=True))
    beside = diagnosed(scene, waits, _suspect(scene, "gc", 500))

    assert _lines(alone) == [("host_sync", 500)]
    assert _lines(behind) == [("gc", 500)]
    assert sorted(_lines(beside)) == [("gc", 500), ("host_sync", 500)]


def test_what_struck_once_is_the_long_pole_only_where_steady_units_wait_for_nothing(
    scene: Scene, diagnosed: Any
) -> None:
    once = Suspect(cause="cold_start", ranks=[0], says="{cost}", evidence=[], once_ns=3000 * US)

    with_steady = diagnosed(scene, once, _suspect(scene, "gc", 200))
    alone = diagnosed(scene, once)

    assert next(f.cause for f in with_steady.findings if f.id == with_steady.long_pole) == "gc"
    assert next(f.cause for f in alone.findings if f.id == alone.long_pole) == "cold_start"
    assert alone.findings[0].says == "3.00 ms in all, once"
    assert (alone.findings[0].once, alone.findings[0].cost_once_ns) == (True, 3000 * US)


def test_less_than_five_hundredths_together_are_no_long_pole(diagnosed: Any) -> None:
    """The device computes for most of the step: then it is the long pole itself."""
    scene = scene_of(loading_job(*(500.0,) * 6, kernel_us=9100))

    found = diagnosed(scene, _suspect(scene, "gc", 350))

    assert _lines(found) == [("gc", 350), ("gpu_work", 0)]
    assert found.long_pole == found.findings[-1].id
    assert "works for 91%" in found.findings[-1].says


def test_waiting_without_a_name_is_no_long_pole_and_says_what_to_record(scene: Scene, diagnosed: Any) -> None:
    found = diagnosed(scene)

    assert (found.findings, found.long_pole) == ([], None)
    assert "90% of the step is spent waiting, most of it for input" in found.why_none.unknown
    assert found.why_none.missing


def test_half_a_record_carries_no_verdict(scene: Scene, diagnosed: Any) -> None:
    scene.digests[0] = msgspec.structs.replace(scene.digests[0], withheld="half of the launches have no kernel")

    found = diagnosed(scene, _suspect(scene, "gc", 200))

    assert _lines(found) == [("unknown_incomplete_trace", 0)]
    assert found.long_pole is None
    assert isinstance(found.why_none, Unknown)
    assert found.findings[0].ranks == [0]


def test_findings_on_collectives_say_whether_they_are_worth_acting_on(diagnosed: Any) -> None:
    scene = scene_of(*team([400, 400], transfer_us=300))
    suspect = Suspect(cause="late_issue", ranks=[0, 1], says="", evidence=[], ledger_ns=200 * US)

    found = diagnosed(scene, suspect).findings[0]

    assert "worth acting on" in found.evidence[-1].what
    assert found.evidence[-1].value == pytest.approx(300 / 800, abs=0.01)
    assert found.basis == "ledger"
    assert found.rests_on == 1.0


def test_units_are_called_what_they_are(scene: Scene) -> None:
    assert unit_word(scene) == "step"
