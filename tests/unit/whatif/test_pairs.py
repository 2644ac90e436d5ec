"""How wrong predictions of a kind of change were, from pairs of recordings."""

from __future__ import annotations

import pytest

from longpole.whatif import pairs
from longpole.whatif.change import parse_change
from longpole.whatif.pairs import Pair, kind_of, shipped_pairs, spread_of


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (("--set input=0",), "scale:input"),
        (("--remove input",), "scale:input"),
        (("--set input=+2ms",), "scale:input"),
        (("--set rank:1&compute=0.5x",), "scale:compute"),
        (("--set kind:all_reduce=0.5x",), "scale:all_reduce"),
        (("--set name:save=0",), "scale:name"),
        (("--set rank:1=0.5x",), "scale:rows"),
        (("--prefetch input",), "prefetch:input"),
        (("--async-copy",), "async_copy"),
        (("--graph-launches",), "graph_launches"),
        (("--fuse all_reduce=25MB",), "fuse:all_reduce"),
        (("--split all_gather=1MB",), "split:all_gather"),
        (("--equalise work",), "equalise:work"),
        (("--issue-early kind:all_gather",), "issue_early:all_gather"),
        (("--off-path output",), "off_path:output"),
        (("--off-path name:save",), "off_path:name"),
        (("--set input=0", "--async-copy"), "several"),
    ],
)
def test_kinds_of_changes(texts: tuple[str, ...], kind: str) -> None:
    assert kind_of([parse_change(text) for text in texts]) == kind


def _pair(kind: str, predicted_ns: int, device: str = "cpu") -> Pair:
    return Pair("", kind, device, 2000, predicted_ns, 1000)


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> list[Pair]:
    """Pairs in place of those that the package ships."""
    mine: list[Pair] = []
    monkeypatch.setattr(pairs, "shipped_pairs", lambda: tuple(mine))
    return mine


def test_size_spread_and_bias_of_the_same_kind(shipped: list[Pair]) -> None:
    """Errors -30 % … +10 %: sizes 2, 5, 10, 10, 30 %."""
    shipped += [_pair("scale:input", ns) for ns in (700, 900, 980, 1050, 1100)]
    shipped += [_pair("scale:compute", 5000), _pair("scale:input", 9000, device="another")]

    spread = spread_of("scale:input", "cpu")

    assert spread is not None
    assert (spread.kind, spread.pairs) == ("scale:input", 5)
    assert spread.median_share == pytest.approx(0.10)
    assert spread.p90_share == pytest.approx(0.30)
    assert spread.bias_share == pytest.approx(-0.02)


def test_nine_in_ten_were_no_further_off(shipped: list[Pair]) -> None:
    shipped += [_pair("scale:input", 1000 + 10 * k) for k in range(1, 11)]

    spread = spread_of("scale:input", "cpu")

    assert spread is not None
    assert spread.p90_share == pytest.approx(0.09)


def test_where_the_very_kind_was_tried_too_seldom_its_sort_counts(shipped: list[Pair]) -> None:
    shipped += [_pair("scale:input", 900), _pair("scale:compute", 900), _pair("scale:host", 1100)]
    shipped += [_pair("prefetch:input", 5000)]

    spread = spread_of("scale:input", "cpu")

    assert spread is not None
    assert (spread.kind, spread.pairs) == ("scale (all)", 3)


def test_two_pairs_say_nothing(shipped: list[Pair]) -> None:
    shipped += [_pair("scale:input", 900), _pair("scale:compute", 900)]

    assert spread_of("scale:input", "cpu") is None
    assert spread_of("scale:input", "another") is None


def test_what_is_shipped_can_be_read() -> None:
    for pair in shipped_pairs():
        assert pair.before_ns > 0
        assert pair.measured_ns > 0
        assert pair.predicted_ns >= 0
        assert pair.kind == "several" or pair.kind.partition(":")[0].replace("_", "").isalpha()
