"""Ledgers of span files that can be worked out by hand; all times in ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.digest.digest import Selection, digest
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from longpole.vocabulary.matcher import Vocabulary
from tests.span_scripts import MS, SpanScript, timelines

if TYPE_CHECKING:
    from longpole.digest.rank_digest import RankDigest, UnitDigest

VOCABULARY = Vocabulary.load()
WRITER = 2


def measured(*scripts: SpanScript) -> RankDigest:
    """Digest the one rank that some files make up."""
    (timeline,) = timelines(*scripts)
    return digest(timeline, VOCABULARY, Settings(), Selection())


def unit_of(*scripts: SpanScript, name: str = "step 0") -> UnitDigest:
    return next(unit for unit in measured(*scripts).rows[0].units if unit.name == name)


def exposed(*scripts: SpanScript) -> dict[str, float]:
    """Return the exposed time of step 0 by object, in ms, without what is 0."""
    objects = unit_of(*scripts).ledger.objects
    return {name: time.exposed_ns / MS for name, time in objects.items() if time.exposed_ns}


def hidden(*scripts: SpanScript) -> dict[str, float]:
    objects = unit_of(*scripts).ledger.objects
    return {name: t.hidden_ns / MS for name, t in objects.items() if isinstance(t.hidden_ns, int) and t.hidden_ns}


def test_each_object_gets_the_time_of_its_spans_and_the_host_the_rest() -> None:
    """Batch 0–5, forward 5–15, save 16–19, step 0–20: 2 ms lie under no span."""
    script = SpanScript()
    script.unit("step 0", 0, 20)
    script.span("batch", 0, 5, "input")
    script.span("forward", 5, 15, "compute", stage="forward")
    script.span("save", 16, 19, "output")

    unit = unit_of(script)

    assert exposed(script) == {"input": 5, "compute": 10, "output": 3, "host": 2}
    assert unit.ledger.device.busy_ns == 10 * MS
    assert {reason: ns / MS for reason, ns in unit.ledger.idle_ns.items() if ns} == {
        "input": 5,
        "output": 3,
        "host.python": 2,
    }


def test_of_spans_inside_one_another_the_innermost_that_names_an_object_counts() -> None:
    """Compute 0–10 holds input 2–4, which holds compute 3–4; state 10–14 holds the host's 11–12."""
    script = SpanScript()
    script.unit("step 0", 0, 15)
    script.span("train", 0, 10, "compute")
    script.span("batch", 2, 4, "input")
    script.span("augment", 3, 4, "compute")
    script.span("offload", 10, 14, "state")
    script.span("bookkeeping", 11, 12, "host")

    assert exposed(script) == {"compute": 9, "input": 1, "state": 3, "host": 2}


def test_a_span_that_only_has_a_name_changes_nothing_of_the_object_around_it() -> None:
    script = SpanScript()
    script.unit("step 0", 0, 10)
    script.span("train", 0, 8, "compute")
    script.span("layer 3", 2, 5)

    assert exposed(script) == {"compute": 8, "host": 2}


def test_a_span_with_only_a_stage_gives_its_time_the_stage() -> None:
    """Forward 0–6 holds compute 1–4 that says no stage; backward 6–9 holds nothing."""
    script = SpanScript()
    script.unit("step 0", 0, 10)
    script.span("fwd", 0, 6, stage="forward")
    script.span("work", 1, 4, "compute")
    script.span("bwd", 6, 9, stage="backward")

    stages = unit_of(script).stages

    assert {name: (time.wall_ns / MS, time.busy_ns / MS) for name, time in stages.items()} == {
        "forward": (6, 3),
        "backward": (3, 0),
        "other": (1, 0),
    }


def test_compute_without_a_stage_is_not_taken_for_forward() -> None:
    script = SpanScript()
    script.unit("step 0", 0, 10)
    script.span("work", 0, 10, "compute")

    assert set(unit_of(script).stages) == {"other"}


