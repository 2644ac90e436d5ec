"""Why the device ran nothing: one small record per reason (DESIGN 3.4). Times are µs; a picture's scale is its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from longpole.settings import Settings
from tests.build import GC, LOADER, MAIN, OPTIMIZER, Script, cut, exposed_us, idle_us


def _after_a_busy_start(script: Script) -> Script:
    """Let the device run until 100, from a launch long before."""
    script.step(0, 0, 200)
    script.kernel(20, 100, script.launch(5, 8))
    return script


def _gap(script: Script, settings: Settings | None = None) -> list[tuple[float, float, str]]:
    """Return the idle pieces behind the device's busy start."""
    return [line for line in cut(script, settings).idle_lines() if line[0] >= 100]


# --- the host part: one reason each -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason", "charged"),
    [
        (LOADER, "input", "input"),
        ("load_weights", "artifact", "artifact"),
        ("cpu_offload", "state", "state"),
        ("save_checkpoint", "output", "output"),
        ("init_process_group", "collective", "collective"),
        ("compile_fx_inner (dynamo_timed)", "host.compile", "host"),
        ("my_own_range", "host.python", "host"),
    ],
)
def test_an_annotation_is_the_reason_of_the_gap_under_it(name: str, reason: str, charged: str) -> None:
    """Device  ── k ──┤                    ├─ k ─

    host           ├────── name ──────┤
                                   ├ launch ┤
    """
    script = _after_a_busy_start(Script())
    script.span(name, 90, 150)
    script.kernel(150, 200, script.launch(140, 150))

    assert _gap(script)[0] == (100, 140, reason)
    assert exposed_us(script)[charged] >= 40


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cudaMalloc", "host.alloc"),
        ("cudaFree", "host.alloc"),
        ("cudaGraphInstantiateWithFlags", "host.compile"),
        ("cuModuleLoadData", "host.compile"),
        ("cudaEventRecord", "host.dispatch"),
        ("cudaStreamSynchronize", "host.sync"),
    ],
)
def test_a_runtime_call_is_the_reason_of_the_gap_under_it(name: str, reason: str) -> None:
    script = _after_a_busy_start(Script())
    script.call(name, 90, 130)
    script.kernel(140, 200, script.launch(130, 140))

    assert _gap(script)[0] == (100, 130, reason)


def test_an_operator_that_has_not_launched_yet_dispatches() -> None:
    script = _after_a_busy_start(Script())
    script.op("aten::linear", 90, 150)
    script.kernel(150, 200, script.launch(140, 145))

    assert _gap(script)[0] == (100, 140, "host.dispatch")


def test_garbage_collection_is_seen_through_its_python_frame() -> None:
    script = _after_a_busy_start(Script())
    script.frame("train.py(7): train", 80, 160)
    script.frame(GC, 90, 130)
    script.kernel(150, 200, script.launch(140, 145))

    assert _gap(script)[:2] == [(100, 130, "host.gc"), (130, 140, "host.python")]


def test_python_code_without_a_name_is_python() -> None:
    script = _after_a_busy_start(Script())
    script.frame("train.py(7): train", 80, 160)
    script.kernel(150, 200, script.launch(140, 145))

    assert _gap(script)[0] == (100, 140, "host.python")


def test_a_thread_without_any_span_is_in_python() -> None:
    script = Script()
    script.kernel(20, 100, script.launch(5, 8))
    script.kernel(150, 200, script.launch(140, 145))

    assert _gap(script)[0] == (100, 140, "host.python")


# --- which of several ---------------------------------------------------------------------------------------------


