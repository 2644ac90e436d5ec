"""The grammar of changes: what can be written, what is refused, and what is said of it."""

from __future__ import annotations

import msgspec
import pytest

from longpole.errors import UsageError
from longpole.whatif.change import (
    OPTIONS,
    Add,
    AsyncCopy,
    Change,
    Equalise,
    Fuse,
    GraphLaunches,
    IssueEarly,
    OffPath,
    Prefetch,
    Scale,
    Split,
    parse_change,
    parse_option,
)
from longpole.whatif.selector import Selector

WRITTEN: dict[str, Change] = {
    "--set input=0.5x": Scale(Selector(object="input"), 0.5),
    "--set collective=0": Scale(Selector(object="collective"), 0.0),
    "--remove input": Scale(Selector(object="input"), 0.0),
    "--set rank:2&compute=1.5x": Scale(Selector(object="compute", rank=2), 1.5),
    "--set name:^aten::(mm|bmm)$=2x": Scale(Selector(name_regex="^aten::(mm|bmm)$"), 2.0),
    "--set name:a=b=0": Scale(Selector(name_regex="a=b"), 0.0),
    r"--set name:float\&, int=0": Scale(Selector(name_regex="float&, int"), 0.0),
    "--set stage:backward&stream:7=+2ms": Add(Selector(stage="backward", stream=7), 2_000_000),
    "--set kind:all_reduce=-500us": Add(Selector(kind="all_reduce"), -500_000),
    "--set host = 1e-1x": Scale(Selector(object="host"), 0.1),
    "--prefetch input": Prefetch("input"),
    "--async-copy": AsyncCopy(),
    "--fuse all_reduce=25MB": Fuse("all_reduce", 25_000_000),
    "--fuse all_reduce=25MiB": Fuse("all_reduce", 26_214_400),
    "--split all_gather=0.5 kB": Split("all_gather", 500),
    "--equalise work": Equalise("work"),
    "--equalise speed": Equalise("speed"),
    "--issue-early collective": IssueEarly(Selector(object="collective")),
    "--issue-early kind:all_gather&rank:1": IssueEarly(Selector(kind="all_gather", rank=1)),
    "--graph-launches": GraphLaunches(),
    "--off-path output": OffPath(Selector(object="output")),
    "--off-path name:save": OffPath(Selector(name_regex="save")),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_change_is_read(text: str) -> None:
    assert parse_change(text) == WRITTEN[text]


@pytest.mark.parametrize("change", WRITTEN.values(), ids=str)
def test_what_is_written_is_read_back(change: Change) -> None:
    assert parse_change(change.to_text()) == change


@pytest.mark.parametrize("change", WRITTEN.values(), ids=str)
def test_a_stored_change_is_the_same_change(change: Change) -> None:
    assert msgspec.json.decode(msgspec.json.encode(change), type=Change) == change


def test_every_option_is_tried_here() -> None:
    assert {text.split()[0] for text in WRITTEN} == set(OPTIONS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("--set input=0", "input takes no time"),
        ("--set rank:2&compute=0.5x", "compute on rank 2 takes 0.5 times as long"),
        ("--set rank:2=0.5x", "everything on rank 2 takes 0.5 times as long"),
        ("--set host=-2ms", "each occurrence of host is 2.00 ms shorter"),
        ("--fuse all_reduce=25MB", "successive all_reduce are fused up to 25.0 MB"),
        ("--split all_reduce=25MB", "all_reduce larger than 25.0 MB are split into parts of that size"),
        ("--prefetch input", "input is prefetched: the next batch is prepared while this one is worked on"),
        ("--async-copy", "copies that the host waits for become asynchronous"),
        ("--equalise work", "the same work is spread evenly over the ranks"),
        ("--equalise speed", "every rank does its own work at the others' median pace"),
        ("--issue-early name:gather", "what is named like gather is issued as early as its inputs allow"),
        ("--graph-launches", "launches are captured in a graph, so that the host no longer paces them"),
        ("--off-path output&rank:0", "output on rank 0 is moved off the path: nothing waits for it any more"),
    ],
)
def test_a_change_is_told_to_a_person(text: str, says: str) -> None:
    assert parse_change(text).says() == says


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--set", "input", "expected SELECTOR=VALUE"),
        ("--set", "input=2", "expected 0.5x (a factor), 0, +2ms or -2ms"),
        ("--set", "input=5ms", "expected 0.5x (a factor), 0, +2ms or -2ms"),
        ("--set", "input=+5", "a time with its unit"),
        ("--set", "input=+0ms", "a time to add that is not 0"),
        ("--set", "input=+2h", "a time with its unit"),
        ("--set", "input=-1x", "a time with its unit"),
        ("--set", "input=1e309x", "expected a factor from 0 to 1000"),
        ("--set", "input=1001x", "expected a factor from 0 to 1000"),
        ("--set", "input=nanx", "expected 0.5x (a factor)"),
        ("--set", "=0", "expected an object"),
        ("--set", "inptu=0", "did you mean input?"),
        ("--set", "all_reduce=0", "did you mean kind:all_reduce?"),
        ("--set", "unknown=0", "expected an object"),
        ("--set", "input&=0", "expected an object"),
        ("--set", "rank:1&rank:2=0", "rank comes twice"),
        ("--set", "rank:-1=0", "a number after rank:"),
        ("--set", "rank:9999999999=0", "a number after rank:"),
        ("--set", "stage:back=0", "did you mean backward?"),
        ("--set", "kind:allreduce=0", "did you mean all_reduce?"),
        ("--set", "colour:red=0", "expected an object"),
        ("--set", "name:(=0", "expected a regular expression"),
        ("--set", "name:=0", "a regular expression after name:"),
        ("--set", f"name:{'x' * 501}=0", "at most 500 characters"),
        ("--remove", "", "expected an object"),
        ("--prefetch", "state", "expected input"),
        ("--async-copy", "now", "expected no value"),
        ("--fuse", "all_reduce", "expected KIND=SIZE"),
        ("--fuse", "all_reduce=25", "expected KIND=SIZE"),
        ("--fuse", "all_reduce=0MB", "a size above 0"),
        ("--split", "allreduce=1MB", "a kind of collective"),
        ("--equalise", "time", "expected work or speed"),
        ("--issue-early", "compute", "expected collective, kind:all_reduce or name:REGEX"),
        ("--off-path", "compute", "expected output, state, artifact or name:REGEX"),
        ("--what", "x", "expected one of --set, --remove"),
        ("--set", "rank:1000000000=0", "a number after rank:"),
    ],
)
def test_what_is_no_change_is_refused_with_what_is_allowed(option: str, value: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_option(option, value)

    assert says in str(caught.value)
    assert option in str(caught.value)


def test_a_selector_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="expected an object"):
        Selector()


def test_a_selector_without_a_name_has_no_pattern() -> None:
    assert Selector(object="input").name_pattern() is None
    pattern = Selector(name_regex="^save").name_pattern()
    assert pattern is not None
    assert pattern.search("save_checkpoint")


@pytest.mark.parametrize("number", [-1, 10**9])
def test_a_rank_that_none_can_have_is_refused(number: int) -> None:
    with pytest.raises(UsageError, match="expected a rank from 0 on"):
        Selector(rank=number)


def test_what_python_warns_of_in_an_expression_is_not_shown() -> None:
    """`[[` may mean a nested set in some later Python; here it means what it always did."""
    assert parse_change("--set name:[[a]=0").says() == "what is named like [[a] takes no time"