def test_what_the_program_says_wins_over_what_the_name_says() -> None:
    """`save_checkpoint` is output by every rule, and here it is declared as input, compute and the host's."""
    script = SpanScript()
    script.unit("step 0", 0, 10)
    script.span("save_checkpoint", 0, 2, "input")
    script.span("save_checkpoint", 2, 5, "compute")
    script.span("save_checkpoint", 5, 9, "host")

    assert exposed(script) == {"input": 2, "compute": 3, "host": 5}


def test_where_the_program_names_no_object_its_names_count_as_in_any_trace() -> None:
    script = SpanScript()
    script.unit("step 0", 0, 10)
    script.span("save_checkpoint", 0, 4)

    assert exposed(script) == {"output": 4, "host": 6}


def test_a_unit_is_no_activity_whatever_it_is_called() -> None:
    script = SpanScript()
    script.unit("checkpoint 0", 0, 10)
    script.unit("checkpoint 1", 10, 20)

    units = measured(script).rows[0].units

    assert [(u.name, u.kind, u.ledger.objects["host"].exposed_ns / MS) for u in units] == [
        ("checkpoint 0", "step", 10),
        ("checkpoint 1", "step", 10),
    ]


def test_what_other_threads_do_under_compute_is_hidden() -> None:
    """A writer saves 5–14 beside compute 0–10: 5 ms of its 9 are hidden, the rest is elsewhere."""
    script = SpanScript()
    script.unit("step 0", 0, 20)
    script.span("train", 0, 10, "compute")
    script.span("write", 5, 14, "output", thread=WRITER)

    ledger = unit_of(script).ledger

    assert exposed(script) == {"compute": 10, "host": 10}
    assert hidden(script) == {"output": 5}
    assert ledger.objects["output"].service_ns == 9 * MS


def test_a_wait_is_charged_to_what_is_waited_for_and_the_worker_process_gives_the_service() -> None:
    """The worker loads 0–12; the main process computes 0–8 and waits 8–12."""
    main = SpanScript()
    main.unit("step 0", 0, 12)
    main.span("train", 0, 8, "compute")
    main.span("wait for batch", 8, 12, "input", waits=True)
    worker = SpanScript(pid=11, role="loader_worker", worker=0, parent_pid=10)
    worker.span("load", 0, 12, "input")

    taken = measured(main, worker)

    assert exposed(main, worker) == {"compute": 8, "input": 4}
    assert hidden(main, worker) == {"input": 8}
    assert taken.services_unknown == {}


def test_the_service_of_input_is_not_known_where_nobody_is_seen_to_load() -> None:
    script = SpanScript()
    script.unit("step 0", 0, 12)
    script.span("train", 0, 8, "compute")
    script.span("wait for batch", 8, 12, "input", waits=True)

    unknown = measured(script).services_unknown["input"]

    assert isinstance(unknown, Unknown)
    assert "nobody is seen to prepare them" in unknown.unknown


def test_a_blocking_collective_is_communication_on_whatever_thread_it_runs_while_nothing_computes() -> None:
    """On the main thread 2–6; on another one 8–12, of which compute covers 8–10."""
    script = SpanScript()
    script.unit("step 0", 0, 14)
    script.collective(2, 6, seq=0, members=[0, 1])
    script.collective(8, 12, seq=1, thread=WRITER)
    script.span("train", 7, 10, "compute")

    ledger = unit_of(script).ledger

    assert exposed(script) == {"compute": 3, "collective": 6, "host": 5}
    assert ledger.device.collective_ns == 8 * MS
    assert ledger.objects["collective"].service_ns == 8 * MS


def test_a_collective_in_flight_shows_only_where_it_is_waited_for() -> None:
    """In flight 0–10, computing 1–7, waiting 8–10."""
    script = SpanScript()
    script.unit("step 0", 0, 12)
    script.collective(0, 10, seq=0, blocking=False, members=[0, 1])
    script.span("train", 1, 7, "compute")
    script.span("wait for gradients", 8, 10, "collective", waits=True)

    taken = measured(script)

    assert exposed(script) == {"compute": 6, "collective": 2, "host": 4}
    assert hidden(script) == {"collective": 6}
    assert taken.instances.column("exposed_ns").tolist() == [2 * MS]


