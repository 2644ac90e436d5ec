"""The page of `longpole memory`: three samples are kept whole, and no line is wider than asked for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from longpole.records.strict_json import encode_document
from longpole.report.memory_snapshot import memory_schema
from longpole.report.text.memory_snapshot import render_memory
from tests.memory_snapshots import SAMPLES, block, document_of, failed, segment, snapshot

GOLDEN = Path(__file__).parents[3] / "golden"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_as_kept(name: str) -> None:
    page = render_memory(SAMPLES[name](), width=80, color=False)

    assert page == (GOLDEN / f"memory-{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_wider_than_asked_for(name: str, width: int) -> None:
    assert max(map(len, render_memory(SAMPLES[name](), width=width, color=False).split("\n"))) <= width


def test_names_of_a_snapshot_cannot_reach_a_terminal() -> None:
    hostile = [{"name": "f\x1b[2J", "filename": "/a/b\x07.py", "line": 1}]

    page = render_memory(document_of(snapshot([segment(block(4, frames=hostile))])), width=80, color=False)

    assert "\x1b" not in page
    assert "\x07" not in page


@pytest.mark.parametrize("name", SAMPLES)
def test_a_document_decodes_again(name: str) -> None:
    document = SAMPLES[name]()

    again = msgspec.json.decode(encode_document(document))

    assert again["devices"][0]["reserved_bytes"] == document.devices[0].reserved_bytes
    assert [entry["at"] for entry in again["unknown"]] == [entry.at for entry in document.unknown]
    assert b'"longpole.memory/1"' in memory_schema()


def test_where_segments_can_grow_already_nobody_is_told_to_let_them() -> None:
    pieces = [segment(block(6), block(4, "inactive"), block(6), block(4, "inactive"))]
    fields = snapshot(pieces, [failed(6, 1)], allocator_settings={"expandable_segments": True})

    (device,) = document_of(fields).devices

    assert not [advice for advice in device.try_next if "expandable_segments:True" in advice]
