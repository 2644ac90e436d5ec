"""Record the example traces anew: run each job under the profiler, clean what it wrote, and store it compressed.

    python -m venv build/examples-venv
    build/examples-venv/bin/pip install -r requirements/examples.txt
    build/examples-venv/bin/python examples/record.py            # all of them
    build/examples-venv/bin/python examples/record.py loader-bound

Cleaning replaces the host's name, takes every path of the recording machine out of the text and leaves all other bytes
as the profiler wrote them. A file that still shows an absolute path, or that is too large to commit, is not written.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
JOBS = EXAMPLES / "jobs"
TRACE_LIMIT_BYTES = 200_000  # what a committed recording may take, compressed
JOB_LIMIT_S = 600
NEUTRAL_HOST = "host"
ABSOLUTE_PATH = re.compile(r"(?<![\w.\-)>])/(?:[\w.\-]+/)+[\w.\-]*")


@dataclass(frozen=True)
class Example:
    """One job to record: its script, and on how many processes it runs."""

    name: str
    script: str
    n_ranks: int


CATALOGUE = (
    Example("loader-bound", "loader_bound.py", n_ranks=1),
    Example("ddp-gloo-1rank", "ddp_gloo.py", n_ranks=1),
    Example("ddp-gloo-2ranks", "ddp_gloo.py", n_ranks=2),
    Example("ddp-gloo-4ranks", "ddp_gloo.py", n_ranks=4),
)


class RecordingError(Exception):
    """A recording that failed, or that must not be committed."""


def find_free_port() -> int:
    """Ask the system for a TCP port of the loopback device that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def rank_environment(example: Example, rank: int, port: int) -> dict[str, str]:
    """Say to one process who it is, as torchrun would.

    Args:
        example: the job.
        rank: the process's rank.
        port: where rank 0 listens.

    Returns:
        The environment of the process. Everything stays on the loopback device.
    """
    return {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(example.n_ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }


def run_job(example: Example, folder: Path) -> list[Path]:
    """Run a job to its end, one process a rank.

    Args:
        example: the job.
        folder: where the processes run and leave their raw traces.

    Returns:
        The raw traces, by rank.

    Raises:
        RecordingError: a process failed; the message holds its last words.
    """
    port = find_free_port()
    raw = [folder / f"rank{rank}.pt.trace.json" for rank in range(example.n_ranks)]
    processes = [
        subprocess.Popen(
            [sys.executable, str(JOBS / example.script), raw[rank].name],
            cwd=folder,
            env=rank_environment(example, rank, port),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(example.n_ranks)
    ]
    try:
        for rank, process in enumerate(processes):
            said, _ = process.communicate(timeout=JOB_LIMIT_S)
            if process.returncode != 0:
                message = f"{example.name}: rank {rank} ended with {process.returncode}:\n{said[-2000:]}"
                raise RecordingError(message)
    finally:
        for process in processes:
            process.kill()
    return raw


def clean(text: str, folder: Path) -> str:
    """Take the recording machine out of a trace: its name, and where things lie on it.

    Args:
        text: the trace as the profiler wrote it.
        folder: the folder in which the job ran.

    Returns:
        The same text with a neutral `host_name`, which still says that all ranks share a host, and with paths that
        begin at `site-packages`, at the standard library, at this repository or at the job's folder.
    """
    paths = sysconfig.get_paths()
    prefixes = [
        (paths["purelib"], "site-packages"),
        (paths["platlib"], "site-packages"),
        (paths["stdlib"], "python"),
        (str(folder), ""),
        (str(JOBS), "examples/jobs"),
        (str(EXAMPLES.parent), ""),
    ]
    for prefix, neutral in sorted(prefixes, key=lambda pair: -len(pair[0])):
        text = text.replace(prefix + "/", neutral + "/" if neutral else "")
    return re.sub(r'"host_name": "[^"]*"', f'"host_name": "{NEUTRAL_HOST}"', text, count=1)


def check_publishable(text: str, name: str) -> None:
    """Refuse a trace that is no JSON, or that still tells of the machine.

    Args:
        text: the cleaned trace.
        name: how to call it in the message.

    Raises:
        RecordingError: what was found.
    """
    json.loads(text)
    found = ABSOLUTE_PATH.search(text)
    if found is not None:
        message = f"{name}: expected no absolute path, found {found.group()!r} at character {found.start()}"
        raise RecordingError(message)
    hosts = set(re.findall(r'"host_name": "([^"]*)"', text)) - {NEUTRAL_HOST}
    if hosts:
        message = f"{name}: expected no host_name but {NEUTRAL_HOST!r}, found another"
        raise RecordingError(message)


def store(text: str, target: Path) -> int:
    """Compress a trace so that the same text always gives the same bytes.

    Args:
        text: the trace.
        target: the file to write; its folder is made.

    Returns:
        The size of the file in bytes.

    Raises:
        RecordingError: the file would be too large to commit.
    """
    packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
    if len(packed) > TRACE_LIMIT_BYTES:
        message = f"{target.name}: expected at most {TRACE_LIMIT_BYTES} bytes, found {len(packed)}; record fewer steps"
        raise RecordingError(message)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(packed)
    return len(packed)


def record(example: Example) -> None:
    """Run one job and replace its committed traces.

    Args:
        example: the job.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for raw in run_job(example, folder):
            text = clean(raw.read_text(), folder)
            check_publishable(text, raw.name)
            size_bytes = store(text, EXAMPLES / example.name / f"{raw.name}.gz")
            sys.stdout.write(f"{example.name}/{raw.name}.gz  {size_bytes} bytes\n")


def main() -> int:
    """Record the examples named on the command line, or all."""
    names = [example.name for example in CATALOGUE]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="EXAMPLE", help=f"which to record, of {', '.join(names)}; all unless said"
    )
    chosen = parser.parse_args().names or names
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        parser.error(f"expected some of {', '.join(names)}, found {', '.join(unknown)}")
    for example in CATALOGUE:
        if example.name in chosen:
            try:
                record(example)
            except RecordingError as error:
                sys.stderr.write(f"{error}\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
