"""Entries from what the user says, from records and from verdicts; what is missing or contradicts itself is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET

from longpole.errors import InputError, UsageError
from longpole.pipeline.journal import check_journal, open_journal
from longpole.pipeline.journal_add import Effect, Evidence, NewEntry, add
from longpole.pipeline.journal_file import hash_record
from longpole.pipeline.verify import VerifyOptions, verify_runs
from longpole.records.journal import FILE_NAME, ConfigChange, Entry, Expected, Measured
from longpole.records.strict_json import encode_document
from tests.journals import write_record

if TYPE_CHECKING:
    from pathlib import Path

NOTE = NewEntry(title="a change", verdict="accepted", evidence=Evidence(no_record="told by hand"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def added(new: NewEntry) -> Entry:
    (entry,) = add(new).entries
    return entry


def with_records(*records: tuple[str, str], **parts: Any) -> NewEntry:
    return replace(NOTE, evidence=Evidence(records=records, **parts))


def test_an_entry_is_linked_to_its_records_by_path_and_hash(folder: Path) -> None:
    write_record(folder / "runs" / "a.json", run_id="run a")

    entry = added(with_records(("before", "runs/a.json")))

    (link,) = entry.records
    assert (link.path, link.side, link.kind, link.run) == ("runs/a.json", "before", "longpole.record/1", "run a")
    assert link.sha256 == hash_record(folder / "runs" / "a.json")


def test_paths_are_written_from_the_journals_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(NOTE)
    write_record(folder / "deep" / "er" / "a.json")
    monkeypatch.chdir(folder / "deep" / "er")

    entry = added(with_records(("after", "a.json")))

    assert entry.records[0].path == "deep/er/a.json"
    assert check_journal(*open_journal(folder / FILE_NAME)).problems == []


def test_a_missing_record_is_refused_and_nothing_is_written(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"record runs/none.json: there is no such file or folder"):
        add(with_records(("after", "runs/none.json")))

    assert list(folder.iterdir()) == []


def test_no_record_must_be_said_and_cannot_stand_beside_one(folder: Path) -> None:
    write_record(folder / "a.json")

    with pytest.raises(UsageError, match="say why with --no-record REASON"):
        add(replace(NOTE, evidence=Evidence()))
    with pytest.raises(UsageError, match=r"--no-record: expected no record beside it; found a\.json"):
        add(with_records(("after", "a.json"), no_record="none"))
    assert added(NOTE).no_record == "told by hand"


def test_a_file_that_means_to_be_a_record_and_is_none_is_refused(folder: Path) -> None:
    (folder / "a.json").write_text('{"schema": "longpole.record/1", "units": []}', encoding="utf-8")

    with pytest.raises(InputError, match=r"a\.json: \$\.units"):
        add(with_records(("after", "a.json")))


def test_a_record_that_changed_is_found(folder: Path) -> None:
    record = write_record(folder / "a.json")
    add(with_records(("after", "a.json")))
    record.write_text(record.read_text(encoding="utf-8") + " ", encoding="utf-8")

    (changed,) = check_journal(*open_journal()).problems  # type: ignore[misc]
    record.unlink()
    (missing,) = check_journal(*open_journal()).problems  # type: ignore[misc]

    assert (changed.code, missing.code) == ("record.changed", "record.missing")


def test_a_configuration_is_compared_with_the_record_before(folder: Path) -> None:
    write_record(folder / "a.json", configuration={"workers": 2}, contract={"dtype": "bfloat16"})
    write_record(folder / "b.json", configuration={"workers": 4}, contract={"dtype": "bfloat16"})

    entry = added(with_records(("before", "a.json"), ("after", "b.json"), config=["pin=true"]))

    assert entry.config == {"workers": 4, "contract.dtype": "bfloat16", "pin": True}
    assert entry.diff == [ConfigChange("pin", UNSET, True), ConfigChange("workers", 2, 4)]
    assert entry.diff_against == "record"


def test_a_configuration_is_compared_with_the_last_kept_entry_or_a_file(folder: Path) -> None:
    (folder / "whole.toml").write_text("workers = 2\n[optimizer]\nlr = 0.1\n", encoding="utf-8")
    (folder / "other.json").write_text('{"workers": 9}', encoding="utf-8")
    first = added(replace(NOTE, evidence=Evidence(no_record="x", config_file=folder / "whole.toml")))
    tried = replace(NOTE, decision="reverted", evidence=Evidence(no_record="x", config=["workers=99"]))
    add(tried)

    second = added(replace(NOTE, evidence=Evidence(no_record="x", config=["workers=4"])))
    third = added(
        replace(NOTE, evidence=Evidence(no_record="x", config=["workers=4"], config_before=folder / "other.json"))
    )

    assert (first.diff, first.diff_against) == ([], "")
    assert (second.diff, second.diff_against) == ([ConfigChange("workers", 2, 4)], first.id)
    assert second.config == {"workers": 4, "optimizer.lr": 0.1}
    assert third.diff_against == "file"


@pytest.mark.parametrize(("name", "text"), [("a.json", "{"), ("a.json", "[1]"), ("a.toml", "= 1")])
def test_a_configuration_that_is_none_is_named(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=name):
        add(replace(NOTE, evidence=Evidence(no_record="x", config_file=folder / name)))
    with pytest.raises(UsageError, match="there is no such file"):
        add(replace(NOTE, evidence=Evidence(no_record="x", config_file=folder / "none.json")))


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"title": ""}, "expected a title"),
        ({"verdict": ""}, "--verdict: expected one of accepted, rejected"),
        ({"verdict": "good"}, "--verdict: expected one of .*; found good"),
        ({"verdict": "rejected"}, "--verdict rejected: expected a --reason: one of moved, no_effect"),
        ({"verdict": "mixed"}, "--decision: expected kept or reverted; the verdict is mixed"),
        ({"decision": "maybe"}, "--decision: expected kept or reverted; found 'maybe'"),
        ({"date": "1.1.2026"}, "--date: expected a day such as"),
        ({"reverts": "none"}, "--reverts none: there is no such entry"),
        ({"claims": ["mfu"]}, "--claim: expected WHAT=VALUE"),
        ({"claims": ["later:mfu=1"]}, "--claim: expected WHAT=VALUE"),
        ({"effect": Effect(before=1.0, unit="tokens/s")}, "expected both, or neither"),
        ({"effect": Effect(before=1.0, after=2.0, unit="tokens/s", speedup=2.0)}, "--speedup: --before and --after"),
        ({"effect": Effect(interval=(1.0, 2.0))}, "--interval, --level"),
        ({"effect": Effect(speedup=3.0, interval=(1.0, 2.0))}, "--interval: expected it to hold the speed-up"),
        ({"effect": Effect(unit="tokens/s")}, "--unit, --better, --scope: expected --before and --after"),
        ({"effect": Effect(expected=1.2)}, "--expected: expected its source"),
        ({"effect": Effect(candidate="input.prefetch")}, r"expected the gain \(--expected\) beside it"),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_refused(folder: Path, parts: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        add(replace(NOTE, **parts))

    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("folder")
def test_a_change_is_taken_back_once_by_an_entry_of_its_own() -> None:
    first = added(NOTE)
    revert = NewEntry(title="back", reverts=first.id, evidence=Evidence(no_record="a revert"))

    entry = added(revert)

    assert (entry.decision, entry.verdict, entry.reverts) == ("reverted", "not verifiable", first.id)
    with pytest.raises(UsageError, match="another entry takes it back already"):
        add(revert)


# --- straight from a verdict --------------------------------------------------------------------------------------


def write_runs(folder: Path, side: str, period_ns: int, **parts: Any) -> list[str]:
    """Five runs of a side, 0.2 % apart."""
    paths = []
    for number, share in enumerate((-0.002, -0.001, 0.0, 0.001, 0.002)):
        units = [{"period_ns": round(period_ns * (1 + share)), "wall_ns": period_ns * 2} for _ in range(5)]
        name = f"{side}-{number}"
        record = {"run_id": name, "label": name, "items_per_unit": 1000, "items_from": "declared", "units": units}
        path = write_record(folder / f"{name}.json", **record, **parts)
        paths.append(path.relative_to(folder).as_posix())
    return paths


def verified(folder: Path, after_ns: int = 800_000_000, **options: Any) -> Path:
    """A verdict on ten runs, as `longpole verify --json` writes it."""
    before = write_runs(folder, "before", 1_000_000_000, configuration={"workers": 2})
    after = write_runs(folder, "after", after_ns, configuration={"workers": 4})
    path = folder / "verdict.json"
    path.write_bytes(encode_document(verify_runs(before, after, VerifyOptions(**options))))
    return path


def test_a_verdict_fills_numbers_records_and_configuration(folder: Path) -> None:
    verdict = verified(folder)

    entry = added(NewEntry(title="more workers", evidence=Evidence(verdict_file=verdict)))

    assert isinstance(entry.measured, Measured)
    assert (entry.verdict, entry.reason, entry.decision) == ("accepted", "faster", "kept")
    assert entry.measured.speedup == pytest.approx(1.25, rel=1e-4)
    assert entry.measured.low < 1.25 < entry.measured.high  # type: ignore[operator]
    assert (entry.measured.before, entry.measured.after, entry.measured.unit) == (1e6, 8e5, "ns/item")
    assert (entry.measured.runs, entry.measured.single_run, entry.measured.level) == ([5, 5], False, 0.9)
    assert [link.side for link in entry.records] == ["before"] * 5 + ["after"] * 5 + ["verdict"]
    assert entry.records[-1].kind == "longpole.verify/1"
    assert entry.diff == [ConfigChange("workers", 2, 4)]
    assert check_journal(*open_journal()).problems == []


def test_time_per_item_can_be_put_into_a_throughput(folder: Path) -> None:
    verdict = verified(folder)
    asked = NewEntry(title="more workers", evidence=Evidence(verdict_file=verdict), effect=Effect(unit="tokens/s"))

    entry = added(asked)

    assert isinstance(entry.measured, Measured)
    assert (entry.measured.before, entry.measured.after) == pytest.approx((1000, 1250))
    assert (entry.measured.better, entry.measured.scope) == ("higher", "total")
    with pytest.raises(UsageError, match="--unit ms/step: a verdict has time per item"):
        add(replace(asked, effect=Effect(unit="ms/step")))
    with pytest.raises(UsageError, match="a verdict has time per item of all devices together"):
        add(replace(asked, effect=Effect(unit="tokens/s", scope="per_device")))


def test_a_verdict_that_is_no_acceptance_needs_a_decision(folder: Path) -> None:
    verdict = verified(folder, after_ns=1_000_000_000)
    new = NewEntry(title="more workers", evidence=Evidence(verdict_file=verdict))

    with pytest.raises(UsageError, match="--decision: expected kept or reverted; the verdict is rejected"):
        add(new)
    entry = added(replace(new, decision="reverted"))

    assert (entry.verdict, entry.reason, entry.decision) == ("rejected", "no_effect", "reverted")


def test_another_verdict_than_that_of_the_document_is_refused(folder: Path) -> None:
    verdict = verified(folder)

    with pytest.raises(UsageError, match="--verdict mixed: the document says accepted"):
        add(NewEntry(title="x", verdict="mixed", decision="kept", evidence=Evidence(verdict_file=verdict)))


def test_limits_of_a_verdict_are_side_effects(folder: Path) -> None:
    verdict = verified(folder, limits=["peak_bytes<=80e9"])

    entry = added(NewEntry(title="x", decision="reverted", evidence=Evidence(verdict_file=verdict)))

    assert any("peak_bytes" in text for text in entry.side_effects)


def test_a_run_that_is_gone_or_changed_since_the_verdict_is_refused(folder: Path) -> None:
    verdict = verified(folder)
    run = folder / "after-3.json"
    text = run.read_text(encoding="utf-8")
    run.write_text(text + "\n", encoding="utf-8")
    new = NewEntry(title="x", evidence=Evidence(verdict_file=verdict))

    with pytest.raises(InputError, match=r"after-3\.json: not what it was when the verdict was given"):
        add(new)
    run.unlink()
    with pytest.raises(UsageError, match=r"record after-3\.json: there is no such file"):
        add(new)
    assert not (folder / FILE_NAME).exists()


def test_runs_are_found_from_the_verdicts_folder_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = verified(folder)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")

    entry = added(NewEntry(title="x", evidence=Evidence(verdict_file=verdict)))

    assert entry.records[0].path == "../before-0.json"


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("{", "not JSON"),
        ("[]", "expected the schema longpole.verify/1, found None"),
        ({"schema": "longpole.report/1"}, "found 'longpole.report/1'"),
        ({"schema": "longpole.verify/1", "verdict": "good"}, r"\$\.verdict: expected one of accepted"),
        ({"schema": "longpole.verify/1", "verdict": "accepted", "effect": {"estimate": "x"}}, "verdict.json: "),
    ],
)
def test_a_document_that_is_no_verdict_is_named(folder: Path, document: object, says: str) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    (folder / "verdict.json").write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=says):
        add(NewEntry(title="x", evidence=Evidence(verdict_file=folder / "verdict.json")))


def test_a_prediction_of_a_verdict_is_kept_with_its_error(folder: Path) -> None:
    document = json.loads(verified(folder).read_bytes())
    document["candidate"] = "input.prefetch"
    document["predicted"] = {
        "changes": ["--prefetch input"],
        "predicted": -0.2,
        "measured": -0.2,
        "miss": 0.0,
        "error_share": 0.1,
        "missed": False,
        "says": "as predicted",
    }
    (folder / "verdict.json").write_text(json.dumps(document), encoding="utf-8")

    entry = added(NewEntry(evidence=Evidence(verdict_file=folder / "verdict.json")))

    assert entry.title == "input.prefetch"
    assert entry.expected == Expected(1.25, "input.prefetch", "longpole whatif … --prefetch input", 0.1)
