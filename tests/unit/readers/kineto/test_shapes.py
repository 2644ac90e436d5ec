"""Shapes, element types and other arguments of operators, and the occupancy of kernels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from longpole.readers.kineto.lower import lower
from longpole.readers.kineto.read import read_raw
from longpole.settings import Settings
from tests import trace_text

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.timeline.timeline import Timeline


def operator(name: str, start_us: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": 5, "args": args}


def read(path: Path, events: list[dict[str, Any]]) -> Timeline:
    return read_file(trace_text.write(path, events))


def read_file(file: Path) -> Timeline:
    raw, breaks = read_raw(file, Settings())
    return lower(raw, breaks, str(file), 1, Settings())[0]


def test_shapes_types_and_values_stand_beside_one_another(tmp_path: Path) -> None:
    shaped = {"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"], "Concrete Inputs": ["", "1"]}
    events = [operator("aten::add", 0, **shaped), operator("aten::relu", 10), trace_text.kernel(20, 5)]

    timeline = read(tmp_path / "rank0.json", events)

    assert timeline.names[int(timeline.host.name[0])] == "aten::add"
    assert [timeline.input_types.at(row) for row in (0, 1)] == ['["float", "Scalar"]', None]
    assert [timeline.input_values.at(row) for row in (0, 1)] == ['["", "1"]', None]
    assert timeline.input_dims.codes(timeline.input_dims.row).tolist() == [0]


def test_numbers_of_autograds_nodes_are_kept_of_operators_with_shapes(tmp_path: Path) -> None:
    shaped = {"Input Dims": [[2, 3]]}
    numbered = [7, 0, -1, True, "8", None]
    events = [operator("aten::cat", 10 * i, **shaped, **{"Sequence number": one}) for i, one in enumerate(numbered)]
    events.append(operator("aten::cat", 90, **{"Sequence number": 9}))

    timeline = read(tmp_path / "rank0.json", events)

    assert [timeline.sequences.at(row) for row in range(7)] == ["7", "0", None, None, None, None, None]


def test_shapes_of_long_lists_are_kept_whole_and_on_one_line(tmp_path: Path) -> None:
    shapes = [[[4096, 4096]] * 200, []]
    events = [operator("aten::_foreach_add_", 0, **{"Input Dims": shapes})]
    indented = tmp_path / "rank0.json"
    indented.write_text(json.dumps({"traceEvents": events}, indent=4))

    timeline = read(tmp_path / "rank1.json", events)
    same = read_file(indented)

    assert timeline.input_dims.at(0) == same.input_dims.at(0) == json.dumps(shapes)


def test_strides_are_kept_where_one_is_0(tmp_path: Path) -> None:
    strides = [[[256, 0, 1], []], [[10, 100, 1], []], [[0], [1]], [], [[], [1, 0]]]
    events = [operator("aten::add", 10 * i, **{"Input Dims": [[]], "Input Strides": s}) for i, s in enumerate(strides)]

    timeline = read(tmp_path / "rank0.json", events)

    kept = [timeline.input_strides.at(row) for row in range(5)]
    assert kept == [json.dumps(strides[0]), None, json.dumps(strides[2]), None, json.dumps(strides[4])]


def test_occupancy_is_that_of_the_device_row(tmp_path: Path) -> None:
    occupied: dict[str, Any] = {"est. achieved occupancy %": 27}
    events = [trace_text.kernel(0, 5, correlation=1), trace_text.kernel(10, 5, correlation=2, **occupied)]

    timeline = read(tmp_path / "rank0.json", events)

    assert [timeline.occupancy.at(row) for row in (0, 1)] == [None, "27"]
