"""What the reader keeps of the arguments of collectives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from longpole.pipeline.discover import find_traces
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.timeline.timeline import Timeline

ARGS: dict[str, Any] = {
    "Collective name": "_allgather_base",
    "In msg nelems": 1000,
    "Out msg nelems": 4000,
    "Group size": 4,
    "dtype": "BFloat16",
    "Process Group Name": "7",
    "Process Group Description": "mesh_dp",
    "Process Group Ranks": "[0, 1, 2, 3]",
    "Global rank start": 0,
    "Global rank stride": 1,
    "Seq": 12,
}


def span(category: str, name: str, start: float, length: float, **args: Any) -> dict[str, Any]:
    tid = 7 if category == "kernel" else 1
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": tid, "ts": start, "dur": length, "args": args}


def read(folder: Path, *events: dict[str, Any]) -> Timeline:
    file = folder / "rank0.json"
    file.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    (timeline,) = read_timelines(
        find_traces([str(file)], Settings())[0], WorkContext(None, Settings(), None, None, None)
    )
    return timeline


def test_operators_and_kernels_both_keep_theirs(tmp_path: Path) -> None:
    kernel = span("kernel", "ncclDevKernel_AllGather_RING_LL", 50, 10, stream=7, device=0, correlation=3, **ARGS)
    other = span("kernel", "gemm", 10, 10, stream=7, device=0, correlation=2)
    timeline = read(tmp_path, other, kernel, span("cpu_op", "record_param_comms", 5, 4, **ARGS))

    found = {args.on_device: args for args in timeline.collectives}
    assert set(found) == {True, False}
    assert found[True].row == 1
    assert timeline.names[int(timeline.device.name[1])] == "ncclDevKernel_AllGather_RING_LL"
    for args in found.values():
        assert (args.name, args.in_elements, args.out_elements, args.dtype) == (
            "_allgather_base",
            1000,
            4000,
            "BFloat16",
        )
        assert (args.group_name, args.group_description, args.group_ranks) == ("7", "mesh_dp", "[0, 1, 2, 3]")
        assert (args.rank_start, args.rank_stride, args.group_size, args.sequence) == (0, 1, 4, 12)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (122, 122),
        ("123", 123),
        (-5, (1 << 62) - 5),
        ((1 << 64) - 1, (1 << 62) - 1),
        ("x", None),
        (True, None),
        ([], None),
    ],
)
def test_ids_that_all_members_write_fit_a_column(written: Any, kept: int | None, tmp_path: Path) -> None:
    timeline = read(tmp_path, span("cpu_op", "record_param_comms", 5, 4, **ARGS, **{"Comms Id": written}))

    assert timeline.collectives[0].comms_id == kept


def test_ranks_of_sends_and_receives(tmp_path: Path) -> None:
    args = {**ARGS, "Collective name": "send", "Dst Rank": 5}
    timeline = read(tmp_path, span("cpu_op", "record_param_comms", 5, 4, **args))

    assert (timeline.collectives[0].target_rank, timeline.collectives[0].source_rank) == (5, None)


@pytest.mark.parametrize(
    ("dims", "types", "elements"),
    [
        ([[256, 4]], ["float"], 1024),
        ([[[16], [16]]], ["TensorList"], 32),
        ([[]], ["float"], None),
        (["x"], ["float"], None),
        ("[[", ["float"], None),
    ],
)
def test_spans_of_a_backend_say_the_size_of_their_inputs(
    dims: Any, types: Any, elements: int | None, tmp_path: Path
) -> None:
    own = {"Input Dims": dims, "Input type": types}
    timeline = read(
        tmp_path, span("user_annotation", "gloo:all_reduce", 5, 4, **own), span("cpu_op", "aten::mm", 20, 5)
    )

    (args,) = timeline.collectives
    assert (args.name, args.in_elements, args.dtype) == ("all_reduce", elements, types[0])
    assert args.group_name == ""


def test_other_annotations_with_shapes_are_no_collectives(tmp_path: Path) -> None:
    own = {"Input Dims": [[4]], "Input type": ["float"]}
    timeline = read(tmp_path, span("user_annotation", "my:all_reduce", 5, 4, **own), span("cpu_op", "aten::mm", 20, 5))

    assert timeline.collectives == ()


def test_names_of_groups_are_harmless(tmp_path: Path) -> None:
    args = {**ARGS, "Process Group Name": "a\u001b[31mb", "Process Group Description": "hf_" + "a" * 40}
    timeline = read(tmp_path, span("cpu_op", "record_param_comms", 5, 4, **args))

    assert "\x1b" not in timeline.collectives[0].group_name
    assert "aaaa" not in timeline.collectives[0].group_description
