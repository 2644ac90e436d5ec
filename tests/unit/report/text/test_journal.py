"""The pages of the journal keep to their width, and colour carries no meaning."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from longpole.advice.journal.lines import Journal
from longpole.pipeline import journal as asked
from longpole.report.text.journal import render_journal
from longpole.report.text.journal_words import shares_in_percent
from longpole.report.text.layout import columns_of
from tests.journals import entry

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.journal import JournalDocument

_SGR = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = ("list", "show", "search", "summary", "check")


@pytest.fixture(params=COMMANDS)
def document(request: pytest.FixtureRequest, root: Path) -> JournalDocument:
    path, journal = asked.open_journal(None, root / "examples" / "journal-7b")
    made = {
        "list": lambda: asked.list_entries(path, journal),
        "show": lambda: asked.show_entry(path, journal, "micro"),
        "search": lambda: asked.search(path, journal, "buckets workers memory"),
        "summary": lambda: asked.summarise_journal(path, journal),
        "check": lambda: asked.check_journal(path, journal),
    }
    return made[request.param]()


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_page_keeps_to_its_width(document: JournalDocument, width: int) -> None:
    page = render_journal(document, width=width, color=False)

    assert max(columns_of(line) for line in page.splitlines()) <= width


def test_colour_adds_nothing_but_colour(document: JournalDocument) -> None:
    painted = render_journal(document, width=80, color=True)

    assert _SGR.sub("", painted) == render_journal(document, width=80, color=False)


def test_shares_that_are_shown_add_up(root: Path) -> None:
    path, journal = asked.open_journal(None, root / "examples" / "journal-7b")
    (summary,) = asked.summarise_journal(path, journal).summary  # type: ignore[misc]

    shown = [int(share.removesuffix(" %")) for share in shares_in_percent(summary.kept)]

    assert sum(shown) == 100


def test_a_beginning_of_an_id_that_was_cut_still_finds_it(root: Path) -> None:
    path, journal = asked.open_journal(None, root / "examples" / "journal-7b")
    page = render_journal(asked.list_entries(path, journal), width=60, color=False)

    cut = [line.split()[0].rstrip("…") for line in page.splitlines() if line.startswith("  2026-")]

    assert [asked.show_entry(path, journal, name).entries[0].id for name in cut] == [one.id for one in journal.entries]


def test_a_change_between_entries_and_a_job_are_named(tmp_path: Path) -> None:
    entries = [
        entry("first", speedup=1.25, before=1200.0, after=1500.0, job="pretrain"),
        entry("second", speedup=1.1, before=1300.0, after=1430.0, job="pretrain"),
        entry("other", speedup=2.0, job="sft"),
    ]
    journal = Journal(entries, [1, 2, 3])

    page = render_journal(asked.summarise_journal(tmp_path / "j", journal), width=80, color=False)

    assert "SUMMARY  pretrain: 2 kept changes: +38 % in all" in page
    assert "first left 1,500, second found 1,300 (−13 %)" in page
    assert "entries do not say whether per device or of all together" in page
    assert "SUMMARY  sft: 1 kept change: +100 % in all" in page
