"""Commands say of a run whose graphs are not joined what they say of it joined."""

from __future__ import annotations

import gc
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longpole.advice.catalogue import load_catalogue
from longpole.pipeline.candidates import propose_for
from longpole.pipeline.parts import too_large
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.replays import RunReplay, replay_run
from longpole.pipeline.whatif import what_if_of
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from longpole.whatif.change import parse_change

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RUN = [str(EXAMPLES / "ddp-gloo-2ranks")]
JOINED = ReportOptions(use_cache=False, processes=1)
CHANGES = (["--set collective=0.5x", "--remove input"], ["--set compute&rank:1=2x"], ["--issue-early collective"])


@pytest.fixture(scope="module")
def joined() -> RunReplay:
    return replay_run(RUN, JOINED)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> ReportOptions:
    file = tmp_path_factory.mktemp("settings") / "longpole.toml"
    file.write_text("[settings]\njoin_max_bytes = 0\n", encoding="utf-8")
    return replace(JOINED, settings=file)


@pytest.fixture(scope="module")
def apart(options: ReportOptions) -> RunReplay:
    run = replay_run(RUN, options)
    assert run.parts is not None
    assert isinstance(run.graph, Unknown)
    return run


def _plain(document: msgspec.Struct) -> Any:
    """Return a document with shares to nine places: they are sums of floats in another order."""

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return round(value, 9)
        if isinstance(value, dict):
            return {key: rounded(one) for key, one in value.items()}
        return [rounded(one) for one in value] if isinstance(value, list) else value

    return rounded(msgspec.to_builtins(document))


@pytest.mark.parametrize("texts", CHANGES)
def test_a_what_if_is_the_same_document(joined: RunReplay, apart: RunReplay, texts: list[str]) -> None:
    changes = [parse_change(text) for text in texts]

    assert _plain(what_if_of(apart, changes, JOINED)) == _plain(what_if_of(joined, changes, JOINED))


def test_a_change_across_ranks_is_refused_and_the_replay_still_told(apart: RunReplay) -> None:
    found = what_if_of(apart, [parse_change("--equalise work")], JOINED)

    assert found.refused is not None
    assert "join_max_bytes" in found.refused.why
    assert isinstance(found.changes[0].rows, Unknown)
    assert isinstance(found.measured_period_ns, int)


@pytest.mark.slow
def test_candidates_gain_the_same(joined: RunReplay, apart: RunReplay) -> None:
    """What rests on causes is missing, for these are not sought without the joined graph; so is what compares ranks."""
    found, whole = (propose_for(run, load_catalogue())[1].entries for run in (apart, joined))

    asked = {entry.id: entry for entry in whole}
    alike = [
        (entry, asked[entry.id])
        for entry in found
        if entry.changes == asked[entry.id].changes and not any("--equalise" in text for text in entry.changes)
    ]
    assert len(alike) > 3
    for entry, other in alike:
        assert entry.predicted_period_ns == other.predicted_period_ns
        assert entry.predicted_gain_share == other.predicted_gain_share


@pytest.mark.slow
def test_the_graphs_stay_on_disk_as_long_as_the_run_may_be_asked(options: ReportOptions, tmp_path: Path) -> None:
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path)
    try:
        run = replay_run(RUN, options)
    finally:
        tempfile.tempdir = before
    assert list(tmp_path.iterdir())

    del run
    gc.collect()

    assert not list(tmp_path.iterdir())


def test_the_size_on_disk_decides(joined: RunReplay, tmp_path: Path) -> None:
    digests = joined.run.digests
    for digest in digests:
        (tmp_path / digest.graph).write_bytes(b"x" * 100)

    assert too_large(digests, tmp_path, replace(Settings(), join_max_bytes=200)) is None
    found = too_large(digests, tmp_path, replace(Settings(), join_max_bytes=199))
    assert found is not None
    assert "200 B on disk" in found.unknown
    assert too_large(digests[:1], tmp_path, replace(Settings(), join_max_bytes=0)) is None


@pytest.mark.slow
def test_a_report_has_the_same_path(options: ReportOptions) -> None:
    from longpole.pipeline.report import build_report

    apart, whole = build_report(RUN, options), build_report(RUN, JOINED)

    found, expected = _plain(apart)["critical_path"], _plain(whole)["critical_path"]
    assert found | {"near_critical": []} == expected | {"near_critical": []}
    assert _plain(apart)["replay"] == _plain(whole)["replay"]
