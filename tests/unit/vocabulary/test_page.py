"""The page on names is current, and its example works."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from longpole.vocabulary.matcher import Vocabulary
from longpole.vocabulary.meanings import StepMeaning
from longpole.vocabulary.objects import CALLS, COLLECTIVE_KINDS, COPY_DIRECTIONS, STEP_KINDS
from longpole.vocabulary.rules import SELECTORS, THEMES, VALUE_KEYS
from tools.render_vocabulary import PAGE, render_page, render_tables

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / PAGE).read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_rules(page: str) -> None:
    """Else run `python -m tools.render_vocabulary`."""
    assert page == render_page(page, render_tables(Vocabulary.load()))


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected the marks"):
        render_page("# A page\n", "tables")


def test_every_key_and_value_is_explained(page: str) -> None:
    explained = {*re.findall(r"`([^`\n]+)`", page)}

    keys = {key for theme in THEMES for key in (*SELECTORS[theme], *VALUE_KEYS[theme])}
    values = {*COLLECTIVE_KINDS, *CALLS, *COPY_DIRECTIONS, *STEP_KINDS} - {""}

    assert keys | values | {"needs", "begins", "example", "not"} <= explained


def test_the_example_of_a_rules_file_works(page: str, tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "my-rules.toml"
    path.write_text(example, encoding="utf-8")

    vocabulary = Vocabulary.load(path)

    assert vocabulary.kernel("void acme::tree_sum_bf16<8>(void*, int)").kind == "all_reduce"
    assert not vocabulary.kernel("void acme::all_to_all_router_table<4>(int*)").is_collective
    assert vocabulary.host("read_shard 7").loader_workers is True
    assert vocabulary.step("tick 12") == StepMeaning("iteration", 12, 3)
