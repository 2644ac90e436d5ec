"""JSON Pointers in words."""

from __future__ import annotations

import pytest

from longpole.report.text.pointers import Place, say_pointer
from tests.report_builder import make_ledger, make_report, make_row

LEDGER = make_ledger({"compute": 5}, {})
REPORT = make_report([make_row(4, [LEDGER, LEDGER]), make_row(7, [LEDGER])])


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("/ledger/objects/input/hidden_ns", Place(None, "input", "hidden part")),
        ("/ranks/1/ledger/objects/input/service_ns", Place(7, "input", "time in all")),
        ("/ranks/0/ledger/device/idle_ns", Place(4, "device", "idle time")),
        ("/ranks/0/ledger/idle_ns", Place(4, "idle time")),
        ("/ranks/0/device_span/busy_ns", Place(4, "time on the device")),
        ("/ranks/0/units/1/period_ns", Place(4, "ProfilerStep#4", "period")),
        ("/ranks/1", Place(7, "all figures")),
        ("/ranks", Place(None, "ranks")),
        ("/run/world_size", Place(None, "number of ranks")),
        ("/unit/items/kind", Place(None, "items of a step")),
        ("/unit/period_ns/p95", Place(None, "period of a step", "P95")),
        ("/clock/1/uncertainty_ns", Place(7, "clock", "uncertainty")),
        ("/critical_path", Place(None, "critical path")),
        ("/ranks/99/ledger/wall_ns", Place(None, "no. 99", "wall")),
        ("/run/environment/a~1b~0c", Place(None, "environment", "a/b~c")),
    ],
)
def test_a_pointer_is_said_in_words(pointer: str, place: Place) -> None:
    assert say_pointer(pointer, REPORT) == place


def test_a_hostile_unit_name_is_escaped() -> None:
    report = make_report([make_row(0, [LEDGER])])
    report.ranks[0].units[0].name = "\x1b[2J"

    assert say_pointer("/ranks/0/units/0/period_ns", report) == Place(0, "\\x1b[2J", "period")