def test_collectives_say_group_members_sequence_and_bytes() -> None:
    script = SpanScript(rank=1, world_size=4)
    script.unit("step 0", 0, 14)
    script.collective(2, 6, seq=7, members=[1, 3])
    script.collective(8, 9, seq=8)

    own = measured(script).instances

    assert [group.members for group in own.groups] == [[1, 3]]
    assert own.column("sequence").tolist() == [7, 8]
    assert own.column("bytes").tolist() == [4096, 4096]
    assert own.column("group").tolist() == [0, 0]


def test_an_all_gather_moves_its_input_times_the_group() -> None:
    script = SpanScript(world_size=2)
    script.unit("step 0", 0, 14)
    script.collective(2, 6, seq=0, members=[0, 1], kind="all_gather_into_tensor")

    assert measured(script).instances.column("bytes").tolist() == [8192]


def test_device_spans_follow_the_rules_of_devices() -> None:
    """The device copies 1–3, computes 3–9, reduces 8–12; the host's input 12–14 explains the gap up to 15."""
    script = SpanScript()
    script.unit("step 0", 0, 16)
    script.on_device("batch", 1, 3, "input")
    script.on_device("forward", 3, 9, "compute")
    script.on_device("reduce", 8, 12, "collective")
    script.on_device("forward", 15, 16, "compute")
    script.span("forward", 0, 1, "", stage="forward")
    script.span("next batch", 12, 14, "input")

    ledger = unit_of(script).ledger

    assert exposed(script) == {"compute": 7, "collective": 3, "input": 4, "host": 2}
    assert ledger.device.copy_ns == 2 * MS
    assert ledger.idle_ns["unlinked"] == 0
    assert unit_of(script).stages["forward"].busy_ns == 7 * MS


@pytest.mark.parametrize("name", ["NCCL-like all_reduce kernel", "Memcpy HtoD (Pinned -> Device)"])
def test_a_device_span_is_what_the_program_says_whatever_it_is_called(name: str) -> None:
    script = SpanScript()
    script.unit("step 0", 0, 10)
    script.on_device(name, 0, 10, "compute")

    assert exposed(script) == {"compute": 10}


def test_units_of_other_threads_are_left_out_and_said_so() -> None:
    script = SpanScript()
    script.unit("step 0", 0, 10)
    script.unit("step 1", 10, 20)
    script.unit("request 7", 3, 15, thread=WRITER)

    taken = measured(script)

    assert [unit.name for unit in taken.rows[0].units] == ["step 0", "step 1"]
    assert ("spans.units_elsewhere", 1) in [(found.code, found.count) for found in taken.findings]


def test_a_record_that_names_hardly_any_object_is_said_to_be_one() -> None:
    script = SpanScript()
    script.unit("step 0", 0, 10)
    script.span("train_step", 0, 8)

    found = next(found for found in measured(script).findings if found.code == "spans.without_object")

    assert found.message.startswith("100% of the units")


def test_the_unit_of_a_request_is_called_request() -> None:
    script = SpanScript()
    script.unit("request 17", 0, 10)
    script.unit("request 18", 10, 20)

    assert [(u.kind, u.ordinal) for u in measured(script).rows[0].units] == [("request", 17), ("request", 18)]


def test_without_units_the_record_is_one() -> None:
    script = SpanScript()
    script.span("batch", 0, 5, "input")
    script.span("train", 5, 10, "compute")

    assert exposed_of_whole(script) == {"input": 5, "compute": 5}


def exposed_of_whole(script: SpanScript) -> dict[str, float]:
    objects = unit_of(script, name="trace").ledger.objects
    return {name: time.exposed_ns / MS for name, time in objects.items() if time.exposed_ns}