def test_an_activity_wins_over_any_call_inside_it() -> None:
    """Loader   ├───────────────────────────────┤

    python    ├──────── collect ─┤
    runtime          ├ cudaMalloc ┤
    """
    script = _after_a_busy_start(Script())
    script.span(LOADER, 90, 150)
    script.frame(GC, 95, 130)
    script.call("cudaMalloc", 110, 120)
    script.op("aten::stack", 131, 140)
    script.kernel(160, 200, script.launch(150, 155))

    assert sum(end - start for start, end, reason in _gap(script) if reason == "input") == 50
    assert not {"host.gc", "host.alloc", "host.dispatch"} & set(idle_us(script))


def test_the_innermost_of_two_activities_wins() -> None:
    """save_checkpoint   ├───────────────────┤

    cpu_offload              ├─────┤             copies of the state, on behalf of the save: the first one met outwards
    """
    script = _after_a_busy_start(Script())
    script.span("save_checkpoint", 90, 150)
    script.span("cpu_offload", 110, 130)
    script.kernel(160, 200, script.launch(150, 155))

    assert _gap(script)[:3] == [(100, 110, "output"), (110, 130, "state"), (130, 150, "output")]


def test_the_innermost_of_two_calls_wins() -> None:
    """An allocation inside an operator is an allocation, an operator inside a collection is none."""
    script = _after_a_busy_start(Script())
    script.op("aten::empty", 90, 150)
    script.call("cudaMalloc", 110, 130)
    script.kernel(160, 200, script.launch(152, 155))

    assert _gap(script)[:3] == [(100, 110, "host.dispatch"), (110, 130, "host.alloc"), (130, 150, "host.dispatch")]


def test_a_python_frame_inside_an_operator_is_still_the_operators() -> None:
    """The walk outwards passes over what is neither activity nor call."""
    script = _after_a_busy_start(Script())
    script.op("aten::linear", 90, 150)
    script.frame("model.py(3): forward", 100, 150)
    script.kernel(160, 200, script.launch(150, 155))

    assert _gap(script)[0] == (100, 150, "host.dispatch")


def test_what_another_thread_does_is_no_reason() -> None:
    """The launching thread is asked, and nobody else."""
    script = _after_a_busy_start(Script())
    script.span("save_checkpoint", 90, 150, thread="saver")
    script.kernel(160, 200, script.launch(150, 155))

    assert _gap(script)[0] == (100, 150, "host.python")


# --- the device part ----------------------------------------------------------------------------------------------


def test_from_the_start_of_the_launch_the_call_then_its_latency() -> None:
    """Device  ── k ──┤              ├─ k ─

    launch            ├ L ──┤
    """
    script = _after_a_busy_start(Script())
    script.kernel(150, 200, script.launch(120, 135))

    assert _gap(script) == [(100, 120, "host.python"), (120, 135, "launch_call"), (135, 150, "launch_latency")]


def test_a_call_that_began_before_the_gap_has_no_host_part() -> None:
    script = _after_a_busy_start(Script())
    script.kernel(150, 200, script.launch(90, 135))

    assert _gap(script) == [(100, 135, "launch_call"), (135, 150, "launch_latency")]


def test_a_kernel_that_starts_before_its_call_returns_has_no_latency() -> None:
    script = _after_a_busy_start(Script())
    script.kernel(130, 200, script.launch(120, 150))

    assert _gap(script)[:2] == [(100, 120, "host.python"), (120, 130, "launch_call")]


def test_a_kernel_that_starts_before_its_call_starts_is_the_hosts_alone() -> None:
    """Clocks of host and device that differ."""
    script = _after_a_busy_start(Script())
    script.kernel(130, 200, script.launch(140, 150))

    assert _gap(script)[0] == (100, 130, "host.python")


def test_work_that_was_queued_before_the_gap_leaves_a_kernel_gap() -> None:
    """Device  ── k ──┤   ├─ k ─

    launch   ├ L ┤
    """
    script = _after_a_busy_start(Script())
    script.kernel(110, 200, script.launch(50, 55))

    assert _gap(script) == [(100, 110, "kernel_gap")]


