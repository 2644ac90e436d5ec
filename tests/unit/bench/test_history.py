"""Series of records: what belongs together, what is held against what, and what is said of it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.bench.history import Accepted, Recorded, build_series
from longpole.errors import InputError, UsageError
from longpole.pipeline.bench_history import accept_run, measure_history
from longpole.records.history import HistoryBaseline, HistorySeries
from longpole.records.ledger import Unknown
from longpole.records.run_record_file import encode_record
from longpole.report.history_picture import render_picture
from longpole.report.text.history import render_history
from tests.bench_runs import bench_record

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.run_record import RunRecord

STEADY = [100.0 + wobble for wobble in (0.0, 0.4, -0.3, 0.1, -0.2, 0.3, -0.1, 0.2, 0.0, -0.4)]


def _series(records: list[RunRecord], accepted: list[Accepted] | None = None, baseline: int = 20) -> HistorySeries:
    (found,) = build_series([Recorded(r, f"{r.label}.json") for r in records], 0.03, baseline, accepted or [])
    return found


def _nightly(values_ms: list[float], **other: object) -> list[RunRecord]:
    return [
        bench_record(value * 1e6, label=f"night-{day:02}", day=day + 1, **other)  # type: ignore[arg-type]
        for day, value in enumerate(values_ms)
    ]


def _write(folder: Path, records: list[RunRecord]) -> str:
    for record in records:
        (folder / f"{record.design.benchmark if record.design else 'x'}-{record.label}.json").write_bytes(
            encode_record(record)
        )
    return str(folder)


def test_a_step_is_dated_sized_and_named_slower() -> None:
    found = _series(_nightly([*STEADY, *(value * 1.08 for value in STEADY)]), baseline=10)

    assert found.verdict == "slower"
    assert found.drift is not None
    assert found.runs[found.drift.began].label == "night-10"
    assert found.drift.now_share == pytest.approx(0.08, abs=0.005)
    assert [found.runs[step.run].label for step in found.steps] == ["night-10"]


def test_a_step_says_what_changed_with_it() -> None:
    before = _nightly(STEADY, settings={"torch": "2.9"})
    after = [bench_record(108e6, label=f"night-{day}", day=day, settings={"torch": "2.10"}) for day in range(11, 21)]

    (step,) = _series([*before, *after], baseline=10).steps

    assert step.changed == ["torch: 2.9 → 2.10"]


def test_the_stage_behind_a_drift_is_named() -> None:
    before = _nightly(STEADY, stages={"input": 0.2, "forward": 0.8})
    after = [
        bench_record(110e6, label=f"night-{day}", day=day, stages={"input": 30 / 110, "forward": 80 / 110})
        for day in range(11, 21)
    ]

    stages = _series([*before, *after], baseline=10).stages

    assert stages[0].stage == "input"
    assert stages[0].share_of_change == pytest.approx(1.0, abs=0.05)


def test_a_series_without_a_change_is_steady() -> None:
    found = _series(_nightly([*STEADY, *STEADY]))

    assert (found.verdict, found.drift, found.steps) == ("steady", None, [])


def test_runs_are_ordered_by_when_they_were_made_and_not_by_file() -> None:
    records = _nightly([*STEADY, *(value * 1.08 for value in STEADY)])

    assert _series(list(reversed(records))).runs == _series(records).runs


def test_too_few_runs_give_no_verdict_and_say_how_many_are_needed() -> None:
    found = _series(_nightly(STEADY[:9]))

    assert found.verdict == "unknown"
    assert isinstance(found.baseline, Unknown)
    assert "need 10" in found.baseline.unknown


def test_another_machine_begins_a_series_of_its_own() -> None:
    records = _nightly(STEADY) + [
        bench_record(200e6, label=f"new-{day}", day=day, machine={"cpu": "Xeon"}) for day in range(11, 21)
    ]

    found = build_series([Recorded(record, record.label) for record in records], 0.03, 20)

    assert [len(series.runs) for series in found] == [10, 10]
    assert {series.verdict for series in found} == {"steady"}


def test_a_failed_run_is_shown_and_not_counted() -> None:
    records = _nightly([*STEADY, *STEADY])
    records[12].failure = "out of memory"
    records[12].units[0].period_ns = 1

    found = _series(records)

    assert found.runs[12].failed == "out of memory"
    assert found.verdict == "steady"


def test_an_accepted_run_begins_a_new_baseline() -> None:
    records = _nightly([*STEADY, *(value * 1.08 for value in STEADY)])

    found = _series(records, [Accepted("train", "night-10", "checks every batch now")])

    assert isinstance(found.baseline, HistoryBaseline)
    assert (found.baseline.first, found.baseline.because) == (10, "checks every batch now")
    assert found.verdict == "steady"


def test_an_acceptance_is_kept_beside_the_records(tmp_path: Path) -> None:
    folder = _write(tmp_path, _nightly([*STEADY, *(value * 1.08 for value in STEADY)]))
    assert measure_history(folder, threshold=0.03, baseline_runs=10).verdict == "slower"

    says = accept_run(folder, "night-10", "meant", "")

    assert says.startswith("train: the baseline begins at night-10 from now on (meant)")
    assert measure_history(folder, threshold=0.03, baseline_runs=10).verdict == "steady"


def test_accepting_a_run_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    folder = _write(tmp_path, _nightly(STEADY[:2]))

    with pytest.raises(UsageError, match="there are night-00, night-01"):
        accept_run(folder, "night-77", "meant", "")


def test_a_damaged_list_of_acceptances_is_named(tmp_path: Path) -> None:
    folder = _write(tmp_path, _nightly(STEADY))
    (tmp_path / "accepted.json").write_text('{"schema": "longpole.accepted/1"}')

    with pytest.raises(InputError, match=r"accepted\.json: cannot be read"):
        measure_history(folder, threshold=0.03, baseline_runs=10)


def test_a_folder_without_a_measurement_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")

    with pytest.raises(InputError, match="holds no measurement"):
        measure_history(str(tmp_path), threshold=0.03, baseline_runs=10)


def test_a_damaged_record_costs_only_itself(tmp_path: Path) -> None:
    folder = _write(tmp_path, _nightly([*STEADY, *STEADY]))
    (tmp_path / "train-night-03.json").write_text('{"schema": "longpole.record/1", "units": []}')

    found = measure_history(folder, threshold=0.03, baseline_runs=10)

    assert len(found.series[0].runs) == 19
    assert len(found.refused) == 1
    assert found.verdict == "steady"


def test_the_page_has_the_gravest_first_and_no_line_beyond_its_width(tmp_path: Path) -> None:
    folder = _write(tmp_path, _nightly([*STEADY, *STEADY], benchmark="calm"))
    _write(tmp_path, _nightly([*STEADY, *(value * 1.08 for value in STEADY)], benchmark="sick\x1b[31m"))

    page = render_history(measure_history(folder, threshold=0.03, baseline_runs=10), width=72, color=False)

    assert page.index("SLOWER") < page.index("STEADY")
    assert max(map(len, page.splitlines())) <= 72
    assert "\x1b" not in page


def test_the_picture_is_well_formed_and_hostile_names_stay_text(tmp_path: Path) -> None:
    folder = _write(tmp_path, _nightly([*STEADY, *(value * 1.08 for value in STEADY)], benchmark="<script>&"))

    picture = ET.fromstring(render_picture(measure_history(folder, threshold=0.03, baseline_runs=10)))

    assert len(picture.findall(".//{*}circle")) == 20
    assert not picture.findall(".//{*}script")


def test_the_document_can_be_written_and_read_back(tmp_path: Path) -> None:
    found = measure_history(_write(tmp_path, _nightly([*STEADY, *STEADY])), threshold=0.03, baseline_runs=10)

    again = msgspec.json.decode(msgspec.json.encode(found))

    assert again["series"][0]["verdict"] == "steady"
    assert again["series"][0]["baseline"]["count"] == 10
