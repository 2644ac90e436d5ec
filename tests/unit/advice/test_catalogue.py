"""The catalogue: what ours holds, what a user's file does to it, and what is said of a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.advice.catalogue import conflicts_of, load_catalogue, parse_catalogue
from longpole.errors import UsageError
from longpole.vocabulary.causes import CAUSES, NO_VERDICT

if TYPE_CHECKING:
    from pathlib import Path

ROW = """
[[change]]
id = "input.try"
object = "input"
says = "Try it."
answers = ["data_loader"]
applies_when = [{ figure = "input.exposed_share", at_least = 0.03 }]
not_when = [{ figure = "loader.has_workers", is = true, why = "it has been tried" }]
effort = "low"
change = ["--prefetch input"]
must_record = ["period of every unit"]
proved_by = ["time per item falls"]
cannot_replace = "another run"
costs = []
part = "input"
references = ["https://docs.pytorch.org/docs/stable/data.html"]
"""

NOT_ANSWERED = {
    # A recording that began late on one rank, and one that lacks its kernels: nothing in the job is to be changed.
    "profiler_start_skew",
    NO_VERDICT,
}


def test_every_cause_has_an_answer() -> None:
    answered = {cause for row in load_catalogue() for cause in row.answers}

    assert set(CAUSES) - answered == NOT_ANSWERED


def test_ids_are_unique_and_say_their_object() -> None:
    rows = load_catalogue()

    assert len({row.id for row in rows}) == len(rows)
    assert all(row.id.startswith(f"{row.object}.") for row in rows)


def test_every_row_says_when_it_is_not_worth_trying() -> None:
    assert all(row.not_when and all(condition.why for condition in row.not_when) for row in load_catalogue())


def test_conflicts_hold_in_both_directions() -> None:
    pairs = conflicts_of(load_catalogue())

    assert all(one in pairs[other] for one, others in pairs.items() for other in others)
    assert "state.checkpoint_full" in pairs["state.checkpoint_attention"]
    assert "state.checkpoint_attention" in pairs["state.checkpoint_full"]


def test_the_layouts_are_the_five_of_the_design_and_say_what_they_trade() -> None:
    layouts = [row for row in load_catalogue() if row.table == "layout"]

    assert len(layouts) == 5
    assert all(row.spreads and row.exposes and row.pairs for row in layouts)


def test_a_users_file_adds_changes_and_takes_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        ROW + '[[change]]\nid = "input.prefetch"\neffort = "high"\n\n[[change]]\nid = "input.cache"\noff = true\n',
        encoding="utf-8",
    )
    shipped, mine = {row.id: row for row in load_catalogue()}, {row.id: row for row in load_catalogue(file)}

    assert mine.keys() == shipped.keys() - {"input.cache"} | {"input.try"}
    assert (shipped["input.prefetch"].effort, mine["input.prefetch"].effort) == ("low", "high")
    assert mine["input.prefetch"].change == shipped["input.prefetch"].change


def test_what_is_taken_out_conflicts_with_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[change]]\nid = "collective.split_fused"\noff = true\n', encoding="utf-8")

    assert "collective.split_fused" not in {i for ids in conflicts_of(load_catalogue(file)).values() for i in ids}


def _refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse_catalogue(text, "mine.toml")
    return str(caught.value)


MISTAKES = {
    "a word that is none": ('effort = "low"', 'effort = "tiny"', 9, "effort", "invalid enum value 'tiny'"),
    "a number for a text": ('says = "Try it."', "says = 5", 5, "says", "expected `str`, got `int`"),
    "a text for a list": ('["period of every unit"]', '"period"', 11, "must_record", "expected `array`"),
    "a key of another thing": ("costs = []", 'colour = "red"\ncosts = []', 14, "colour", "has no meaning here"),
    "an id of another object": ('id = "input.try"', 'id = "state.try"', 3, "id", "'input.verb'"),
    "no such object": ('part = "input"', 'part = "fuel"', 15, "part", "stage:NAME or idle:REASON"),
    "no such stage": ('says = "Try it."', 'stage = "x"\nsays = "Try it."', 5, "stage", "expected one of input"),
    "no such cause": ('["data_loader"]', '["data_loder"]', 6, "answers", "'data_loder'"),
    "no such figure": ("input.exposed_share", "input.exposed", 7, "applies_when", "no figure is called"),
    "a bound of a flag": ("is = true", "above = 0.5", 8, "not_when", "loader.has_workers is a flag; give is"),
    "no bound": (", at_least = 0.03", "", 7, "applies_when", "is a number; give at_least"),
    "a word in a condition": ("at_least = 0.03", "atleast = 0.03", 7, "applies_when", "unknown field `atleast`"),
    "silent without a why": (', why = "it has been tried"', "", 8, "not_when", "say why"),
    "no such change": ("--prefetch input", "--prefetch output", 10, "change", "expected input"),
    "no such placeholder": ("--prefetch input", "--fuse {sort}=25MB", 10, "change", "no placeholder is called sort"),
    "neither change nor reason": ('change = ["--prefetch input"]', "", 2, "no_change", "why nothing can be replayed"),
    "no reference": ('["https://docs.pytorch.org/docs/stable/data.html"]', "[]", 16, "references", "not empty"),
    "an address of another sort": ("https://docs", "ftp://docs", 16, "references", "https://"),
    "a conflict with nobody": ("costs = []", 'conflicts = ["input.x"]\ncosts = []', 14, "conflicts", "another row"),
    "a key of layouts": ("costs = []", 'spreads = ["x"]\ncosts = []', 14, "spreads", "only a [[layout]]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_the_file_the_line_and_the_key(mistake: str) -> None:
    before, after, line, key, hint = MISTAKES[mistake]
    assert ROW.count(before) == 1

    message = _refused(ROW.replace(before, after))

    assert message.startswith(f"mine.toml, line {line}: row ")
    assert f"key {key!r}" in message
    assert hint in message


def test_what_is_missing_is_named_with_the_line_of_its_row() -> None:
    message = _refused("# a note\n" + ROW.replace('cannot_replace = "another run"\n', ""))

    assert message == (
        "mine.toml, line 3: row 'input.try' of [[change]], key 'cannot_replace': found nothing; every row has this key"
    )


def test_a_row_without_an_id() -> None:
    assert "line 2: row 1 of [[change]], key 'id': found nothing" in _refused(ROW.replace('id = "input.try"\n', ""))


def test_two_rows_of_one_id() -> None:
    assert "line 2 has a row of that id already" in _refused(ROW + ROW)


def test_text_that_is_no_toml_says_where() -> None:
    assert "at line 3" in _refused('[[change]]\nid = "input.try"\neffort = \n')


def test_a_table_of_another_name() -> None:
    message = _refused(ROW + "\n[[candidates]]\nid = 1\n")

    assert message.startswith("mine.toml, line 18: expected tables [[change]], [[layout]], [[scenario]]")


def test_a_mistake_in_a_shipped_row_is_found_in_the_users_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[change]]\nid = "input.prefetch"\n\n\neffort = "tiny"\n', encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_catalogue(file)

    assert str(caught.value).startswith(f"{file}, line 5: row 'input.prefetch' of [[change]], key 'effort'")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a TOML file with rows of a catalogue"):
        load_catalogue(tmp_path / "none.toml")