def test_a_launch_that_returns_just_when_the_gap_begins_was_queued() -> None:
    script = _after_a_busy_start(Script())
    script.kernel(110, 200, script.launch(95, 100))

    assert _gap(script) == [(100, 110, "kernel_gap")]


def test_a_gap_before_queued_work_that_is_longer_than_usual_is_unexplained() -> None:
    """Nothing of the record says what the device waited for: never another stream, for none ran."""
    script = _after_a_busy_start(Script())
    script.kernel(160, 200, script.launch(50, 55))

    assert _gap(script, Settings(kernel_gap_default_ns=20_000)) == [
        (100, 120, "kernel_gap"),
        (120, 160, "device.unexplained"),
    ]
    assert exposed_us(script)["unknown"] == 40


def _train_of_kernels(gaps: list[float]) -> Script:
    """All launched before the first one starts."""
    script = Script()
    calls = [script.launch(place / 10, place / 10 + 0.05) for place in range(len(gaps) + 1)]
    start = 100.0
    for call, gap in zip(calls, [*gaps, 0], strict=True):
        script.kernel(start, start + 10, call)
        start += 10 + gap
    return script


def test_the_usual_gap_is_the_devices_own_99th_percentile() -> None:
    """Of 100 gaps the 99th shortest, so only the longest of them holds something unexplained."""
    script = _train_of_kernels([2.0] * 98 + [5.0, 30.0])

    assert idle_us(script)["kernel_gap"] == 98 * 2 + 5 + 5
    assert idle_us(script)["device.unexplained"] == 25


def test_of_fifty_gaps_the_longest_is_the_99th_percentile() -> None:
    """By nearest rank: 99 % of 50 is 49.5, so the 50th."""
    script = _train_of_kernels([2.0] * 49 + [30.0])

    assert idle_us(script)["kernel_gap"] == 49 * 2 + 30


def test_the_usual_gap_has_an_upper_bound() -> None:
    """A device that mostly waits does not make its waits usual."""
    script = _train_of_kernels([500.0] * 30)

    assert idle_us(script)["kernel_gap"] == 30 * 100
    assert idle_us(script)["device.unexplained"] == 30 * 400


def test_a_handful_of_gaps_are_not_enough_to_say_what_is_usual() -> None:
    script = _train_of_kernels([30.0] * 19)

    assert idle_us(script)["kernel_gap"] == 19 * 20
    assert idle_us(script)["device.unexplained"] == 19 * 10


def test_a_latency_beyond_all_experience_is_unexplained() -> None:
    script = _after_a_busy_start(Script())
    script.kernel(1500, 1600, script.launch(120, 130))

    assert _gap(script)[2:] == [(130, 1130, "launch_latency"), (1130, 1500, "device.unexplained")]


def test_a_span_whose_launch_is_not_known_leaves_its_gap_unlinked() -> None:
    script = _after_a_busy_start(Script())
    script.span(LOADER, 90, 140)
    script.kernel(150, 200)

    assert _gap(script)[0] == (100, 150, "unlinked")
    assert exposed_us(script)["unknown"] == 50


def test_a_gap_that_nothing_ends_is_the_main_threads() -> None:
    """Behind the last span of a record there is no K: the host rules, on the main thread."""
    script = _after_a_busy_start(Script())
    script.span("save_checkpoint", 120, 190)
    script.op("aten::mul", 90, 200, thread="other")

    assert _gap(script) == [(100, 120, "host.python"), (120, 190, "output"), (190, 200, "host.python")]


def test_of_two_spans_that_end_a_gap_together_the_first_launched_one_counts() -> None:
    """Stream 7  ── k ──┤          ├─ k ─    launched at 140

    stream 8                       ├─ k ─    launched at 110
    """
    script = _after_a_busy_start(Script())
    script.kernel(150, 200, script.launch(140, 145))
    script.kernel(150, 200, script.launch(110, 115), stream=8)

    assert _gap(script) == [(100, 110, "host.python"), (110, 115, "launch_call"), (115, 150, "launch_latency")]


