"""The closed lists of the design hang together."""

from __future__ import annotations

import pytest

from longpole.errors import InvariantError
from longpole.vocabulary.objects import ACTIVITY_OBJECTS, IDLE_REASONS, MOVED_OBJECTS, OBJECTS, charged_to


def test_every_idle_reason_is_charged_to_an_object() -> None:
    assert {charged_to(reason) for reason in IDLE_REASONS} == {*OBJECTS} - {"compute"}


def test_moved_objects_and_activities_are_objects() -> None:
    assert {*MOVED_OBJECTS} < {*ACTIVITY_OBJECTS} < {*OBJECTS}


@pytest.mark.parametrize(
    ("reason", "charged"),
    [
        *[(name, name) for name in ("input", "artifact", "state", "output", "collective")],
        *[(f"host.{name}", "host") for name in ("gc", "alloc", "compile", "sync", "dispatch", "python")],
        *[(name, "host") for name in ("launch_call", "launch_latency", "kernel_gap")],
        *[(name, "unknown") for name in ("device.unexplained", "unlinked")],
    ],
)
def test_an_idle_reason_is_charged_as_the_design_says(reason: str, charged: str) -> None:
    """DESIGN 3.4, last paragraph."""
    assert charged_to(reason) == charged


def test_a_reason_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvariantError, match="found 'host'"):
        charged_to("host")
