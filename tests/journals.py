"""Journals for tests: entries in a few words, strategies for any entry, and verdicts as documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from msgspec import UNSET

from longpole.records.journal import (
    BETTER,
    DECISIONS,
    SCOPES,
    VERSION,
    Claim,
    ConfigChange,
    Entry,
    Expected,
    Measured,
    RecordLink,
)
from longpole.records.verdict import VERDICTS

if TYPE_CHECKING:
    from pathlib import Path


def entry(name: str = "change", **parts: Any) -> Entry:
    """An accepted, kept entry without a record; `speedup=` and `before=`, `after=` make its effect."""
    speedup, ends = parts.pop("speedup", None), (parts.pop("before", UNSET), parts.pop("after", UNSET))
    if speedup is not None and "measured" not in parts:
        unit = "" if ends[0] is UNSET else "tokens/s"
        parts["measured"] = Measured(speedup, before=ends[0], after=ends[1], unit=unit, better="higher")
    parts.setdefault("no_record", "a test")
    fixed: dict[str, Any] = {"date": "2026-11-30", "title": name, "decision": "kept", "verdict": "accepted"}
    given: dict[str, Any] = {"v": VERSION, "id": name} | fixed | parts
    return Entry(**given)


texts = st.text(st.characters(codec="utf-8"), max_size=12)
positive = st.floats(1e-6, 1e6)
maybe_positive = st.one_of(st.just(UNSET), positive)
values = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), texts)


@st.composite
def effects(draw: st.DrawFn) -> Measured:
    low, high = sorted((draw(positive), draw(positive)))
    return Measured(
        draw(positive),
        low=low,
        high=high,
        level=draw(st.floats(0.5, 0.99)),
        statistic=draw(texts),
        before=draw(maybe_positive),
        after=draw(maybe_positive),
        unit=draw(texts),
        better=draw(st.sampled_from(("", *BETTER))),
        scope=draw(st.sampled_from(("", *SCOPES))),
        runs=draw(st.lists(st.integers(1, 9), max_size=2)),
        single_run=draw(st.booleans()),
    )


expectations = st.builds(Expected, positive, candidate=texts, source=texts, error_share=maybe_positive)
changes = st.builds(ConfigChange, texts, before=st.one_of(st.just(UNSET), values), after=values)
links = st.builds(RecordLink, texts, st.text("0123456789abcdef", min_size=64, max_size=64), side=texts, run=texts)
entries = st.builds(
    Entry,
    v=st.just(VERSION),
    id=texts.filter(bool),
    date=st.dates().map(lambda day: f"{day:%Y-%m-%d}" if day.year >= 1000 else "2026-11-30"),
    title=texts.filter(str.strip),
    decision=st.sampled_from(DECISIONS),
    verdict=st.sampled_from(VERDICTS),
    reason=texts,
    who=texts,
    job=st.sampled_from(("", "a", "b")),
    measured=st.one_of(st.just(UNSET), effects()),
    expected=st.one_of(st.just(UNSET), expectations),
    diff=st.lists(changes, max_size=2),
    side_effects=st.lists(texts, max_size=2),
    records=st.lists(links, max_size=2),
    no_record=texts.filter(bool),
    claims=st.lists(st.builds(Claim, texts, texts), max_size=2),
    notes=texts,
    tags=st.lists(texts, max_size=2),
    config=st.dictionaries(texts, values, max_size=3),
)


def write_record(path: Path, **parts: Any) -> Path:
    """A run record of one step, with what is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"schema": "longpole.record/1", "units": [{"period_ns": 1000}], **parts}
    path.write_text(json.dumps(record), encoding="utf-8")
    return path
