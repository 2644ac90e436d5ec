"""The pages of causes: whole, short, and true to the report and to the command line."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields

import pytest

from longpole.advice.cause_pages import FOLDER, HEADINGS, NEEDS_MORE, parse_page, read_page, read_pages
from longpole.errors import InvariantError, UsageError
from longpole.settings import Settings
from longpole.vocabulary.causes import CAUSES
from longpole.whatif.change import parse_option
from tests.report_types import is_in_reports

OTHER_NAMES = ("artifact", "bucket_cap_mb", "no_sync", "safetensors")
EACH = pytest.mark.parametrize("cause", CAUSES)


def text_of(cause: str) -> str:
    return (FOLDER / f"{cause}.md").read_text(encoding="utf-8")


@EACH
def test_a_page_has_its_sections_and_is_short(cause: str) -> None:
    page = read_page(cause)

    assert [section.title for section in page.sections] == list(HEADINGS)
    assert all(section.text for section in page.sections)
    assert 20 <= text_of(cause).count("\n") <= 45


@EACH
def test_every_pointer_on_a_page_is_in_a_report(cause: str) -> None:
    pointers = re.findall(r"`(/(?:[a-z_]+|\*)(?:/[^`\s]*)?)`", text_of(cause))

    assert [pointer for pointer in pointers if not is_in_reports(pointer) and not pointer.startswith("/etc")] == []


@EACH
def test_every_setting_on_a_page_exists(cause: str) -> None:
    named = re.findall(r"\(`([a-z][a-z0-9_]*)`\)", text_of(cause))

    assert not set(named) - {setting.name for setting in fields(Settings)} - set(OTHER_NAMES)


@EACH
def test_every_what_if_on_a_page_is_understood(cause: str) -> None:
    commands = re.findall(r"`longpole whatif PATH ([^`]+)`", text_of(cause))

    for command in commands:
        words = shlex.split(command)
        starts = [place for place, word in enumerate(words) if word.startswith("--")]
        ends = [*starts[1:], len(words)]
        for start, end in zip(starts, ends, strict=True):
            parse_option(words[start], " ".join(words[start + 1 : end]))  # refuses what it does not understand


@EACH
def test_a_page_names_a_what_if_or_says_that_none_stands_for_it(cause: str) -> None:
    text = text_of(cause)

    assert ("`longpole whatif PATH " in text) != ("Nothing in a what-if stands for it" in text)


def test_what_needs_more_than_a_trace_says_so() -> None:
    assert set(NEEDS_MORE) <= set(CAUSES)


def test_the_pages_come_in_the_order_of_the_vocabulary() -> None:
    assert list(read_pages()) == list(CAUSES)


def test_no_page_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*")} == set(CAUSES)


def test_a_cause_that_is_not_in_the_vocabulary_is_refused() -> None:
    with pytest.raises(UsageError, match="no cause is called 'slow_disk'"):
        read_page("slow_disk")


@pytest.mark.parametrize(
    ("text", "said"),
    [("# other: x\n", "expected the title '# gc: …'"), ("# gc: x\n\n## Why it costs time\n", "expected the headings")],
)
def test_a_page_of_another_form_is_an_error_of_ours(text: str, said: str) -> None:
    with pytest.raises(InvariantError, match=said):
        parse_page("gc", text)
