"""Symptoms as data: what they lead to exists, and a mistake in the file is named with its line and key."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from longpole.advice.catalogue import load_catalogue
from longpole.advice.symptoms import Symptom, load_symptoms, parse_symptoms
from longpole.cli.app import app
from longpole.errors import UsageError
from longpole.settings import Settings
from longpole.vocabulary.causes import CAUSES
from longpole.whatif.change import parse_option
from tests.report_types import is_in_reports

ROWS = load_symptoms().rows
EACH = pytest.mark.parametrize("symptom", ROWS, ids=lambda row: row.id)

GOOD = """\
[language]
ignore = ["the"]

[language.same]
device = ["gpu"]

[[symptom]]
id = "device-idle"
says = "The device is idle"
means = "Nothing was launched for it."
words = ["gpu idle"]
causes = ["data_loader", "gc"]
candidates = ["input.prefetch"]
record = ["device activities"]
next = ["longpole report PATH"]

[[symptom.figure]]
what = "idle"
at = "/ledger/device/idle_ns"
of = "/ledger/wall_ns"
reads = "high: something is waited for"
notable_from = 0.1
points_to = ["data_loader"]

[[symptom.figure]]
what = "reasons"
at = "/stragglers/*/reason"
take = "names"
reads = "who is late"
when = { pause = "gc" }
"""


def test_every_symptom_of_the_issue_is_there() -> None:
    wanted = {
        "step-slower",
        "scaling-worse",
        "tail-up",
        "device-idle",
        "out-of-memory",
        "slower-over-time",
        "kernel-gaps",
    }

    assert wanted <= {row.id for row in ROWS}


def test_every_cause_follows_from_some_symptom() -> None:
    assert {cause for row in ROWS for cause in row.causes} == set(CAUSES)


@EACH
def test_every_cause_of_a_symptom_is_pointed_at_by_a_figure_or_named_in_what_to_record(symptom: Symptom) -> None:
    """Where no figure points at a cause, the text says what would: so a reader is never left with a bare name."""
    pointed = {cause for figure in symptom.figures for cause in (*figure.points_to, *figure.when.values())}

    assert pointed
    assert len(pointed) >= len(symptom.causes) / 2


@EACH
def test_every_figure_is_in_a_report(symptom: Symptom) -> None:
    pointers = [pointer for figure in symptom.figures for pointer in (figure.at, figure.of) if pointer]

    assert not [pointer for pointer in pointers if not is_in_reports(pointer)]


@EACH
def test_every_candidate_is_in_the_catalogue_and_answers_one_of_the_causes(symptom: Symptom) -> None:
    rows = {row.id: row for row in load_catalogue()}

    assert not set(symptom.candidates) - set(rows)
    assert all(set(rows[name].answers) & set(symptom.causes) for name in symptom.candidates)


@EACH
def test_every_command_exists_and_takes_what_it_is_given(symptom: Symptom) -> None:
    known = {command.name for command in app.registered_commands} | {"candidates", "verify"}
    topics = {*CAUSES, *(row.id for row in ROWS)}

    for command in symptom.next:
        _, name, *words = shlex.split(command)
        assert name in known
        if name == "explain":
            assert words[0] in topics
        if name == "whatif":
            assert words[0] == "PATH"
            parse_option(words[1], " ".join(words[2:]))  # refuses what it does not understand


def test_a_good_file_is_read() -> None:
    symptoms = parse_symptoms(GOOD, "mine.toml")

    (row,) = symptoms.rows
    assert row.figures[0].least(Settings()) == 0.1
    assert row.figures[1].when == {"pause": "gc"}
    assert symptoms.language.same == {"gpu": "device"}


def test_the_name_of_a_setting_stands_for_its_value() -> None:
    text = GOOD.replace("notable_from = 0.1", 'notable_from = "more_work_min_share"')

    (row,) = parse_symptoms(text, "mine.toml").rows

    assert row.figures[0].least(Settings(more_work_min_share=0.25)) == 0.25


MISTAKES: list[tuple[str, str, int, str]] = [
    ('id = "device-idle"', 'id = "Device Idle"', 8, "'id'"),
    ('id = "device-idle"', 'id = "data-loader"', 8, "'id'"),
    ('says = "The device is idle"', "says = 3", 9, "'says'"),
    ('words = ["gpu idle"]', "words = []", 11, "'words'"),
    ('words = ["gpu idle"]', 'words = ["gpu idle", "gpu idle"]', 11, "'words'"),
    ('"data_loader", "gc"]', '"data_loader", "slow_disk"]', 12, "'causes'"),
    ('["input.prefetch"]', '["prefetch"]', 13, "'candidates'"),
    ('["longpole report PATH"]', '["rm -r PATH"]', 15, "'next'"),
    ('record = ["device activities"]', 'recrod = ["device activities"]', 14, "'recrod'"),
    ('at = "/ledger/device/idle_ns"', 'at = "ledger.device"', 19, "'at'"),
    ("notable_from = 0.1", 'notable_from = "a_tenth"', 22, "'notable_from'"),
    ("notable_from = 0.1", "notable_from = true", 22, "'notable_from'"),
    ('points_to = ["data_loader"]', 'points_to = ["leak"]', 23, "'points_to'"),
    ('take = "names"', 'take = "median"', 28, "'take'"),
    ('take = "names"\n', "", 25, "'take'"),
    ('when = { pause = "gc" }', 'when = { pause = "leak" }', 30, "'when'"),
    ('when = { pause = "gc" }', 'when = "gc"', 30, "'when'"),
    ('device = ["gpu"]', 'device = ["gpu"]\ncard = ["gpu"]', 6, "'card'"),
]


@pytest.mark.parametrize(("good", "bad", "line", "key"), MISTAKES)
def test_a_mistake_is_named_with_its_line_and_key(good: str, bad: str, line: int, key: str) -> None:
    assert good in GOOD

    with pytest.raises(UsageError) as error:
        parse_symptoms(GOOD.replace(good, bad, 1), "mine.toml")

    assert f"mine.toml, line {line}: " in str(error.value)
    assert f"key {key}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[symptom]\n", "mine.toml: expected a TOML file"),
        ("\n[symptoms]\nid = 1\n", "mine.toml, line 2: expected [[symptom]]"),
        ("symptom = 3\n", "expected 'symptom' to be tables"),
        ('[[symptom]]\nid = "a"\n', "mine.toml, line 1: [[symptom]], key 'says': found nothing"),
    ],
)
def test_a_file_of_another_form_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="found") as error:
        parse_symptoms(text, "mine.toml")

    assert said in str(error.value)


def test_an_id_stands_once() -> None:
    row: Any = GOOD[GOOD.index("[[symptom]]") :]

    with pytest.raises(UsageError, match="'device-idle' again"):
        parse_symptoms(GOOD + row, "mine.toml")


def test_keys_within_a_text_of_several_lines_are_no_keys() -> None:
    """The line of a key behind such a text is still the right one."""
    text = GOOD.replace('means = "Nothing was launched for it."', 'means = """\nid = "x"\nwords = 3\n"""')

    with pytest.raises(UsageError, match=r"line 14: .*'words'"):
        parse_symptoms(text.replace('words = ["gpu idle"]', "words = 3"), "mine.toml")
