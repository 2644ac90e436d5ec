"""Record every scenario: fresh processes for every run, before and after in pairs, all in random order.

    python -m venv build/torch-venv && build/torch-venv/bin/pip install torch==2.13.0 numpy
    python -m benchmarks.verify.record --python build/torch-venv/bin/python --out ../recordings-verify
    python -m benchmarks.verify.record --only save --pairs 1 --out /tmp/trial ...    # a part, to try it

A pair is one run before and one after, the order tossed, one straight after the other; a round is one pair of every
scenario, in random order. Started again, it records what is missing. A pair that had to wait for a core for longer than
allowed is recorded once more at the end, whatever came out of it; the last attempt counts. Where other programs use the
machine, --realtime lets the recorded program come first (it needs the right to; a nice value would count only among the
programs of one session).
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
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.predictions.knobs import N_RANKS
from benchmarks.predictions.manifest import describe_machine
from benchmarks.predictions.record import RecordingError, ask_versions
from benchmarks.verify.scenarios import SIDES, Scenario, read_scenarios

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = Path(__file__).with_name("workload.py")
RECORDINGS = Path(__file__).resolve().parents[1] / ".data" / "verify"
SEEN = "run.json"  # beside the traces of a run
N_WARMUP = 3  # DDP lays its buckets out anew after the first step
N_RECORDED = 14
N_ATTEMPTS = 3  # of a pair that others disturbed
DELAY_LIMIT = 0.2  # of a run: what a rank's threads may wait for a core; for each other they wait for about 0.07


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RECORDINGS, help="takes the recordings (benchmarks/.data/verify)")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has PyTorch")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX", help="scenarios to record")
    parser.add_argument("--pairs", type=int, help="at most so many pairs of each scenario")
    parser.add_argument("--realtime", action="store_true", help="the recorded program comes before all others")
    parser.add_argument("--seed", type=int, default=0, help="decides the order; the program's own seed is always 0")
    return parser


def list_pairs(scenarios: Sequence[Scenario], at_most: int | None, seed: int) -> list[tuple[Scenario, int]]:
    """List the pairs in the order of recording: round by round, shuffled within each.

    Args:
        scenarios: to record.
        at_most: pairs of each; none takes what the scenario asks for.
        seed: of the order.

    Returns:
        Scenarios and numbers of pairs, from 1.
    """
    pairs = []
    for number in range(1, max((one.pairs for one in scenarios), default=0) + 1):
        if at_most is not None and number > at_most:
            break
        here = [(one, number) for one in scenarios if number <= one.pairs]
        random.Random(f"{seed}.{number}").shuffle(here)
        pairs += here
    return pairs


def read_seen(folder: Path) -> dict[str, Any] | None:
    """Read what was seen of a run; none where it was not recorded."""
    path = folder / SEEN
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def needs_attempt(out: Path, scenario: Scenario, number: int) -> int:
    """Say which attempt at a pair comes next, from 1; 0 where it is settled."""
    seen = [read_seen(run_folder(out, scenario, side, number)) for side in SIDES]
    done = [one for one in seen if one is not None]
    if len(done) < len(SIDES):
        return 1
    attempt = max(one["attempt"] for one in done)
    return attempt + 1 if any(one["disturbed"] for one in done) and attempt < N_ATTEMPTS else 0


def run_folder(out: Path, scenario: Scenario, side: str, number: int) -> Path:
    """Name the folder of a run."""
    return out / scenario.name / f"{side}-{number}"


class Program:
    """The recorded program, waiting for plans."""

    def __init__(self, python: str) -> None:
        """Start it.

        Args:
            python: an interpreter that has PyTorch.
        """
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "5"}
        self.process = subprocess.Popen(
            [python, str(PROGRAM)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, plan: Mapping[str, Any]) -> str:
        """Let it run a plan, and return the last words of a rank that failed; empty where all went well."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(plan) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return str(json.loads(answer)) if answer else "the program ended"

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def record_pair(
    args: argparse.Namespace, program: Program, scenario: Scenario, number: int, attempt: int, about: dict[str, Any]
) -> None:
    """Record both runs of a pair, in random order.

    Args:
        args: the parsed command line.
        program: runs them.
        scenario: what is recorded.
        number: of the pair, from 1.
        attempt: at this pair, from 1.
        about: machine and versions.

    Raises:
        RecordingError: a run failed.
    """
    order = list(SIDES)
    random.Random(f"{args.seed}.{scenario.name}.{number}.{attempt}").shuffle(order)
    for place, side in enumerate(order, start=1):
        with tempfile.TemporaryDirectory(prefix="verify-") as name:
            work = Path(name)
            setting = scenario.side(side)
            plan = {
                "store": str(work / "store"),
                "folder": str(work),
                "n_warmup": N_WARMUP,
                "n_recorded": N_RECORDED,
                "seed": 0,
                "realtime": args.realtime,
                "setting": asdict(setting),
            }
            started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            if failure := program.run(plan):
                message = f"{scenario.name}, {side}, pair {number}: the processes failed; one last said:\n{failure}"
                raise RecordingError(message)
            seen = summarise([json.loads((work / f"seen-{rank}.json").read_text()) for rank in range(N_RANKS)])
            seen |= {"scenario": scenario.name, "side": side, "pair": number, "place_in_pair": place}
            seen |= {"attempt": attempt, "started": started, "seed": 0, "batch_per_rank": setting.batch}
            seen |= {
                "items_per_step": setting.batch * N_RANKS,
                "setting": asdict(setting),
                "realtime": args.realtime,
                **about,
            }
            keep(work, run_folder(args.out, scenario, side, number), seen)
        print(
            f"{scenario.name} {side}-{number}: {seen['wall_s']:.2f} s, others {seen['others_share']:.0%},"
            f" waited {seen['delay_share']:.1%}",
            flush=True,
        )


