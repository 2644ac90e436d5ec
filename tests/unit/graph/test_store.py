"""A graph on disk: what is read is what was written; what is damaged is refused with a message."""

from __future__ import annotations

import contextlib
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.errors import InputError
from longpole.graph import store
from longpole.graph.store import read_graph, write_graph
from tests.build import LOADER, Script
from tests.run_graphs import graph_of

if TYPE_CHECKING:
    from pathlib import Path


def _script(*, device: bool = True) -> Script:
    script = Script(rank=3)
    for step in range(2):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.span(LOADER + "\x00é☃", at + 10, at + 310)
        script.op("aten::mul", at + 320, at + 380)
        if device:
            script.kernel(at + 410, at + 800, script.launch(at + 400, at + 405))
            script.sync(at + 420, at + 805)
    return script


def _same(a: object, b: object) -> None:
    assert type(a) is type(b)
    if is_dataclass(a):
        for field in fields(a):
            _same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray)
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()
    elif isinstance(a, dict):
        assert isinstance(b, dict)
        assert a.keys() == b.keys()
        for key in a:
            _same(a[key], b[key])
    else:
        assert a == b


@pytest.mark.parametrize("device", [True, False])
def test_what_is_read_is_what_was_written(tmp_path: Path, device: bool) -> None:
    graph = graph_of(_script(device=device))
    write_graph(tmp_path / "deep" / "a.graph", graph)

    _same(read_graph(tmp_path / "deep" / "a.graph"), graph)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.graph"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no graph can be read"):
        read_graph(tmp_path / "none.graph")


def test_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_graph(tmp_path / "a.graph", graph_of(_script()))
    monkeypatch.setattr(store, "GRAPH_VERSION", 10**6)

    with pytest.raises(InputError, match="another version"):
        read_graph(tmp_path / "a.graph")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_cut_short_is_refused(tmp_path: Path, share: float) -> None:
    file = tmp_path / "a.graph"
    write_graph(file, graph_of(_script()))
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])

    with pytest.raises(InputError, match="no graph can be read"):
        read_graph(file)


def test_bytes_changed_anywhere_are_refused_or_make_no_difference(tmp_path: Path) -> None:
    file = tmp_path / "a.graph"
    graph = graph_of(_script())
    write_graph(file, graph)
    whole = bytearray(file.read_bytes())
    random = np.random.default_rng(7)

    for place in random.integers(0, len(whole), 150).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(random.integers(0, 8))
        file.write_bytes(damaged)
        with contextlib.suppress(InputError):
            _same(read_graph(file), graph)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "a.graph"
    with file.open("wb") as out:
        np.savez(out, meta=np.array([{"a": 1}], object))

    with pytest.raises(InputError, match="no graph can be read"):
        read_graph(file)