def test_an_empty_span_ends_no_gap() -> None:
    script = _after_a_busy_start(Script())
    script.kernel(130, 130, script.launch(120, 125))
    script.kernel(150, 200, script.launch(140, 145))

    found = cut(script)

    assert found.gaps.end_ns.tolist() == [20_000, 150_000]


def test_an_empty_span_that_starts_with_the_next_one_is_not_what_ends_the_gap() -> None:
    """Nothing of it runs, so it is the other one's launch that counts."""
    script = _after_a_busy_start(Script())
    script.kernel(150, 150, script.launch(110, 115), stream=8)
    script.kernel(150, 200, script.launch(140, 145))

    assert _gap(script)[:2] == [(100, 110, "host.python"), (110, 115, "host.dispatch")]


# --- launches by order --------------------------------------------------------------------------------------------


def test_an_unlinked_span_between_linked_ones_belongs_to_the_launch_between_theirs() -> None:
    """Stream   ├ a ┤      ├ b ┤        ├ c ┤     b has no correlation

    host     La ┘  event  Lb ┘   sync      Lc ┘      but one launch stands between those of a and c
    """
    script = Script()
    script.step(0, 0, 300)
    script.kernel(20, 100, script.launch(5, 8))
    script.call("cudaEventRecord", 101, 102)
    lost = script.launch(120, 130)
    script.sync(160, 181)
    script.kernel(200, 240, script.launch(190, 195))
    script.kernel(140, 180, lost).linked = False

    assert _gap(script)[:3] == [(100, 101, "host.python"), (101, 102, "host.dispatch"), (102, 120, "host.python")]
    assert _gap(script)[3:5] == [(120, 130, "launch_call"), (130, 140, "launch_latency")]


def test_an_unlinked_span_between_nodes_of_one_graph_belongs_to_the_graph() -> None:
    script = _after_a_busy_start(Script())
    graph = script.launch(110, 120, name="cudaGraphLaunch")
    script.kernel(130, 140, graph)
    script.kernel(150, 160, graph).linked = False
    script.kernel(170, 180, graph)

    assert "unlinked" not in idle_us(script)


def test_an_unlinked_span_is_not_guessed_where_the_numbers_differ() -> None:
    """Two launches and one span: which of them it was, nobody can say."""
    script = _after_a_busy_start(Script())
    script.launch(110, 112)
    script.launch(114, 116)
    script.kernel(140, 160)
    script.kernel(180, 190, script.launch(170, 172))

    assert _gap(script)[0] == (100, 140, "unlinked")


def test_an_unlinked_span_at_the_end_of_a_stream_is_not_guessed() -> None:
    script = _after_a_busy_start(Script())
    script.kernel(140, 160, script.launch(120, 122)).linked = False

    assert _gap(script)[0] == (100, 140, "unlinked")


def test_an_unlinked_span_takes_no_launch_of_another_device() -> None:
    """The launch in between is linked, to a span of device 1."""
    script = _after_a_busy_start(Script())
    script.kernel(125, 130, script.launch(110, 112), device=1)
    script.kernel(140, 160)
    script.kernel(180, 190, script.launch(170, 172))

    assert _gap(script)[0] == (100, 140, "unlinked")


def test_neighbours_on_another_stream_say_nothing() -> None:
    script = _after_a_busy_start(Script())
    lost = script.launch(120, 122)
    script.kernel(140, 160, lost, stream=9).linked = False
    script.kernel(180, 190, script.launch(170, 172))

    assert _gap(script)[0] == (100, 140, "unlinked")


# --- the lost lead ------------------------------------------------------------------------------------------------


