"""What rules return: nothing on a job whose device works all the time, and only causes that the vocabulary has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.advice.findings import RULES
from longpole.advice.suspect import Suspect
from longpole.vocabulary.causes import CAUSES
from tests.build import Script
from tests.scenes import loading_job, scene_of

if TYPE_CHECKING:
    from longpole.advice.suspect import Rule


def _busy(steps: int = 6) -> Script:
    """Draw steps of ten kernels that are launched well ahead; the host waits at the end."""
    script = Script(base_ns=0)
    for number in range(steps):
        at = 1100.0 * number
        for k in range(10):
            call = script.launch(at + 10 + 8 * k, at + 14 + 8 * k)
            script.kernel(at + 20 + 105 * k, at + 124 + 105 * k, call, name=f"gemm_{k}")
        script.sync(at + 100, at + 1074, name="cudaDeviceSynchronize")
        script.step(number, at, at + 1085)
    return script


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__.rsplit(".", 1)[-1])
def test_a_rule_suspects_nothing_that_costs_anything_where_the_device_works(rule: Rule) -> None:
    """Rules may suspect the step's end; what it costs is for pricing to say."""
    scene = scene_of(_busy())

    found = rule.find(scene)

    assert all(suspect.cause in CAUSES and suspect.tier > 0 for suspect in found)


def test_a_loader_is_suspected_by_one_rule_alone() -> None:
    scene = scene_of(loading_job(*(300.0,) * 6))

    causes = [suspect.cause for rule in RULES for suspect in rule.find(scene) if suspect.tier == 0]

    assert causes == ["data_loader"]


def test_unless_said_otherwise_a_suspect_is_recorded_strikes_steady_units_and_is_waited_for() -> None:
    plain = Suspect(cause="gc", ranks=[0], says="", evidence=[])

    assert (plain.grade, plain.once_ns, plain.tier, plain.always) == ("recorded", None, 0, False)
