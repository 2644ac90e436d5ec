"""Laws of the vocabulary: answers depend on the name alone, and lie in the closed lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from longpole.vocabulary.forms import clip, function_name
from longpole.vocabulary.matcher import Vocabulary
from longpole.vocabulary.objects import ACTIVITY_OBJECTS, CALLS, COLLECTIVE_KINDS, COPY_DIRECTIONS, STAGES
from longpole.vocabulary.rules import THEMES
from tests.examples import examples

OURS = Vocabulary.load()
EXAMPLES = [name for theme in THEMES for rule in OURS.rules(theme) for name in (*rule.examples, *rule.look_alikes)]

# Free text seldom meets a rule, so parts of known names are mixed in.
NAMES = st.one_of(
    st.text(max_size=80),
    st.sampled_from(EXAMPLES),
    st.lists(st.one_of(st.sampled_from(EXAMPLES), st.text("<>(): _#/.aA0", max_size=8)), max_size=4).map("".join),
)


@examples(15)
@given(st.lists(NAMES, min_size=1, max_size=40))
def test_answers_depend_on_the_name_alone(names: list[str]) -> None:
    """Neither what was asked before nor in which order changes an answer."""
    fresh = Vocabulary.load()

    first = [(fresh.kernel(name), fresh.copy(name), fresh.host(name), fresh.step(name)) for name in reversed(names)]
    later = [(OURS.kernel(name), OURS.copy(name), OURS.host(name), OURS.step(name)) for name in names]

    assert first == later[::-1]


@given(NAMES)
def test_answers_lie_in_the_closed_lists(name: str) -> None:
    kernel, copy, host, step = OURS.kernel(name), OURS.copy(name), OURS.host(name), OURS.step(name)

    assert kernel.kind in COLLECTIVE_KINDS
    assert not (kernel.is_collective and kernel.is_fused)
    assert kernel.is_collective or kernel.is_fused or (kernel.kind, kernel.family, kernel.protocol) == ("", "", "")
    assert copy.direction in COPY_DIRECTIONS
    assert not (copy.pageable and copy.pinned)
    assert copy.is_copy or copy.direction == "unknown"
    assert host.object in (*ACTIVITY_OBJECTS, "")
    assert host.call in CALLS
    assert host.stage in (*STAGES, "")
    assert bool(host.object) == bool(host.activity)
    assert host.is_collective_op or (host.kind, host.backend) == ("", "")
    assert step is None or step.ordinal is None or step.ordinal >= 0


@given(NAMES, st.text(min_size=2000, max_size=3000))
def test_the_middle_of_a_long_name_does_not_count(name: str, middle: str) -> None:
    head, tail = name[:200].ljust(600, "x"), name[-200:].rjust(400, "y")

    assert OURS.host(f"{head}{middle}{tail}") == OURS.host(f"{head}{middle[::-1]}{tail}")
    assert OURS.kernel(f"{head}{middle}{tail}") == OURS.kernel(head)


@given(NAMES)
def test_forms_are_no_longer_than_what_may_be_looked_at(name: str) -> None:
    assert len(clip(name * 50)) <= 512 + 256 + 1
    assert len(function_name(name * 50)) <= 1024  # some letters grow in lower case


@given(st.sampled_from(EXAMPLES), st.text("abcdefghij0123456789 ,*", max_size=30))
def test_template_arguments_and_parameters_say_nothing_about_a_kernel(name: str, arguments: str) -> None:
    function = "scale_kernel"

    assert OURS.kernel(f"void ns::{function}<{arguments}, {name}") == OURS.kernel(f"void ns::{function}<int>(int)")