def _after_a_wait(script: Script, *, returns: float) -> Script:
    """Let the device run dry at 100 while the host waits for it until `returns`, then do Python and an operator."""
    script.step(0, 0, 300)
    script.kernel(20, 100, script.launch(5, 8))
    script.sync(50, returns)
    script.op("aten::add", returns + 30, returns + 60)
    script.kernel(returns + 80, returns + 100, script.launch(returns + 50, returns + 60))
    return script


def test_the_lead_lost_inside_a_blocking_call_is_charged_to_it() -> None:
    """Device  ─── k ───┤                                    ├─ k ─

    host         ├─ sync ─┤┌ python ┐├─ aten::add ─┤
                                              ├ launch ┤
    reasons             │sync│ sync  │ sync   │ call     │ latency
    """
    script = _after_a_wait(Script(), returns=110)

    assert _gap(script)[:3] == [(100, 110, "host.sync"), (110, 140, "host.sync"), (140, 160, "host.sync")]
    assert idle_us(script)["launch_call"] == 3 + 10


def test_the_lead_is_lost_too_if_the_device_ran_dry_within_20_us_after_the_return() -> None:
    """An event's wait returns when the event is done; a short span may follow it."""
    script = _after_a_wait(Script(), returns=80)

    assert idle_us(script)["host.sync"] == 30
    assert _gap(script)[0] == (100, 110, "host.sync")


def test_the_lead_is_not_lost_to_a_call_that_returned_earlier() -> None:
    script = _after_a_wait(Script(), returns=79)

    assert "host.sync" not in idle_us(script)


def test_the_lead_is_not_lost_to_a_call_that_found_the_device_idle() -> None:
    """It began when the device had run dry already, so it did not wait."""
    script = _after_a_busy_start(Script())
    script.sync(120, 121)
    script.kernel(180, 200, script.launch(160, 165))

    assert _gap(script)[:3] == [(100, 120, "host.python"), (120, 121, "host.sync"), (121, 160, "host.python")]


def test_named_activities_after_the_return_keep_what_is_theirs() -> None:
    script = _after_a_busy_start(Script())
    script.sync(50, 105)
    script.span(LOADER, 110, 130)
    script.frame(GC, 135, 140)
    script.call("cudaMalloc", 145, 150)
    script.kernel(180, 200, script.launch(160, 165))

    assert idle_us(script)["input"] == 20
    assert idle_us(script)["host.gc"] == 5
    assert idle_us(script)["host.alloc"] == 5
    assert idle_us(script)["host.sync"] == 5 + 5 + 5 + 5 + 10


def test_a_wait_of_another_thread_costs_the_launching_thread_nothing() -> None:
    """The launching thread never waited; it is in code of its own."""
    script = _after_a_busy_start(Script())
    script.sync(50, 105)
    script.frame("train.py(7): train", 10, 190, thread="launcher")
    script.kernel(180, 200, script.launch(160, 165, thread="launcher"))

    assert "host.sync" not in idle_us(script)


def test_a_call_inside_a_blocking_call_does_not_hide_it() -> None:
    """Runtime   ├────────── cudaDeviceSynchronize ─────────┤

    driver        ├ cuStreamSynchronize ┤                     the device runs dry only later
    """
    script = _after_a_busy_start(Script())
    script.sync(40, 110, name="cudaDeviceSynchronize")
    script.sync(45, 60, name="cuStreamSynchronize")
    script.kernel(180, 200, script.launch(160, 165))

    assert _gap(script)[:2] == [(100, 110, "host.sync"), (110, 160, "host.sync")]


def test_a_copy_whose_call_returns_after_the_copy_blocks_too() -> None:
    """`loss.item()`: the call lasts as long as all that was launched before it."""
    script = _after_a_busy_start(Script())
    script.copy("dtoh", 100, 102, script.call("cudaMemcpyAsync", 60, 104), size_bytes=4)
    script.kernel(180, 200, script.launch(160, 165))

    assert [line for line in cut(script).lines() if line[0] >= 102][:2] == [
        (102, 104, "host.dispatch"),
        (104, 160, "host.sync"),
    ]


