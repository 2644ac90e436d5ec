"""Every threshold by name, with where it comes from; a user's TOML file may override any of them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from longpole.errors import UsageError
from longpole.units import NS_PER_S, NS_PER_US

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Thresholds of the analyses.

    Attributes:
        readout_max_bytes: A device-to-host copy of at most this size that a blocking call follows is a
            read-out, charged to the host (DESIGN 3.3).
        blocking_copy_min_ns: A copy call longer than this that returns after its copy has ended blocks on it
            (DESIGN 3.6).
        lost_lead_after_ns: The device ran dry "within" a blocking call if it did so at most this long after the
            call's return (DESIGN 3.4).
        kernel_gap_max_ns: Upper bound of the back-to-back gap that the device's own 99th percentile sets; a
            constant above it is not a constant (DESIGN 3.7 refuses above 100 µs).
        kernel_gap_default_ns: The back-to-back gap where the record holds too few of them.
        launch_latency_max_ns: A device that starts this long after the launching call has waited for something
            that the record does not show (the longest clean launch latency of the corpus, on Ascend, is 0.87 ms).
        one_off_min_share: A one-off takes at least this share of its unit to mark it (DESIGN 3.2).
        one_off_factor: A first call this many times longer than the later ones' median is a one-off (our choice:
            warm calls vary by less than three on the corpus).
        one_off_min_ns: A shorter first call is never looked at (our choice: what matters is a share of a unit).
        start_spread_max_share: Leading units that overlap the spread of the ranks' recording starts by more than
            this share of the median unit move into the head (DESIGN 3.2).
        clock_scatter_max_ns: Ends of matched collectives that scatter by more than this say nothing of clocks (our
            choice: on the corpus they scatter by 26 µs at most on GPUs).
        clock_scatter_factor: A clock measured by matched ends is uncertain by this many times their scatter (known
            offsets and drifts put into the corpus: the truth lies within it in 9 of 10 draws).
        clock_exchange_ns: What the ends of exchanges (all-to-all) add to a clock's uncertainty where nothing else was
            matched: each member ends when its own bytes are there (31 µs apart, always alike, on a real trace).
        end_skew_max_share: Without aligned clocks, the shortest member is the transfer where ends differ by at most
            this share of it (DESIGN 3.8).
        unsplit_max_share: The waiting part of a row's collectives is known where those that cannot be split take at
            most this share of them (our choice).
        culprit_min_share: One rank is named for a kind of collectives where it caused at least this share of the
            waiting (our choice: less than half is not one rank's doing).
        waiting_min_share: Waiting is worth a sentence from this share of the unit on (DESIGN 3.8: worth acting on
            from 20 %; we show smaller ones, and say less about them).
        cost_min_sizes: A cost model is fitted from this many sizes on (DESIGN 3.8).
        cost_min_decades: The sizes lie at least this many powers of ten apart (DESIGN 3.8).
        slow_link_factor: A pair of ranks moves bytes slowly where its rate is this many times below the median
            pair's of the same size (our choice: rings differ by less than that between links of one kind).
        more_work_min_share: A late rank has more work where its number or size of operations exceeds the others'
            by this share, and slower work where the same operations take longer by it (our choice: kernels of
            equal shapes vary by less on the corpus).
        p95_min_count: A 95th percentile is given from this many samples on (DESIGN 3.12).
        overlong_factor: A span in whose time its stream went on is impossible from this many times the stream's
            longest other span on (case B020; the corpus has overlapping graph nodes, none of them so long).
        overrun_min_ns: A span may end this long after everything else ended.
        host_overrun_min_ns: The same for spans of the host: a step annotation may rightly stay open for long.
        overrun_factor: Beyond that, a span that ends this many record lengths after everything else is impossible
            (a fixed limit lets a wrong hour pass, case B019).
        span_max_ns: No span is longer (our choice: 30 days; sums of longer ones would leave 64 bits).
        stray_max_share: Rows that lie as far away from the record as an overrun, in time, are strays where they are
            no more than this share of all rows (our choice: more of them are a second recording).
        job_gap_min_ns: Files whose recordings lie further apart than this are distinct jobs.
        parallel_min_bytes: From this much text on, other processes are started to read it (starting them costs about
            as long as reading 20 MB).
        silence_min_ns: A thread without record for this long may have waited for another one (DESIGN 3.6, hand-over).
        silence_covered_share: It waited for a thread whose records cover at least this share of the silence
            (DESIGN 3.6).
        implied_wait_min_ns: A silence of the main thread from this length on may be a wait for the device (DESIGN 3.6).
        resumes_within_ns: A wait ends at most this long after what was waited for (DESIGN 3.6: 20 µs).
        clock_tolerance_ns: An edge that clocks contradict by no more than this is kept (DESIGN 3.2: at least 10 µs).
        allocation_min_ns: An allocation or release longer than this waits for the device (DESIGN 3.6: 100 µs).
        queue_min_ns: A launch longer than this may wait for room in the queue (DESIGN 3.6: 50 µs).
        queue_factor: … and than this many median launches (DESIGN 3.6).
        queue_min_depth: … where the median number outstanding exceeds this (DESIGN 3.6).
        queue_depth_share: … and the number outstanding lies within this share of the median (DESIGN 3.6).
        stream_overlap_max_ns: A span still follows the one before it on its stream where it starts this long before
            that one's end (our choice: clocks of a stream's spans agree within this on the corpus).
        late_start_ns: A span is late where it starts this long after its launch and its stream's last end (DESIGN 3.6).
        event_candidates: How many of the last spans of another stream an inferred event wait looks at (DESIGN 3.6).
        event_confirmed_share: A group of waits is confirmed where this share of the late ones fits (DESIGN 3.6).
        event_lag_max_share: … or comes within this share of what it is late by (docs/decisions/0014).
        coincident_before_ns: A guessed wait: the span starts at most this long before another one's end (DESIGN 3.6).
        coincident_after_ns: … or at most this long after it (DESIGN 3.6).
        clean_margin_ns: A sample of a constant is clean where no other edge comes within this (DESIGN 3.7).
        clean_min_count: A constant is fitted from this many clean samples on (DESIGN 3.7).
        constant_max_ns: A fitted constant above this is refused (DESIGN 3.7).
        unexplained_max_share: A replay with more of the path unexplained is refused (DESIGN 3.7).
        replay_error_max_share: A replay whose median is further off is refused (DESIGN 3.7).
        untested_error_share: A replay that is closer than this is not tested where most is kept (DESIGN 3.7).
        untested_kept_share: … namely where this share of its path is host time kept as recorded (DESIGN 3.7).
        run_spread_share: How much one run of a job differs from the next where nothing better is known (DESIGN 3.12).
        scaling_same_job_min_share: Runs are of one job where kernels or operators of common names make up at least
            this share of the work of each (our choice: another size picks other kernels for some operators).
        scaling_same_work_min_share: The same share from which on nothing is said of it (our choice: variants of one
            job in the corpus share 84 to 99 %).
        scaling_compute_factor: A run whose compute for each item differs from the smallest run's by at least this
            factor probably processes other numbers of items (our choice: half the batch is a factor of two).
        scaling_other_job_factor: From this factor on, beyond what the number of ranks explains, it is another job (our
            choice).
        scaling_range_max_share: Exposed communication is split into moving and waiting where that is certain to this
            share of the period (our choice: what hides under compute may be either).
        join_max_bytes: The graphs of several ranks are joined while they take no more than this on disk; beyond, every
            change is made to one rank's graph at a time (measured: joined and replayed they take 2.7 times as much
            memory, so up to 6 GB; the answers are the same, candidates and causes need the joined graph).
        slack_max_edges: The slack of objects is sought by bisection on graphs of up to this many edges (our choice:
            some 40 sweeps of 0.15 µs an edge).
        prefetch_workers: How many workers a what-if gives a loader (our choice: the fewest that work side by side).
        prefetch_depth: How many batches each of them prepares ahead (PyTorch's default).
        prefetch_handover_ns: What taking a ready batch over from a worker process costs (trial recordings of PyTorch's
            loader with two workers, CPU: median 2.7 ms; the corpus's: 3.2 and 5.4 ms).
        equalise_min_ratio: Ranks are made equal in speed where one takes this many times as long as the others' median
            (our choice: operators of equal ranks differ by less in the recordings).
        graph_gap_ns: Between the spans of a newly captured graph (case B082: back to back).
        finding_min_share: A cause is a finding where it costs at least this share of the period (our choice: what one
            run differs from the next by, `run_spread_share`).
        long_pole_min_share: Findings that together cost less than this share of the period are no long pole
            (REPORT-JSON: 5 %).
        gpu_work_min_share: Where nothing is found, the device is the long pole if it computes for at least this share
            of the unit or of the path (our choice); below it no verdict is given.
        candidates_max_edges: A report replays every change worth trying on graphs of up to this many edges (our choice:
            some twenty sweeps of 0.15 µs an edge).
        incomplete_max_share: No verdict is given where device spans are missing from more than this share of a rank's
            units (our choice: the others may lack some too).
        acting_min_share: Collectives are worth acting on from this share of the unit in service (DESIGN 3.8); it never
            hides a finding.
        fragmentation_min_share: Memory is fragmented where this share of what is reserved is free and in pieces (our
            choice: less is what caching costs).
        memory_full_share: Memory is all but full where this share of it is reserved (our choice: libraries hold the
            rest).
        leak_min_units: Memory grows where it rises from the end of one unit to the next at least so many ends long
            (our choice: noise seldom rises three times in a row).
        leak_min_bytes: … by more than this per unit (our choice: a device lasts 80,000 units of it).
        leak_min_share: … and by more than this share of what is allocated (our choice).
        leak_host_min_bytes: The host's memory grows where every unit adds the same, from this much on (corpus: a kept
            list of 128 kB a step; the host's totals count from the start of the record, so a share says nothing).
        regression_min_share: A change counts from this share of the time per item on (DESIGN 3.12).
        sync_many_per_unit: From so many blocking calls of one kind in a unit on they are many (our choice: a step reads
            its loss, its gradient norm and little else).
        sporadic_max_share: What happens in at most this share of the units is sporadic or periodic (our choice).
        stall_factor: A stall is this many times what the usual unit takes for the same thing (our choice: input, saving
            and pauses of equal units differ by less on the corpus).
        pause_min_ns: A thread without any record is paused from this long on (our choice: interpreted code between two
            operators takes less than that on the corpus).
        uneven_factor: Some ranks are slow at something where it takes them this many times what the others' median is
            (our choice).
        small_kernel_max_ns: Launches can only bind a job whose mean device span is shorter than this (our choice: ten
            times what a launch takes).
        many_collectives_per_unit: From so many small operations of one kind and group in a unit on they are many (our
            choice: what they cost decides; fewer are not worth joining).
        small_collective_max_bytes: A collective up to this size is small (latency rules below about 1 MiB on every
            fabric that system-model.md has fits for).
        low_latency_max_bytes: A low-latency protocol above this size wastes the link (case B080: 1 MiB).
        low_latency_loss: What a low-latency protocol takes times what the full rate would (LL sends as many flags as
            data).
        beside_factor: Overlap slows work where it takes this many times what it takes alone (our choice).
        last_bucket_share: The last operation is the exposed one where this share of the exposed time is its own (our
            choice).
        expansion_max_ratio: An archive may not grow by more than this, beyond `expansion_free_bytes`
            (the largest ratio of a real trace in the corpus is 28; deflate's limit is 1032).
        expansion_free_bytes: An archive may always grow to this size.
        operation_overlap_max_ns: Two timed operations that overlap by no more than this, and by no more than half of
            the shorter one, came one after the other (half a millisecond is what the three production jobs of the
            corpus were recorded within; on one worker they overlap by 0.05 ms at most).
        operation_async_min_share: A type of communication has a stream of its own if more than this share of its
            instances run beside computation of their worker (our choice: in the corpus none does).
        operation_resolution_max_ns: Times written more coarsely than this do not order operations (our choice: twice
            the overlap that is taken for rounding).
        operation_error_max: A replay of operations whose mean step is off by more than this predicts nothing
            (DESIGN 3.7: the same for the replay of traces).
        operation_slowdown_min: A job whose replay takes less than this many times what it takes without stragglers
            has none worth naming (the study that published the corpus calls a job straggling from 1.1 on).
        operation_share_min: What explains at least this share of a slowdown is named as its cause (the same study:
            half).
        operation_worker_share: This share of the workers, at least one, counts as "a few workers" (the same study:
            three in a hundred).
        operation_ranks_swept: So many data-parallel ranks and stages, those with the most extra work, are each replayed
            on their own (our choice: as many as the largest job of the corpus has).
        operation_workers_swept: So many workers, the worst by an upper bound, are each replayed on their own (our
            choice: a sweep takes a tenth of a second for 100,000 operations).
        verify_min_units: One run a side is compared from this many units on (docs/decisions/0019: with fewer,
            resampling says too little of the spread).
        verify_part_min_share: A part shrank where it takes less by at least this share of the period (our choice).
        verify_arrived_max_share: The wait has moved where, at best, less than this share of what the part gave up came
            out as a shorter item (our choice).
        verify_runs_max: More runs than this a side are not worth recommending (our choice).
        bench_pressure_max_share: A sample is flagged where some task waited for a CPU, for I/O or for memory for more
            than this share of it (bench-io A2: below 5 % saves varied by 4.6 %, above it by 80 %).
        bench_steal_max_share: … where the hypervisor ran somebody else for more than this share (our choice: a tick in
            a hundred).
        bench_throttled_max_share: … where its control group's quota held it still for more than this share (our choice:
            any time at all).
        bench_involuntary_max_per_s: … where it was taken off a CPU more often than this a second (our choice: a process
            that is alone on its CPU is taken off some tens of times).
    """

    readout_max_bytes: int = 4096
    blocking_copy_min_ns: int = 20 * NS_PER_US
    lost_lead_after_ns: int = 20 * NS_PER_US
    kernel_gap_max_ns: int = 100 * NS_PER_US
    kernel_gap_default_ns: int = 20 * NS_PER_US
    launch_latency_max_ns: int = 1000 * NS_PER_US
    one_off_min_share: float = 0.01
    one_off_factor: float = 10.0
    one_off_min_ns: int = 100 * NS_PER_US
    start_spread_max_share: float = 0.01
    clock_scatter_max_ns: int = 1000 * NS_PER_US
    clock_scatter_factor: float = 3.2
    clock_exchange_ns: int = 30 * NS_PER_US
    end_skew_max_share: float = 0.2
    unsplit_max_share: float = 0.01
    culprit_min_share: float = 0.5
    waiting_min_share: float = 0.01
    cost_min_sizes: int = 4
    cost_min_decades: float = 2.0
    slow_link_factor: float = 2.0
    more_work_min_share: float = 0.1
    p95_min_count: int = 20
    overlong_factor: float = 10.0
    overrun_min_ns: int = NS_PER_S
    host_overrun_min_ns: int = 3600 * NS_PER_S
    overrun_factor: float = 100.0
    span_max_ns: int = 30 * 24 * 3600 * NS_PER_S
    stray_max_share: float = 0.1
    job_gap_min_ns: int = 3600 * NS_PER_S
    parallel_min_bytes: int = 60 << 20
    silence_min_ns: int = 50 * NS_PER_US
    silence_covered_share: float = 0.5
    implied_wait_min_ns: int = 200 * NS_PER_US
    resumes_within_ns: int = 20 * NS_PER_US
    clock_tolerance_ns: int = 10 * NS_PER_US
    allocation_min_ns: int = 100 * NS_PER_US
    queue_min_ns: int = 50 * NS_PER_US
    queue_factor: float = 8.0
    queue_min_depth: int = 256
    queue_depth_share: float = 0.15
    stream_overlap_max_ns: int = NS_PER_US
    late_start_ns: int = 20 * NS_PER_US
    event_candidates: int = 8
    event_confirmed_share: float = 0.5
    event_lag_max_share: float = 0.02
    coincident_before_ns: int = 6 * NS_PER_US
    coincident_after_ns: int = 10 * NS_PER_US
    clean_margin_ns: int = 20 * NS_PER_US
    clean_min_count: int = 5
    constant_max_ns: int = 100 * NS_PER_US
    unexplained_max_share: float = 0.1
    replay_error_max_share: float = 0.05
    untested_error_share: float = 0.01
    untested_kept_share: float = 0.9
    run_spread_share: float = 0.03
    scaling_same_job_min_share: float = 0.5
    scaling_same_work_min_share: float = 0.9
    scaling_compute_factor: float = 1.5
    scaling_other_job_factor: float = 5.0
    scaling_range_max_share: float = 0.05
    join_max_bytes: int = 2 << 30
    slack_max_edges: int = 200_000
    prefetch_workers: int = 2
    prefetch_depth: int = 2
    prefetch_handover_ns: int = 2500 * NS_PER_US
    equalise_min_ratio: float = 1.2
    graph_gap_ns: int = 0
    finding_min_share: float = 0.03
    long_pole_min_share: float = 0.05
    gpu_work_min_share: float = 0.7
    candidates_max_edges: int = 400_000
    incomplete_max_share: float = 0.25
    acting_min_share: float = 0.2
    fragmentation_min_share: float = 0.2
    memory_full_share: float = 0.9
    leak_min_units: int = 4
    leak_min_bytes: int = 1 << 20
    leak_min_share: float = 0.001
    leak_host_min_bytes: int = 1 << 16
    regression_min_share: float = 0.03
    sync_many_per_unit: int = 4
    sporadic_max_share: float = 0.5
    stall_factor: float = 3.0
    pause_min_ns: int = 1000 * NS_PER_US
    uneven_factor: float = 2.0
    small_kernel_max_ns: int = 60 * NS_PER_US
    many_collectives_per_unit: int = 8
    small_collective_max_bytes: int = 1 << 20
    low_latency_max_bytes: int = 1 << 20
    low_latency_loss: float = 2.0
    beside_factor: float = 1.1
    last_bucket_share: float = 0.5
    expansion_max_ratio: int = 200
    expansion_free_bytes: int = 1 << 30
    operation_overlap_max_ns: int = 500 * NS_PER_US
    operation_async_min_share: float = 0.05
    operation_resolution_max_ns: int = 1000 * NS_PER_US
    operation_error_max: float = 0.05
    operation_slowdown_min: float = 1.1
    operation_share_min: float = 0.5
    operation_worker_share: float = 0.03
    operation_ranks_swept: int = 32
    operation_workers_swept: int = 8
    verify_min_units: int = 5
    verify_part_min_share: float = 0.01
    verify_arrived_max_share: float = 0.5
    verify_runs_max: int = 100
    bench_pressure_max_share: float = 0.05
    bench_steal_max_share: float = 0.01
    bench_throttled_max_share: float = 0.0
    bench_involuntary_max_per_s: float = 100.0


def read_settings(path: Path | None) -> Settings:
    """Return the defaults, overridden by the `[settings]` table of a TOML file.

    Raises:
        UsageError: The file cannot be read, is not TOML, has no such table, or names a setting that does not exist or
            has another type.
    """
    default = Settings()
    if path is None:
        return default
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"{path}: expected a TOML file with settings, found: {error}"
        raise UsageError(msg) from None
    table = document.get("settings")
    if not isinstance(table, dict):
        msg = f"{path}: no table [settings] in it. Write [settings] above the thresholds"
        raise UsageError(msg)
    known = {field.name: type(getattr(default, field.name)) for field in fields(default)}
    for name, value in table.items():
        if name not in known:
            msg = f"{path}: no setting is called {name!r}; there are {', '.join(sorted(known))}"
            raise UsageError(msg)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < float("inf"):
            msg = f"{path}: setting {name} takes a number of at least 0, found {value!r}"
            raise UsageError(msg)
    return replace(default, **{name: known[name](value) for name, value in table.items()})
