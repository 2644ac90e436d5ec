"""A mistake in a rules file is named with its file, rule and key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.errors import UsageError
from longpole.vocabulary.index import check_rule
from longpole.vocabulary.matcher import Vocabulary
from longpole.vocabulary.rules import THEMES, parse_rules

if TYPE_CHECKING:
    from pathlib import Path

GOOD = '[[kernel]]\nname = "mine"\nexact = ["my_sum"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[kernel]\n", "expected a TOML file with rules, found"),
        ('[[kernels]]\nname = "a"\n', "found 'kernels'"),
        ("kernel = 3\n", "found 'kernel'"),
        ("kernel = [3]\n", "row 1 of [[kernel]]: expected a table, found 3"),
        ('[[kernel]]\nexact = ["a"]\n', "rule 'number 1' of [[kernel]], key 'name': found nothing"),
        ('[[kernel]]\nname = 3\nexact = ["a"]\n', "key 'name': found 3; write a text"),
        ('[[kernel]]\nname = "a"\n', "rule 'a' of [[kernel]], key 'exact': found no key that chooses names"),
        ('[[kernel]]\nname = "a"\nexact = []\n', "found no key that chooses names"),
        ('[[kernel]]\nname = "a"\nexact = "b"\n', "key 'exact': found 'b'; write a list of texts"),
        ('[[kernel]]\nname = "a"\nexact = [""]\n', "key 'exact': found ['']; write a list of texts"),
        ('[[kernel]]\nname = "a"\nphrase = ["b"]\n', "key 'phrase': found a key that has no meaning here"),
        ('[[kernel]]\nname = "a"\nexact = ["b"]\nkind = "allreduce"\n', "key 'kind': found 'allreduce'; expected one"),
        (
            '[[kernel]]\nname = "a"\nexact = ["b"]\ncollective = 1\n',
            "key 'collective': found 1; expected true or false",
        ),
        ('[[kernel]]\nname = "a"\nexact = ["b"]\nfamily = 1\n', "key 'family': found 1; expected a text"),
        (
            '[[step]]\nname = "a"\nkind = "step"\npriority = true\nexact = ["b"]\n',
            "found True; expected a whole number",
        ),
        ('[[call]]\nname = "a"\nexact = ["b"]\n', "key 'call': found nothing; expected one of 'gc'"),
        (
            '[[call]]\nname = "a"\ncall = "sync"\nprefix = ["b"]\n',
            "key 'prefix': found ['b']; write texts of at least 2",
        ),
        ('[[call]]\nname = "a"\ncall = "sync"\nphrase = ["12"]\n', "write at least one word of letters"),
    ],
)
def test_a_mistake_names_file_rule_and_key(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rules(text, "mine.toml")

    assert str(caught.value).startswith("mine.toml: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "match = ['(']\n", "key 'match': found '('; not a regular expression"),
        (GOOD + 'example = ["other"]\n', "key 'example': found 'other'; the rule does not choose this name"),
        (GOOD + 'not = ["my_sum"]\n', "key 'not': found 'my_sum'; the rule chooses this name"),
        ('[[call]]\nname = "a"\ncall = "sync"\nframe = ["save"]\n', "key 'frame': found 'save'; write 'path/file.py:"),
        ('[[call]]\nname = "a"\ncall = "sync"\nframe = ["/: f"]\n', "key 'frame'"),
    ],
)
def test_a_rule_is_checked_against_its_own_examples(text: str, said: str) -> None:
    (rule,) = parse_rules(text, "mine.toml")

    with pytest.raises(UsageError) as caught:
        check_rule(rule)

    assert said in str(caught.value)


def test_a_mistake_in_the_users_file_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD + 'example = ["other"]\n', encoding="utf-8")

    with pytest.raises(UsageError, match=r"mine\.toml: rule 'mine'"):
        Vocabulary.load(path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(UsageError, match="expected a readable TOML file with rules"):
        Vocabulary.load(path)


def test_settings_may_stand_in_the_same_file() -> None:
    rules = parse_rules("[settings]\nreadout_max_bytes = 1\n" + GOOD, "mine.toml")

    assert [rule.name for rule in rules] == ["mine"]


@pytest.mark.parametrize("theme", THEMES)
def test_our_rules_have_unique_names_meanings_sources_and_examples(theme: str) -> None:
    rules = Vocabulary.load().rules(theme)

    names = [rule.name for rule in rules]

    assert rules
    assert len(names) == len(set(names))
    assert all(rule.means and rule.source and rule.examples for rule in rules)


@pytest.mark.parametrize("theme", THEMES)
def test_our_expressions_are_tried_only_behind_a_gate(theme: str) -> None:
    """An expression that every name meets would cost a hundred thousand searches."""
    rules = Vocabulary.load().rules(theme)

    assert [rule.name for rule in rules if "match" in rule.selectors and not (rule.needs or rule.begins)] == []
