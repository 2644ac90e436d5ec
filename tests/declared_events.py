"""Declared events, drawn at random: valid ones by construction."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from longpole.costs.declared_events import DeclaredEvent, Lifecycle
from longpole.costs.declared_fields import PERIODS, QUEUE_FIELDS
from longpole.vocabulary.objects import MOVED_OBJECTS

_times = st.floats(0.0, 1e5)
_rates = st.floats(1e-3, 1e4)
_sizes = st.integers(0, 10**12)

lifecycles = st.builds(
    Lifecycle,
    requests_per_unit=st.one_of(st.integers(1, 10**4), st.floats(0.01, 1e4)),
    tokens_per_unit=st.integers(1, 10**6),
    units_per_run=st.one_of(st.integers(1, 10**5), st.floats(0.1, 1e5)),
)


@st.composite
def event_values(draw: st.DrawFn) -> dict[str, Any]:
    """Values of an event as a file may give them; what is optional is left out at times."""
    values: dict[str, Any] = {
        "object": draw(st.sampled_from(MOVED_OBJECTS)),
        "bytes": draw(_sizes),
        "bandwidth_gbps": draw(_rates),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "fixed_latency_ms": _times,
        "frequency": st.integers(1, 10**5),
        "overlap_window_ms": _times,
        "blocking_dependency": st.booleans(),
        "name": st.text(max_size=12),
        "serialization_ms": _times,
        "stored_bytes": _sizes,
        "per": st.sampled_from(PERIODS),
    }
    for name in draw(st.sets(st.sampled_from(sorted(optional)))):
        values[name] = draw(optional[name])
    if values["object"] == "output" and draw(st.booleans()):
        values |= dict(zip(QUEUE_FIELDS, (draw(_rates), draw(_rates), draw(_sizes), draw(_times)), strict=True))
    return values


events = event_values().map(lambda values: DeclaredEvent(**values))
