"""Candidates of jobs whose cause is known (K2): the change that the case was reported with comes first, or nearly."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from longpole.errors import LongpoleError, UsageError
from longpole.pipeline.candidates import find_candidates
from longpole.pipeline.reading import ReportOptions
from longpole.records.ledger import Unknown
from longpole.records.strict_json import encode_document
from longpole.report.schema import read_schema
from longpole.report.text.candidates import render_candidates
from tests.case_answers import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.candidates import Candidates

OPTIONS: Final = ReportOptions(use_cache=False)

BEST: Final = {
    "B062": "host.sync_less",
    "B065": "host.control_gc",
    "B068": "collective.fuse_small",
    "B074": "compute.mend_slow_rank",
    "B081": "input.pin_memory",
    "B082": "compute.capture_graph",
}
"""Case -> the candidate that gains most; the cases whose remedy rests on no assumed factor."""

AMONG: Final = {
    "B059": {"input.add_workers", "input.cache"},
    "B064": {"host.control_gc"},
    "B069": {"collective.set_bucket_size", "collective.split_buckets"},
    "B070": {"collective.issue_earlier"},
    "B073": {"collective.balance_load", "input.pack"},
    "B078": {"output.async_checkpoint"},
    "B080": {"collective.choose_algorithm"},
}
"""Case -> candidates that are predicted to gain something."""

NEVER: Final = {
    "B059": {"input.prefetch"},
    "B074": {"collective.balance_load", "input.pack"},
    "B078": {"collective.split_fused", "state.shard"},
}
"""Case -> what would be bad advice: workers are there; the work is equal; the others only wait."""


@functools.cache
def _found(case: str) -> Candidates:
    return find_candidates([str(CASES / case)], OPTIONS)


@pytest.mark.parametrize("case", BEST)
def test_the_remedy_of_the_report_gains_most(case: str) -> None:
    assert _found(case).candidates[0].id == BEST[case]


@pytest.mark.parametrize("case", AMONG)
def test_the_remedy_of_the_report_gains_something(case: str) -> None:
    gaining = {
        entry.id
        for entry in _found(case).candidates
        if isinstance(entry.predicted_gain_share, float) and entry.predicted_gain_share > 0.03
    }

    assert gaining >= AMONG[case]


@pytest.mark.parametrize("case", NEVER)
def test_bad_advice_is_not_given(case: str) -> None:
    assert not NEVER[case] & {entry.id for entry in _found(case).candidates}


def test_a_refused_replay_leaves_ceilings() -> None:
    """B085: kernels of 2 of 20 graph launches were recorded."""
    found = _found("B085")

    assert isinstance(found.replay, Unknown)
    assert found.together is None
    assert all(isinstance(entry.predicted_period_ns, Unknown) for entry in found.candidates)
    assert "NO REPLAY" in render_candidates(found, width=80, color=False)


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.glob("B*")))
def test_every_odd_input_gets_candidates_or_a_reason(case: str) -> None:
    try:
        found = _found(case)
    except LongpoleError:
        return  # whose words are looked at where files are refused
    document = json.loads(encode_document(found))
    assert document["schema"] == "longpole.candidates/1"
    for entry in document["candidates"]:
        assert entry["because"]
        assert isinstance(entry["predicted_gain_share"], float) or entry["predicted_gain_share"]["unknown"]
    for width in (60, 100):
        text = render_candidates(found, width=width, color=False)
        typed = [line for line in text.splitlines() if "longpole whatif" in line or line.startswith(" " * 7)]
        assert all(len(line) <= width for line in text.splitlines() if line not in typed)


def test_the_document_fits_its_schema() -> None:
    schema = json.loads(read_schema("candidates"))
    document = json.loads(encode_document(_found("B070")))

    assert set(document) == set(schema["$defs"]["Candidates"]["properties"])
    assert document["together"]["schema"] == "longpole.whatif/1"
    assert document["overlap"]["together_ns"] == document["together"]["saving_ns"]


def test_what_all_bring_is_that_what_if(monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch
    found = _found("B070")

    assert found.together is not None
    assert found.overlap is not None
    assert found.overlap.sum_ns - found.overlap.overlap_ns == found.overlap.together_ns  # type: ignore[operator]
    assert [change.text for change in found.together.changes]


def test_the_contract_of_a_row_that_does_not_apply() -> None:
    found = find_candidates([str(CASES / "B059")], OPTIONS, explain="input.prefetch")
    text = render_candidates(found, width=80, color=False)

    assert found.explained is not None
    assert found.explained.verdict == "silenced"
    assert "worker processes prefetch already" in text
    for field in ("must record", "proved by", "irreplaceable", "applies when", "not when"):
        assert field in text


def test_an_id_that_no_row_has_is_refused_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match=r"did you mean input\.prefetch\?"):
        find_candidates(["nowhere"], OPTIONS, explain="input.prefetsh")


def test_a_users_row_is_proposed(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        """
[[change]]
id = "input.buy_disks"
object = "input"
says = "Buy faster disks."
answers = ["data_loader"]
not_when = [{ figure = "input.waiting_share", below = 0.01, why = "nothing waits for them" }]
effort = "high"
change = ["--set input=0.3x"]
assumes = ["disks are all that is slow"]
must_record = ["period of every unit"]
proved_by = ["time per item falls"]
cannot_replace = "a run with a cold cache"
costs = ["money"]
part = "input"
references = ["https://example.org"]
""",
        encoding="utf-8",
    )
    found = find_candidates([str(CASES / "B059")], OPTIONS, catalogue=mine)

    assert found.candidates[0].id == "input.buy_disks"
    assert found.catalogue == str(mine)


def test_names_from_a_trace_are_escaped_on_the_page() -> None:
    found = _found("B059")
    entry = msgspec.structs.replace(found.candidates[0], because=["\x1b[2J gone"])
    page = render_candidates(msgspec.structs.replace(found, candidates=[entry]), width=80, color=False)

    assert "\x1b" not in page
