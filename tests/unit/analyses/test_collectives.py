"""What a rank's record says of its collectives: kind, group, size, when issued, in which unit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from longpole.digest.digest import Selection, digest
from longpole.records.instances import RECEIVE, SEND, Instances
from longpole.settings import Settings
from longpole.timeline.columns import NONE_NS, Kind
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from tests.build import VOCABULARY, Script
from tests.unit.analyses.test_comm_groups import args

if TYPE_CHECKING:
    from longpole.timeline.tables import CollectiveArgs

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def instances(script: Script, *said: CollectiveArgs, groups: tuple[dict[str, Any], ...] = ()) -> Instances:
    made = script.timeline()
    made = replace(made, collectives=said, identity=replace(made.identity, groups=groups))
    return digest(made, VOCABULARY, Settings(), Selection()).instances


def kinds(found: Instances) -> list[str]:
    return [COLLECTIVE_KINDS[code] for code in found.kind.tolist()]


def test_the_kernels_own_metadata_comes_first() -> None:
    script = Script()
    script.collective(20, 40, script.launch(0, 5))

    found = instances(script, args(row=0, name="_allgather_base", out_elements=4000, sequence=9, comms_id=77))

    assert kinds(found) == ["all_gather"]
    assert found.bytes.tolist() == [16_000]
    assert (found.sequence.tolist(), found.comms_id.tolist()) == ([9], [77])
    assert found.groups[int(found.group[0])].members == [0, 1, 2, 3]
    assert [found.dtypes[int(code)] for code in found.dtype] == ["Float"]


def test_else_the_metadata_of_the_operator_around_the_launch() -> None:
    """The operator is row 0 of the host table, the call row 1."""
    script = Script()
    script.op("record_param_comms", 0, 10)
    script.collective(20, 40, script.launch(2, 5), name=SEND_RECV)

    found = instances(script, args(row=0, on_device=False, name="alltoallv"))

    assert kinds(found) == ["all_to_all"]
    assert found.issue_ns.tolist() == [2000]


def test_else_the_annotation_open_at_the_launch_names_the_kind() -> None:
    script = Script()
    script.span("nccl:all_to_all", 0, 10)
    script.collective(20, 40, script.launch(2, 5), name=SEND_RECV)

    found = instances(script)

    assert kinds(found) == ["all_to_all"]
    assert (found.bytes.tolist(), found.group.tolist()) == ([-1], [-1])


def test_else_the_kernels_name_and_else_nothing() -> None:
    script = Script()
    script.collective(20, 40, script.launch(2, 5))
    script.collective(50, 60, script.launch(6, 8), name=SEND_RECV)

    assert kinds(instances(script)) == ["all_reduce", ""]


def test_a_kernel_whose_launch_is_not_recorded_does_what_others_of_its_name_do() -> None:
    script = Script()
    script.collective(0, 10, name=SEND_RECV)
    script.span("nccl:all_to_all", 20, 30)
    script.collective(40, 60, script.launch(22, 25), name=SEND_RECV)

    found = instances(script)

    assert kinds(found) == ["all_to_all", "all_to_all"]
    assert found.issue_ns.tolist() == [NONE_NS, 22_000]


def test_records_of_waiting_describe_no_operation() -> None:
    script = Script()
    script.op("record_param_comms", 0, 10)
    script.collective(20, 40, script.launch(2, 5))

    found = instances(script, args(row=0, on_device=False, name="wait", group_size=1, dtype="Byte", in_elements=0))

    assert kinds(found) == ["all_reduce"]
    assert found.group.tolist() == [-1]


def test_a_coalesced_group_is_what_its_members_are_together() -> None:
    """Two gathers are recorded, then the group launches one kernel."""
    script = Script()
    script.op("record_param_comms", 0, 2)
    script.op("record_param_comms", 3, 5)
    script.op("record_param_comms", 6, 12)
    script.collective(20, 40, script.launch(8, 10), name=SEND_RECV)
    parts = [args(row=row, on_device=False, name="_allgather_base", out_elements=4000, sequence=3) for row in (0, 1)]

    found = instances(script, *parts, args(row=2, on_device=False, name="coalesced", in_elements=0, sequence=3))

    assert kinds(found) == ["all_gather"]
    assert found.bytes.tolist() == [32_000]
    assert found.sequence.tolist() == [3]


def test_a_batch_of_sends_and_receives_is_launched_behind_their_records() -> None:
    """The kernel carries nothing; it is launched under the annotation of the group."""
    script = Script(rank=1)
    script.op("record_param_comms", 0, 2)
    script.op("record_param_comms", 3, 5)
    script.span("nccl:coalesced", 6, 12)
    script.collective(20, 40, script.launch(8, 10), name=SEND_RECV)
    said = [
        args(row=0, on_device=False, name="send", target_rank=2),
        args(row=1, on_device=False, name="recv", source_rank=2),
    ]

    found = instances(script, *said)

    assert kinds(found) == ["send_recv"]
    assert (found.peer.tolist(), found.direction.tolist()) == ([2], [SEND + RECEIVE])
    assert found.bytes.tolist() == [8000]


def test_sends_and_receives_name_their_peers() -> None:
    script = Script(rank=1)
    for start in (0, 20, 40):
        script.span("nccl:send 1->2" if start == 40 else "nccl:x", start, start + 10)
        script.collective(start + 12, start + 18, script.launch(start + 2, start + 5), name=SEND_RECV)
    said = [args(row=0, name="send", target_rank=5), args(row=1, name="recv", source_rank=6)]

    found = instances(script, *said)

    assert found.is_p2p.tolist() == [1, 1, 1]
    assert found.direction.tolist() == [SEND, RECEIVE, SEND]
    assert found.peer.tolist() == [5, 6, 2]


def test_a_peer_in_the_group_becomes_a_global_rank() -> None:
    """The annotation counts within the group, whose members are 4 and 6."""
    script = Script(rank=4)
    script.span("nccl:send 0->1", 0, 10)
    script.collective(12, 18, script.launch(2, 5), name=SEND_RECV)

    found = instances(script, args(row=0, name="send", group_ranks="[4, 6]", group_size=2))

    assert found.peer.tolist() == [6]


def test_an_operation_belongs_to_the_unit_that_issued_it_and_shows_what_compute_leaves() -> None:
    """
    host     ├── step 0 ──┤├── step 1 ──┤
    compute                    ├───┤
    ring                   ├────────┤ issued in step 0
    """
    script = Script()
    script.step(0, 0, 100)
    script.step(1, 100, 200)
    call = script.launch(90, 95)
    script.kernel(120, 150, script.launch(96, 98))
    script.collective(110, 160, call)

    found = instances(script)

    assert found.unit.tolist() == [0]
    assert found.exposed_ns.tolist() == [20_000]
    assert found.on_device.tolist() == [1]


def test_units_count_as_the_row_lists_them_head_included() -> None:
    script = Script()
    script.span("warm-up", 0, 50)
    script.step(0, 50, 100)
    script.collective(60, 70, script.launch(10, 12))
    script.collective(80, 90, script.launch(75, 76))

    assert instances(script).unit.tolist() == [0, 1]


def test_backends_on_the_host_are_spans_of_their_threads() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("aten::mm", 0, 20)
    script.span("gloo:all_reduce", 10, 40, thread="worker 1")
    script.span("gloo:broadcast", 50, 60, thread="worker 2")

    found = instances(script)

    assert kinds(found) == ["all_reduce", "broadcast"]
    assert found.on_device.tolist() == [0, 0]
    assert found.issue_ns.tolist() == [NONE_NS, NONE_NS]
    assert found.exposed_ns.tolist() == [20_000, 10_000]
    assert found.stream[0] != found.stream[1]


def test_a_python_frame_that_is_called_like_a_backend_is_none() -> None:
    script = Script()
    script.span("gloo:all_reduce", 10, 40, kind=Kind.PYTHON)
    script.op("aten::mm", 50, 60)

    assert len(instances(script)) == 0


def test_a_table_is_stored_in_bytes_and_read_without_a_copy() -> None:
    script = Script()
    script.collective(20, 40, script.launch(0, 5))

    found = instances(script)

    assert found.start_ns.base is not None
    assert sum(len(column) for column in found.columns.values()) <= 100 * len(found)