def test_a_short_copy_call_does_not_block() -> None:
    script = _after_a_busy_start(Script())
    script.copy("dtoh", 100, 102, script.call("cudaMemcpyAsync", 85, 104), size_bytes=4)
    script.kernel(180, 200, script.launch(160, 165))

    assert "host.sync" not in idle_us(script)


# --- threads that show nothing ------------------------------------------------------------------------------------


def test_where_the_launching_thread_shows_nothing_the_main_thread_is_asked() -> None:
    """Main      ├────── loader ──────┤

    autograd                             ├ MulBackward0 ┤
    device   ─┤                               ├─ k ─
    """
    script = _after_a_busy_start(Script())
    script.span(LOADER, 90, 140)
    script.backward("MulBackward0", 150, 190, thread="autograd")
    script.kernel(180, 200, script.launch(160, 165, thread="autograd"))

    assert _gap(script)[:3] == [(100, 140, "input"), (140, 150, "host.python"), (150, 160, "host.dispatch")]


def test_where_the_launching_thread_shows_something_the_main_thread_is_not_asked() -> None:
    script = _after_a_busy_start(Script())
    script.span(LOADER, 90, 170)
    script.backward("MulBackward0", 90, 190, thread="autograd")
    script.kernel(180, 200, script.launch(160, 165, thread="autograd"))

    assert "input" not in idle_us(script)


def test_the_main_threads_wait_costs_the_lead_of_the_backward_pass() -> None:
    """`print(loss.item())` before `loss.backward()`.

    main      ├─ sync ─┤┌ python ┐
    autograd                       ├ MulBackward0 ─┤
    device    ─── k ──┤                        ├─ k ─
    """
    script = _after_a_busy_start(Script())
    script.sync(50, 105)
    script.backward("MulBackward0", 150, 190, thread="autograd")
    script.kernel(180, 200, script.launch(160, 165, thread="autograd"))

    # From 150 on the launching thread speaks for itself, and it waited for nothing.
    assert _gap(script)[:3] == [(100, 105, "host.sync"), (105, 150, "host.sync"), (150, 160, "host.dispatch")]


# --- stages of idle time ------------------------------------------------------------------------------------------


def test_idle_time_has_the_stage_of_the_launching_thread_then() -> None:
    script = Script()
    script.step(0, 0, 200)
    script.kernel(20, 100, script.launch(5, 8))
    script.span(LOADER, 90, 120)
    script.op("aten::linear", 120, 140)
    script.span(OPTIMIZER, 150, 190)
    script.kernel(180, 200, script.launch(160, 165))

    assert cut(script).stages()[-4:] == [
        (100, 120, "input"),
        (120, 140, "forward"),
        (140, 150, "other"),
        (150, 200, "optimizer"),
    ]


def test_every_thread_may_launch() -> None:
    """Gaps of several launching threads in one record are explained by the thread that ends each."""
    script = _after_a_busy_start(Script())
    script.span("save_checkpoint", 100, 130)
    script.kernel(140, 150, script.launch(131, 135))
    script.span(LOADER, 150, 170, thread="other")
    script.kernel(180, 200, script.launch(171, 175, thread="other"))

    assert idle_us(script)["output"] == 30
    assert idle_us(script)["input"] == 20


def test_the_same_gap_is_explained_on_any_clock() -> None:
    """Absolute times are epoch times in most records."""
    script = _after_a_wait(Script(), returns=110)

    assert idle_us(script.shifted(1_700_000_000_000_000_123)) == idle_us(script)


def test_a_renamed_thread_is_the_same_thread() -> None:
    """Names of threads mean nothing."""
    script = _after_a_wait(Script(), returns=110)
    renamed = script.changed(lambda row: replace(row, thread="x" if row.thread == MAIN else row.thread), replace)

    assert idle_us(renamed) == idle_us(script)