def summarise(ranks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Bring what the ranks saw of one run together.

    Args:
        ranks: what each saw; the machine's time is rank 0's reading.

    Returns:
        Losses are means over the ranks, step by step; memory is the largest of any rank (bytes).
    """
    first = ranks[0]
    others_s = max(0.0, first["machine_cpu_s"] - sum(one["own_cpu_s"] for one in ranks))
    delay_share = max(one["delay_s"] / one["wall_s"] for one in ranks)
    return {
        "loss_per_step": [sum(step) / len(ranks) for step in zip(*(one["losses"] for one in ranks), strict=True)],
        "held_out_loss": first["held_out_loss"],
        "peak_rss_bytes": max(one["peak_rss_bytes"] for one in ranks),
        "dtype": first["dtype"],
        "load": first["load"],
        "wall_s": first["wall_s"],
        "others_share": round(others_s / (first["wall_s"] * (os.cpu_count() or 1)), 3),
        "delay_share": round(delay_share, 4),
        "disturbed": delay_share > DELAY_LIMIT,
    }


def keep(work: Path, place: Path, seen: Mapping[str, Any]) -> None:
    """Bring a finished run to its place; a later attempt replaces an earlier one."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for trace in sorted(work.glob("rank*.json.gz")):
        shutil.move(trace, place / trace.name)
    (place / SEEN).write_text(json.dumps(seen, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what is missing; 0 when all is there, 3 when it cannot be had."""
    args = build_parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the ranks end too
    scenarios = [one for one in read_scenarios() if args.only.search(one.name)]
    pairs = list_pairs(scenarios, args.pairs, args.seed)
    print(f"{len(scenarios)} scenarios, {len(pairs)} pairs in {args.out}", flush=True)
    try:
        about = {"machine": describe_machine(), "versions": ask_versions(args.python)}
        with contextlib.closing(Program(args.python)) as program:
            for scenario, number in pairs * N_ATTEMPTS:
                if attempt := needs_attempt(args.out, scenario, number):
                    record_pair(args, program, scenario, number, attempt, about)
    except RecordingError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
