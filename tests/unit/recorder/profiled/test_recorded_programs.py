"""A recorded program is the program: same output, same end; and its trace holds the steps that were asked for."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.recorder.profiled import programs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WINDOW = ("--skip", "2", "--warmup", "1", "--active", "5")  # steps 3 to 7, counted from 0
LIMIT_S = 240
STEPS = [f"ProfilerStep#{number}" for number in range(3, 8)]


def run(
    program: str, folder: Path, *, recorded: Sequence[str] | None, before: Sequence[str] = (), **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder: recorded with these options, or by itself where None."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    command = [*before, sys.executable, "program.py"]
    if recorded is not None:
        command = [sys.executable, "-m", "longpole", "record", *WINDOW, *recorded, "--", *command]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def trace_of(folder: Path, name: str = "rank0") -> dict[str, Any]:
    with gzip.open(folder / "traces" / f"{name}.pt.trace.json.gz") as file:
        trace: dict[str, Any] = json.load(file)
    return trace


def steps_in(trace: dict[str, Any]) -> list[str]:
    return sorted({event["name"] for event in trace["traceEvents"] if "ProfilerStep#" in event.get("name", "")})


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "traces").iterdir())


class TestWithTorch:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch")

    def test_a_plain_loop_prints_what_it_prints_and_leaves_whole_steps(self, tmp_path: Path) -> None:
        alone = run(programs.PLAIN, tmp_path, recorded=None, PYTHONWARNINGS="error")

        done = run(programs.PLAIN, tmp_path, recorded=[], PYTHONWARNINGS="error")

        assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout) == (0, alone.stdout)
        assert done.stderr.startswith("longpole record: 5 steps of rank 0 in traces (")
        assert done.stderr.endswith("next: longpole report traces\n")
        assert done.stderr.count("\n") == 1
        assert files_in(tmp_path) == ["rank0.pt.trace.json.gz"]
        trace = trace_of(tmp_path)
        assert steps_in(trace) == STEPS
        assert trace["longpole_record"]["ended"] == "complete"
        assert trace["distributedInfo"] == {"rank": 0, "world_size": 1}
        optimizers = [event for event in trace["traceEvents"] if event.get("name") == "Optimizer.step#SGD.step"]
        assert len(optimizers) == 5  # and each lies in its step, which ends after it
        for optimizer in optimizers:
            assert any(
                step["ts"] <= optimizer["ts"] and optimizer["ts"] + optimizer["dur"] <= step["ts"] + step["dur"]
                for step in trace["traceEvents"]
                if step.get("name") in STEPS
            )

    @pytest.mark.slow
    def test_an_exception_in_the_window_ends_the_program_as_ever_and_leaves_the_steps_before_it(
        self, tmp_path: Path
    ) -> None:
        done = run(programs.RAISES_IN_WINDOW, tmp_path, recorded=[])

        assert done.returncode == 1
        assert "ValueError: on purpose" in done.stderr
        assert "4 steps of 5 (the program ended)" in done.stderr
        assert steps_in(trace_of(tmp_path)) == [*STEPS[:4], "unfinished ProfilerStep#7"]

    def test_sigterm_in_the_window_ends_the_program_by_that_signal(self, tmp_path: Path) -> None:
        done = run(programs.killed("SIGTERM"), tmp_path, recorded=["-q"])

        assert (done.returncode, done.stderr) == (-15, "")
        assert trace_of(tmp_path)["longpole_record"] == {
            "ended": "SIGTERM", "recorded_steps": 4, "asked_steps": 5, "first_step": 3,
        }  # fmt: skip

    @pytest.mark.slow
    def test_the_programs_own_profiler_takes_over_and_sees_all_that_it_would_have_seen(self, tmp_path: Path) -> None:
        alone = run(programs.OWN_PROFILER_IN_WINDOW, tmp_path, recorded=None)

        done = run(programs.OWN_PROFILER_IN_WINDOW, tmp_path, recorded=[])

        assert (done.returncode, done.stdout) == (0, alone.stdout)
        assert "(the program started its own profiler)" in done.stderr
        assert steps_in(trace_of(tmp_path))[:4] == STEPS[:4]

    @pytest.mark.slow
    def test_calls_of_the_model_are_steps_where_there_is_no_optimizer(self, tmp_path: Path) -> None:
        done = run(programs.INFERS, tmp_path, recorded=[])

        assert done.returncode == 0
        assert steps_in(trace_of(tmp_path)) == STEPS

    @pytest.mark.slow
    def test_two_ranks_started_by_torchrun_leave_a_trace_each(self, tmp_path: Path) -> None:
        before = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]

        done = run(programs.RANKS, tmp_path, recorded=[], before=before, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")

        assert done.returncode == 0, done.stderr
        assert done.stdout.count("loss") == 2
        assert done.stderr.count("longpole record:") == 1
        assert files_in(tmp_path) == ["rank0.pt.trace.json.gz", "rank1.pt.trace.json.gz"]
        for rank in (0, 1):
            trace = trace_of(tmp_path, f"rank{rank}")
            assert steps_in(trace) == STEPS
            assert (trace["distributedInfo"]["rank"], trace["distributedInfo"]["world_size"]) == (rank, 2)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("program", "code"),
        [(programs.EXITS_WITH_3, 3), (programs.killed("SIGINT"), -2), (programs.killed("SIGKILL"), -9)],
        ids=["exit 3", "SIGINT", "SIGKILL"],
    )
    def test_a_program_ends_as_it_would_have_ended(self, program: str, code: int, tmp_path: Path) -> None:
        alone = run(program, tmp_path, recorded=None)

        done = run(program, tmp_path, recorded=[])

        assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
        assert done.returncode == code

    @pytest.mark.slow
    def test_a_forked_child_is_left_alone(self, tmp_path: Path) -> None:
        done = run(programs.FORKS_IN_WINDOW, tmp_path, recorded=[])

        assert done.stdout.splitlines()[0] == "5"
        assert files_in(tmp_path) == ["rank0.pt.trace.json.gz"]
        assert steps_in(trace_of(tmp_path)) == STEPS

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("program", "told"),
        [
            (programs.TOO_SHORT, "before a step was recorded"),
            (programs.OWN_PROFILER, "the program's own profiler was on"),
        ],
    )
    def test_where_nothing_can_be_recorded_it_says_why_and_leaves_no_folder(
        self, program: str, told: str, tmp_path: Path
    ) -> None:
        done = run(program, tmp_path, recorded=[])

        assert done.returncode == 0
        assert done.stderr.startswith("longpole record: nothing was recorded: ")
        assert told in done.stderr
        assert not (tmp_path / "traces").exists()

    @pytest.mark.slow
    def test_sigterm_ends_a_program_whose_main_thread_is_stuck_in_a_call(self, tmp_path: Path) -> None:
        (tmp_path / "program.py").write_text(programs.STUCK, encoding="utf-8")
        command = [sys.executable, "-m", "longpole", "record", *WINDOW, "-q", "--", sys.executable, "program.py"]

        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "stuck\n"
            process.terminate()
            assert process.wait(60) == -15

    @pytest.mark.slow
    def test_a_file_size_limit_costs_the_trace_and_nothing_else(self, tmp_path: Path) -> None:
        done = run(programs.PLAIN, tmp_path, recorded=[], before=["bash", "-c", 'ulimit -f 8; exec "$@"', "bash"])

        assert done.returncode == 0
        assert done.stdout.startswith("loss ")
        assert done.stderr.startswith("longpole record: the trace of rank 0 could not be written: ")
        assert done.stderr.count("longpole record:") == 1
        assert not (tmp_path / "traces").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "package"),
    [("plain_loop", "torch"), ("hugging_face_trainer", "transformers"), ("lightning_module", "lightning")],
)
def test_the_examples_are_recorded_as_they_are(name: str, package: str, root: Path, tmp_path: Path) -> None:
    pytest.importorskip(package)
    program = (root / "examples" / "record" / f"{name}.py").read_text(encoding="utf-8")

    done = run(program, tmp_path, recorded=[])

    assert done.returncode == 0, done.stderr
    assert "longpole record: 5 steps of rank 0 in traces (" in done.stderr
    assert steps_in(trace_of(tmp_path)) == STEPS


def test_a_program_without_torch_runs_and_is_told(tmp_path: Path) -> None:
    done = run("import sys; print(sys.argv[0]); sys.exit(7)", tmp_path, recorded=[])

    assert (done.returncode, done.stdout) == (7, "program.py\n")
    assert done.stderr == "longpole record: nothing was recorded: torch was not imported\n"
    assert not (tmp_path / "traces").exists()


def test_the_path_and_the_sitecustomize_that_the_program_sees_are_its_own(tmp_path: Path) -> None:
    home = tmp_path / "site"
    home.mkdir()
    (home / "sitecustomize.py").write_text("print('customized')", encoding="utf-8")
    program = "import sys, sitecustomize; print(sys.path, sitecustomize.__file__)"
    alone = run(program, tmp_path, recorded=None, PYTHONPATH=str(home))

    done = run(program, tmp_path, recorded=["-q"], PYTHONPATH=str(home))

    assert alone.stdout.startswith("customized\n")
    seen = done.stdout.removeprefix("customized\n")  # by the Python that Longpole itself runs on
    assert (done.returncode, seen, done.stderr) == (0, alone.stdout, alone.stderr)


def test_the_commands_own_options_are_its_own(tmp_path: Path) -> None:
    shown = [sys.executable, "-c", "import sys; print(sys.argv[1:])", "--debug", "--help", "--", "-q"]
    command = [sys.executable, "-m", "longpole", "record", "-q", "--", *shown]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    assert (done.returncode, done.stdout) == (0, "['--debug', '--help', '--', '-q']\n")


def test_a_broken_pipe_ends_the_program_as_it_would_without_us(tmp_path: Path) -> None:
    script = 'yes | head -1; echo "${PIPESTATUS[0]}"'
    command = [sys.executable, "-m", "longpole", "record", "-q", "--", "bash", "-c", script]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    assert done.stdout == "y\n141\n"  # 128 + SIGPIPE: yes was ended by the signal, and did not ignore it


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["python", "train.py"], "expected a command behind --"),
        (["--", "no-such-program"], "there is no such program"),
        (["--skip", "0", "--", "true"], "--skip: expected a whole number of at least 1"),
        (["--out", "taken", "--", "true"], "holds a recording already"),
        (["--out", "file/traces", "--", "true"], "cannot be written to"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(arguments: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "rank0.pt.trace.json.gz").touch()
    (tmp_path / "file").touch()

    command = [sys.executable, "-m", "longpole", "record", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
