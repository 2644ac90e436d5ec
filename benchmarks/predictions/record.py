"""Record every configuration that the table of changes names, several times, into a folder with a manifest.

    python -m venv build/torch-venv && build/torch-venv/bin/pip install torch==2.13.0 numpy
    python -m benchmarks.predictions.record --python build/torch-venv/bin/python
    python -m benchmarks.predictions.record --only loader_removed --out /tmp/trial     # a part, to try it

A round is one pair of fresh processes that records each configuration once, in random order. Started again, it records
what is missing. It waits for a quiet machine, and refuses a busy one unless --busy-anyway is given.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.predictions.changes import list_configurations, read_pairs
from benchmarks.predictions.knobs import N_RANKS, Knobs
from benchmarks.predictions.manifest import (
    Manifest,
    ManifestError,
    Recorded,
    describe_machine,
    hash_changes,
    hash_rules,
    read_manifest,
    require_same,
    write_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE.parent / ".data" / "predictions"
N_WARMUP = 3  # DDP lays its buckets out anew after the first step
N_RECORDED = 24
N_BEFORE, N_AFTER = 3, 5  # recordings of a configuration on either side of a change
N_ATTEMPTS = 3  # of a recording that others disturbed, and of a round whose processes failed
OTHERS_LIMIT = 0.10  # of all cores: what other programs may use during a recording
QUIET_SAMPLE_S = 3.0
QUIET_WAIT_S = 120.0
START_LIMIT_S = 60.0
RUN_LIMIT_S = 20.0  # a recording takes about two seconds


class RecordingError(Exception):
    """A recording that failed for good."""


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=RECORDINGS, help="takes the recordings (benchmarks/.data/predictions)"
    )
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has PyTorch")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX", help="changes to record")
    parser.add_argument("--before", type=int, default=N_BEFORE, help="recordings before each change (3)")
    parser.add_argument("--after", type=int, default=N_AFTER, help="recordings after each change (5)")
    parser.add_argument("--seed", type=int, default=0, help="decides the order within the rounds")
    parser.add_argument("--busy-anyway", action="store_true", help="record while other programs use the cores")
    return parser


def ask_versions(python: str) -> dict[str, str]:
    """Ask the other interpreter for its versions.

    Args:
        python: the interpreter.

    Returns:
        Of Python and of PyTorch.

    Raises:
        RecordingError: it has no PyTorch, or cannot be started.
    """
    ask = (
        "import json, platform as p, torch; print(json.dumps(dict(python=p.python_version(), torch=torch.__version__)))"
    )
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        message = f"expected an interpreter with PyTorch, found none at {python!r}; name one with --python"
        raise RecordingError(message) from error
    return dict(json.loads(done.stdout))


def plan_round(
    configurations: Mapping[str, tuple[Knobs, int]], manifest: Manifest, number: int, seed: int
) -> list[tuple[str, Knobs]]:
    """List what a round has still to record, in the round's own random order.

    Args:
        configurations: name -> knobs, and how many rounds record it.
        manifest: what is there.
        number: of the round, from 1.
        seed: of the order.

    Returns:
        Names and knobs. What was disturbed is recorded again while it has attempts left.
    """
    settled = {
        one.configuration
        for one in manifest.recorded
        if one.round == number and (not one.disturbed or one.attempt >= N_ATTEMPTS)
    }
    wanted = [(name, knobs) for name, (knobs, times) in configurations.items() if number <= times]
    random.Random(f"{seed}.{number}").shuffle(wanted)
    return [(name, knobs) for name, knobs in wanted if name not in settled]


def wait_until_quiet(*, busy_anyway: bool) -> None:
    """Wait until the machine has nothing else to do.

    Args:
        busy_anyway: do not.

    Raises:
        RecordingError: it stays busy.
    """
    if busy_anyway:
        return
    end_s = time.monotonic() + QUIET_WAIT_S
    while (busy := psutil.cpu_percent(interval=QUIET_SAMPLE_S) / 100) > OTHERS_LIMIT:
        if time.monotonic() > end_s:
            message = (
                f"expected a quiet machine, found {busy:.0%} of its cores in use; wait, or record all the same with"
                " --busy-anyway"
            )
            raise RecordingError(message)


def run_ranks(python: str, plan: Mapping[str, Any], work: Path) -> str:
    """Run one process a rank over a plan.

    Args:
        python: the interpreter.
        plan: see `workload`.
        work: a folder for the plan and what the processes say.

    Returns:
        The last words of a process that failed or did not end in time; empty where all went well.
    """
    (work / "plan.json").write_text(json.dumps(plan))
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "5"}
    end_s = time.monotonic() + START_LIMIT_S + RUN_LIMIT_S * len(plan["runs"])
    said = [work / f"said-{rank}.txt" for rank in range(N_RANKS)]
    processes = []
    with contextlib.ExitStack() as files:
        for rank in range(N_RANKS):
            output = files.enter_context(said[rank].open("wb"))
            command = [python, str(HERE / "workload.py"), str(work / "plan.json"), str(rank)]
            processes.append(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT))
        try:
            while any(one.poll() is None for one in processes) and time.monotonic() < end_s:
                if any(one.poll() for one in processes):  # one failed; its peer would wait for it
                    break
                time.sleep(0.2)
        finally:
            failed = [rank for rank, one in enumerate(processes) if one.poll() != 0]
            for one in processes:
                one.kill()
                one.wait()
    first = min(failed, key=lambda rank: processes[rank].returncode < 0, default=None)
    return "" if first is None else said[first].read_text(errors="replace")[-1500:] or "it did not end in time"


def harvest(work: Path, number: int, manifest: Manifest) -> int:
    """Take what both ranks finished into the manifest.

    Args:
        work: the folder of the processes.
        number: of the round.
        manifest: grows.

    Returns:
        How many recordings there were.
    """
    done = [work / f"done-{rank}.jsonl" for rank in range(N_RANKS)]
    if not all(path.is_file() for path in done):
        return 0
    by_rank = [[json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")] for path in done]
    earlier = {(one.configuration, one.round): one.attempt for one in manifest.recorded}
    count = 0
    for seen in zip(*by_rank, strict=False):  # a rank that failed has said less
        manifest.keep(judge(seen, number, earlier.get((seen[0]["name"], number), 0) + 1))
        count += 1
    return count


def judge(seen: Sequence[Mapping[str, Any]], number: int, attempt: int) -> Recorded:
    """Say of one recording how much other programs disturbed it.

    Args:
        seen: what each rank saw; the machine's time is rank 0's reading.
        number: of the round.
        attempt: from 1.

    Returns:
        The entry of the manifest.
    """
    first = seen[0]
    others_s = max(0.0, first["machine_cpu_s"] - sum(one["own_cpu_s"] for one in seen))
    share = others_s / (first["wall_s"] * (os.cpu_count() or 1))
    return Recorded(
        configuration=first["name"],
        round=number,
        attempt=attempt,
        load=first["load"],
        wall_s=first["wall_s"],
        others_share=round(share, 3),
        disturbed=share > OTHERS_LIMIT,
    )


def record_round(args: argparse.Namespace, configurations: Mapping[str, tuple[Knobs, int]], number: int) -> None:
    """Record what a round lacks; what others disturbed once more, what failed once more.

    Args:
        args: the parsed command line.
        configurations: name -> knobs, and how many rounds record it.
        number: of the round, from 1.

    Raises:
        RecordingError: the machine stays busy, or the processes keep failing.
        ManifestError: the manifest is damaged.
    """
    for attempt in range(1, N_ATTEMPTS + 1):
        manifest = read_manifest(args.out)
        assert manifest is not None
        wanted = plan_round(configurations, manifest, number, manifest.seed)
        if not wanted:
            return
        wait_until_quiet(busy_anyway=args.busy_anyway)
        start_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="predictions-") as name:
            work = Path(name)
            failure, count = "", 0
            try:
                failure = run_ranks(args.python, build_plan(manifest, wanted, work), work)
            finally:  # interrupted or not, what is there is kept
                count = harvest(work, number, manifest)
                move_traces(work, args.out, manifest, number)
                write_manifest(manifest, args.out)
        took_s = time.monotonic() - start_s
        print(f"round {number}, attempt {attempt}: {count} of {len(wanted)} recorded in {took_s:.0f} s", flush=True)
        if failure and attempt == N_ATTEMPTS:
            message = f"round {number}: the processes failed {N_ATTEMPTS} times; one last said:\n{failure}"
            raise RecordingError(message)


def build_plan(manifest: Manifest, wanted: Sequence[tuple[str, Knobs]], work: Path) -> dict[str, Any]:
    """Write down what the processes are to do.

    Args:
        manifest: says how many steps.
        wanted: names and knobs, in order.
        work: a folder; each configuration gets one in it.

    Returns:
        The plan that `workload` reads.
    """
    runs = []
    for name, knobs in wanted:
        folder = work / name
        folder.mkdir()
        runs.append({"name": name, "knobs": asdict(knobs), "folder": str(folder)})
    return {
        "store": str(work / "store"),
        "folder": str(work),
        "n_warmup": manifest.n_warmup,
        "n_recorded": manifest.n_recorded,
        "runs": runs,
    }


def move_traces(work: Path, out: Path, manifest: Manifest, number: int) -> None:
    """Bring the traces of a round to their places; a later attempt replaces an earlier one.

    Args:
        work: where the processes wrote them.
        out: the folder of the recordings.
        manifest: what is finished.
        number: of the round.
    """
    for one in manifest.recorded:
        traces = sorted((work / one.configuration).glob("rank*.json.gz"))
        if one.round == number and len(traces) == N_RANKS:
            place = out / one.folder
            place.mkdir(parents=True, exist_ok=True)
            for trace in traces:
                shutil.move(trace, place / trace.name)


def open_folder(args: argparse.Namespace) -> Manifest:
    """Start a folder of recordings, or go on with one.

    Args:
        args: the parsed command line.

    Returns:
        Its manifest.

    Raises:
        ManifestError: the folder holds recordings that would not compare with new ones.
        RecordingError: no PyTorch.
    """
    asked = Manifest(
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        versions=ask_versions(args.python),
        n_warmup=N_WARMUP,
        n_recorded=N_RECORDED,
        seed=args.seed,
        changes_hash=hash_changes(),
        rules_hashes=[hash_rules()],
    )
    found = read_manifest(args.out)
    if found is not None:
        require_same(found, asked)
        found.rules_hashes = sorted({*found.rules_hashes, *asked.rules_hashes})
    args.out.mkdir(parents=True, exist_ok=True)
    manifest = found or asked
    write_manifest(manifest, args.out)
    return manifest


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what is missing; 0 when all is there, 3 when it cannot be had."""
    args = build_parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the ranks end too
    pairs = [pair for pair in read_pairs() if args.only.search(pair.change)]
    configurations = list_configurations(pairs, n_before=args.before, n_after=args.after)
    n_runs = sum(times for _, times in configurations.values())
    print(f"{len(pairs)} pairs, {len(configurations)} configurations, {n_runs} recordings in {args.out}", flush=True)
    try:
        open_folder(args)
        for number in range(1, max(args.before, args.after) + 1):
            record_round(args, configurations, number)
    except (ManifestError, RecordingError) as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
