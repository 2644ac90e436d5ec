"""What somebody types leads to what they mean."""

from __future__ import annotations

import pytest

from longpole.advice.cause_pages import read_pages
from longpole.advice.symptoms import load_symptoms
from longpole.advice.topics import find_topics
from longpole.vocabulary.causes import CAUSES

SYMPTOMS = load_symptoms()
PAGES = read_pages()


def ids_for(asked: str) -> list[str]:
    return [topic.id for topic in find_topics(asked, SYMPTOMS, PAGES).topics]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("gpu idle", "device-idle"),
        ("My GPUs are idle, but the job is slow!", "device-idle"),
        ("gpu idel", "device-idle"),
        ("step slower", "step-slower"),
        ("scaling worse", "scaling-worse"),
        ("P99 up", "tail-up"),
        ("out of memory with memory free", "out-of-memory"),
        ("OOM", "out-of-memory"),
        ("slower by the day", "slower-over-time"),
        ("loss of throughput after 3 hours", "slower-over-time"),
        ("gaps between kernels", "kernel-gaps"),
        ("communication takes half of the step", "communication-share"),
        ("GPU utilisation is 100 % but slow", "utilisation-full"),
        ("one rank is slow", "one-rank-slow"),
        ("first step slow", "first-step-slow"),
        ("dataloadr slow", "loader-slow"),
        ("memory leak", "memory-grows"),
        ("nccl timeout", "hangs-and-timeouts"),
        ("garbage collection", "gc"),
    ],
)
def test_words_lead_to_the_one_that_is_meant(asked: str, meant: str) -> None:
    found = find_topics(asked, SYMPTOMS, PAGES)

    assert found.is_sure
    assert [topic.id for topic in found.topics] == [meant]


@pytest.mark.parametrize("name", [*CAUSES, *(row.id for row in SYMPTOMS.rows)])
def test_a_name_leads_to_itself(name: str) -> None:
    for typed in (name, name.replace("_", "-"), name.replace("_", " ").replace("-", " ").upper()):
        found = find_topics(typed, SYMPTOMS, PAGES)
        assert (found.is_sure, [topic.id for topic in found.topics]) == (True, [name])


@pytest.mark.parametrize("row", SYMPTOMS.rows, ids=lambda row: row.id)
def test_every_phrase_of_a_symptom_leads_to_it(row: object) -> None:
    for phrase in (row.says, *row.words):  # type: ignore[attr-defined]
        assert row.id in ids_for(phrase)[:2]  # type: ignore[attr-defined]


def test_what_may_mean_several_things_leads_to_all_of_them() -> None:
    found = find_topics("checkpoint", SYMPTOMS, PAGES)

    assert not found.is_sure
    names = {topic.id for topic in found.topics}
    assert names == {"checkpoint-stalls", "checkpoint_blocking", "checkpoint_staging", "checkpoint_on_one_rank"}


def test_a_word_that_only_a_page_has_leads_to_its_cause() -> None:
    assert {"allocator_retries", "gc_and_empty_cache"} <= set(ids_for("cudaMalloc"))


@pytest.mark.parametrize("asked", ["why is the sky blue", "xyzzy", "the", "?!"])
def test_what_nothing_is_like_leads_nowhere(asked: str) -> None:
    assert ids_for(asked) == []
