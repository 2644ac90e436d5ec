"""Have we tried this? Entries by words, the best first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from longpole.advice.journal.search import search
from longpole.records.journal import ConfigChange, Entry, Expected
from tests.journals import entries, entry


def found(entries: list[Entry], text: str) -> list[str]:
    return [hit.id for hit in search(entries, text)]


JOURNAL = [
    entry("workers", title="Two more loader workers", diff=[ConfigChange("loader.num_workers", 2, 4)]),
    entry("buckets", title="Larger buckets", expected=Expected(1.1, candidate="collective.bucket_size")),
    entry("graph", title="Capture the step", notes="The loader was no part of it.", config={"bucket_cap_mb": 25}),
    entry("precision", title="Lower precision", diff=[ConfigChange("dtype", "bfloat16", "fp8")], tags=["numerics"]),
]


def test_every_field_is_searched() -> None:
    assert found(JOURNAL, "num_workers") == ["workers"]
    assert found(JOURNAL, "collective.bucket_size")[0] == "buckets"
    assert found(JOURNAL, "fp8") == ["precision"]
    assert found(JOURNAL, "numerics") == ["precision"]


def test_a_title_counts_more_than_a_note() -> None:
    assert found(JOURNAL, "loader") == ["workers", "graph"]


def test_an_entry_with_more_of_the_words_comes_first() -> None:
    assert found(JOURNAL, "loader capture")[0] == "graph"


def test_a_question_is_its_words() -> None:
    assert found(JOURNAL, "Have we tried to lower the PRECISION?") == ["precision"]


def test_forms_of_a_word_match_and_numbers_only_whole() -> None:
    assert found(JOURNAL, "bucketing") == ["buckets"]
    assert found(JOURNAL, "capturing") == []
    assert found(JOURNAL, "bucke") == ["buckets"]
    assert found(JOURNAL, "2") == ["workers"]
    assert found(JOURNAL, "16") == []


def test_what_an_entry_merely_ran_with_counts_only_where_nothing_else_does() -> None:
    assert found(JOURNAL, "bucket") == ["buckets"]
    (hit,) = search(JOURNAL, "mb")
    assert (hit.id, hit.matched) == ("graph", ["configuration"])


def test_equally_good_ones_the_latest_first() -> None:
    assert found([entry("old", title="Prefetch"), entry("new", title="Prefetch")], "prefetch") == ["new", "old"]


def test_nothing_is_found_where_nothing_is() -> None:
    assert search(JOURNAL, "tensor parallel") == []
    assert search([], "prefetch") == []


@given(st.lists(entries, max_size=4), st.text(max_size=20))
def test_any_text_has_an_answer_and_places_are_those_of_the_entries(journal: list[Entry], text: str) -> None:
    hits = search(journal, text)

    assert all(journal[hit.place].id == hit.id and hit.score > 0 for hit in hits)
    assert len({hit.place for hit in hits}) == len(hits)
