"""Verdicts on changes that were really made: several recorded runs a side, and what must be said of them.

The runs and the verdicts, fixed before any was looked at: tests/verify_records, made by benchmarks/verify.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from longpole.advice.verify.wording import part_noun
from longpole.pipeline.run_records import read_record
from longpole.pipeline.verify import VerifyOptions, verify_runs
from longpole.records.ledger import Unknown
from longpole.records.run_record import NOT_RECORDED, RunRecord
from longpole.records.run_record_file import encode_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.report.verify import Verify

RECORDS = Path(__file__).resolve().parents[2] / "verify_records"
SCENARIOS: dict[str, dict[str, Any]] = {
    one["name"]: one for one in tomllib.loads((RECORDS / "manifest.toml").read_text(encoding="utf-8"))["scenario"]
}
REJECTED = ("moved", "no_effect", "contract", "limit")


def runs_of(name: str, side: str, count: int = 0) -> list[str]:
    """Name the records of a side in the order of their pairs: all of them, or the first few."""
    return [str(RECORDS / name / f"{side}-{n}.json") for n in range(1, (count or SCENARIOS[name]["pairs"]) + 1)]


def judge(name: str, count: int = 0, **options: Any) -> Verify:
    options = {"part": SCENARIOS[name]["part"], "paired": True} | options
    return verify_runs(runs_of(name, "before", count), runs_of(name, "after", count), VerifyOptions(**options))


def verdict_of(document: Verify) -> str:
    """Return the word of the table: the reason of a rejection, else the verdict."""
    return document.reason if document.verdict == "rejected" else document.verdict.replace(" ", "_")


def that(key: str) -> list[str]:
    """Name the scenarios that have an entry."""
    return [name for name, one in SCENARIOS.items() if one.get(key)]


def where(verdicts: Iterable[str]) -> list[str]:
    return [name for name, one in SCENARIOS.items() if one["verdict"] in verdicts]


def test_enough_was_recorded() -> None:
    """At least four real improvements, three changes that only move the wait, and ten pairs of the same."""
    assert len(where(["accepted"])) >= 4
    assert len(where(["moved"])) >= 3
    assert SCENARIOS["same"]["pairs"] == 10
    assert all(one["pairs"] >= 5 for one in SCENARIOS.values())


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_change_gets_the_verdict_that_was_fixed_before(name: str) -> None:
    """With the part that the change was aimed at."""
    document = judge(name)

    assert verdict_of(document) == SCENARIOS[name]["verdict"], document.says


@pytest.mark.parametrize("name", where(["accepted", "moved", "no_effect", "contract"]))
def test_nobody_needs_to_name_the_part(name: str) -> None:
    """Without it, the part that fell most is taken, and the verdict is the same."""
    document = judge(name, part=None)

    assert verdict_of(document) == SCENARIOS[name]["verdict"], document.says


@pytest.mark.parametrize("name", that("moved_to"))
def test_a_wait_that_moved_is_followed(name: str) -> None:
    """The sentence says what the part did, that the step did not follow, and where the wait is now."""
    document = judge(name)

    assert document.moved.to == SCENARIOS[name]["moved_to"]
    assert document.says.startswith(f"{part_noun(SCENARIOS[name]['part'])} fell from ")
    assert " but the step is not shorter: the wait moved to " in document.says


def test_the_sentence_of_the_input_that_moved_to_the_all_reduce_comes_out() -> None:
    """Rank 0's loader is faster, rank 1's is not: half of the loader's time is now waited for in the all-reduce."""
    document = judge("loader_one_rank")

    assert (
        "but the step is not shorter: the wait moved to the all-reduce, where ranks wait for the last" in document.says
    )


def test_a_doubled_batch_is_judged_by_the_item_and_not_by_the_step() -> None:
    """The step takes longer, an item takes less, and that the batch changed stands on the page."""
    document = judge("batch_doubled")

    before, after = (
        sum(run.period_ns for run in side if isinstance(run.period_ns, int)) / len(side)
        for side in (document.before, document.after)
    )
    assert after > 1.15 * before
    assert not isinstance(document.effect, Unknown)
    assert not isinstance(document.effect.estimate, Unknown)
    assert document.effect.estimate < -0.15
    assert any(entry.what == "batch" and entry.key == "items" for entry in document.differences)


def test_where_items_are_not_declared_the_shapes_tell_the_batch(tmp_path: Path) -> None:
    """A record says the shapes of its operators: twice the rows are twice the items."""
    document = judge_without(tmp_path, ["items"])

    assert document.verdict == "accepted", document.says


def test_where_shapes_are_withheld_too_nothing_can_be_verified(tmp_path: Path) -> None:
    """Only that the batch is another is known: a step of another length then says nothing, and what lacks is named."""
    document = judge_without(tmp_path, ["items", "shapes"])

    assert verdict_of(document) == SCENARIOS["batch_doubled"]["without_items"]
    assert any("items" in field for field in document.needs.fields)


def judge_without(tmp_path: Path, withheld: list[str]) -> Verify:
    """Judge the doubled batch with records after the change from which evidence was taken."""
    after = []
    for path in runs_of("batch_doubled", "after"):
        file = tmp_path / Path(path).name
        file.write_bytes(encode_record(withhold(read_record(path), withheld)))
        after.append(str(file))
    before = runs_of("batch_doubled", "before")
    return verify_runs(before, after, VerifyOptions(part=SCENARIOS["batch_doubled"]["part"], paired=True))


def withhold(record: RunRecord, what: list[str]) -> RunRecord:
    contract = msgspec.structs.replace(record.contract, global_batch=None)
    if "shapes" in what:
        contract = msgspec.structs.replace(contract, shapes=None, elements_per_unit=None)
    units = [msgspec.structs.replace(unit, items=NOT_RECORDED) for unit in record.units]
    return msgspec.structs.replace(record, items_per_unit=NOT_RECORDED, items_from="", contract=contract, units=units)


@pytest.mark.parametrize("name", that("few"))
def test_two_runs_a_side_are_too_few(name: str) -> None:
    """What ten pairs settle, two leave open; how many more are needed is said."""
    document = judge(name, count=2)

    assert verdict_of(document) == SCENARIOS[name]["few"]
    assert document.needs.says


@pytest.mark.parametrize("name", that("limited"))
def test_a_real_improvement_that_breaks_a_limit_is_rejected(name: str) -> None:
    """Faster, but it needs more memory than there is."""
    document = judge(name, limits=[SCENARIOS[name]["limit"]])

    assert verdict_of(document) == SCENARIOS[name]["limited"]
    assert document.limits[0].status == "broken"


@pytest.mark.parametrize("name", where(["accepted"]))
def test_the_same_change_backwards_is_worse_or_breaks_its_promise(name: str) -> None:
    """Whoever undoes a real improvement hears so."""
    document = verify_runs(runs_of(name, "after"), runs_of(name, "before"), VerifyOptions(paired=True))

    assert document.verdict == "rejected"
    assert document.reason in ("worse", "contract"), document.says


def test_records_are_small_and_keep_no_name_of_a_machine() -> None:
    """They are read in review: nothing of where they were made but the class of the machine."""
    files = sorted(RECORDS.rglob("*.json"))

    assert len(files) == 2 * sum(one["pairs"] for one in SCENARIOS.values())
    assert max(file.stat().st_size for file in files) < 30_000
    for file in files:
        record = read_record(str(file))
        assert not any(row.host for row in record.rows)
        assert "hosts" not in record.environment.informational
        assert all(not Path(source.path).is_absolute() for source in record.sources)
