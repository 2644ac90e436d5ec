"""Whatever happens to one place of an event list, every event elsewhere is kept."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from longpole.readers.kineto.recovery import Recovered, recover

BORDER = re.compile(rb'\}\s*,\s*(?=\{\s*")')

names = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["void f<int[2]>(std::array<char*, 1ul>)", "C:\\a\\b.py", 'say "hi"', "}, {", "][", "a, b", "é😀"]),
)
scalars = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.none(), names)
args = st.dictionaries(
    names,
    st.one_of(scalars, st.lists(scalars, max_size=3), st.lists(st.lists(scalars, max_size=2), max_size=2)),
    max_size=4,
)
events = st.fixed_dictionaries(
    {"ph": st.sampled_from(["X", "M", "s", "f", "i"]), "pid": st.integers(0, 9999), "name": names},
    optional={"cat": names, "ts": scalars, "dur": scalars, "args": args},
)
separators = st.sampled_from([b",", b", ", b",\n", b",\n    ", b" ,\r\n"])
mutations = st.tuples(
    st.sampled_from(["cut", "flip", "insert", "delete", "duplicate"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 40),
    st.one_of(st.integers(0, 255), st.sampled_from(list(b'{}[]",:\\\0'))),
)


class Scene:
    """Valid elements in one text, of which one place was changed.

    before                      [0, low)         as written
    changed                     [low, ...)       anything
    behind                      [high, end)      as written, elsewhere
    """

    def __init__(self, elements: list[dict[str, Any]], separator: bytes, mutation: tuple[str, float, int, int]) -> None:
        kind, place, size, byte = mutation
        self.elements = [msgspec.json.encode(element) for element in elements]
        text = separator.join(self.elements)
        ends = [len(separator.join(self.elements[: i + 1])) for i in range(len(self.elements))]
        self.spans = [(end - len(element), end) for end, element in zip(ends, self.elements, strict=True)]
        low = int(place * len(text))
        high = {"flip": low + 1, "delete": low + size, "cut": len(text)}.get(kind, low)
        new = {
            "flip": bytes((byte,)),
            "insert": bytes((byte,)),
            "duplicate": text[low : low + size],
        }.get(kind, b"")
        self.text = text[:low] + new + text[high:]
        self.untouched = [i for i, (start, end) in enumerate(self.spans) if end <= low or start >= high]

    def missing(self, recovered: Recovered) -> list[int]:
        kept = set(recovered.events)
        return [i for i in self.untouched if self.elements[i] not in kept]


scenes = st.builds(Scene, st.lists(events, min_size=1, max_size=8), separators, mutations)


def check(scene: Scene, recovered: Recovered) -> None:
    for event in recovered.events:
        msgspec.json.decode(event)
    assert recovered.starts == sorted(set(recovered.starts))
    assert len(recovered.starts) == len(recovered.events)
    assert all(0 <= start < len(scene.text) for start in recovered.starts)
    assert all(0 <= damage.byte <= len(scene.text) for damage in recovered.damages)
    missing = scene.missing(recovered)
    assert len(missing) <= 1, (missing, scene.text)


@given(scenes)
def test_one_mutation_costs_no_event_elsewhere_but_one_neighbour(scene: Scene) -> None:
    recovered = recover(scene.text, 0, final=True)

    check(scene, recovered)
    assert recovered.closed_at is None or scene.text[recovered.closed_at : recovered.closed_at + 1] in (b"]", b"}")


@given(scenes, st.integers(1, 5))
def test_text_in_pieces_keeps_as_much(scene: Scene, every: int) -> None:
    """Pieces end where an event seems to end, and the rest of each is put before the next one."""
    whole = Recovered([], [], [], 0)
    rest, at = b"", 0
    borders = [border.end() for border in BORDER.finditer(scene.text)][::every]
    for end in [*borders, len(scene.text)]:
        piece = rest + scene.text[at:end]
        recovered = recover(piece, at - len(rest), final=end == len(scene.text))
        whole.events.extend(recovered.events)
        whole.starts.extend(recovered.starts)
        whole.damages.extend(recovered.damages)
        rest, at = scene.text[recovered.rest_start : end], end
        if recovered.closed_at is not None:
            break

    check(scene, whole)


@given(st.lists(events, max_size=8), separators, st.integers(0, 10**12))
def test_a_sound_list_is_kept_as_it_is(elements: list[dict[str, Any]], separator: bytes, first_byte: int) -> None:
    encoded = [msgspec.json.encode(element) for element in elements]
    text = separator.join(encoded)

    recovered = recover(text, first_byte, final=True)

    assert recovered.events == encoded
    assert recovered.damages == []
    assert recovered.rest_start == first_byte + len(text)
    assert all(
        text[start - first_byte :].startswith(event)
        for start, event in zip(recovered.starts, recovered.events, strict=True)
    )


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_give_valid_events_in_order(text: bytes, final: bool) -> None:
    recovered = recover(text, 0, final=final)

    for event in recovered.events:
        msgspec.json.decode(event)
    assert recovered.starts == sorted(set(recovered.starts))
    assert 0 <= recovered.rest_start <= len(text)


@given(
    st.lists(
        st.sampled_from(['{"ph":', '"a"', ":", ",", "{", "}", "[", "]", "1", '"', "\\", " ", "{}", "..."]), max_size=60
    )
)
def test_any_tokens_give_valid_events_in_order(tokens: list[str]) -> None:
    text = "".join(tokens).encode()

    for final in (True, False):
        recovered = recover(text, 0, final=final)

        for event in recovered.events:
            msgspec.json.decode(event)
        assert recovered.starts == sorted(set(recovered.starts))
        assert 0 <= recovered.rest_start <= len(text)
