"""One fresh process: how it ended, what it took, what it left, and what of it becomes a unit."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from longpole.bench.process_run import BEYOND, Command, ProcessResult, run_process
from longpole.errors import UsageError
from longpole.records.ledger import Unknown
from longpole.settings import Settings

MIB = 1 << 20


def run(code: str, **options: Any) -> ProcessResult:
    return run_process(Command(argv=[sys.executable, "-S", "-c", code], **options), Settings(), process=3, place=5)


def test_a_process_without_a_span_file_is_one_unit_of_its_wall_time() -> None:
    result = run("pass")

    (unit,) = result.units
    assert (result.process.exit_code, result.process.failure) == (0, "")
    assert (result.process.process, result.process.place, unit.process) == (3, 5, 3)
    assert unit.period_ns == unit.wall_ns == result.process.wall_ns
    assert isinstance(result.process.cpu_ns, int)
    assert result.process.cpu_ns > 0


def test_peak_memory_is_the_process_s_own_and_not_that_of_who_started_it() -> None:
    """A forked child is charged with its parent's peak; the parent here is made large on purpose."""
    ballast = bytearray(256 * MIB)
    ballast[::4096] = b"x" * len(ballast[::4096])

    small, large = run("pass"), run("x = bytearray(96 << 20)")

    assert isinstance(small.process.peak_bytes, int)
    assert isinstance(large.process.peak_bytes, int)
    assert small.process.peak_bytes < 64 * MIB
    assert large.process.peak_bytes - small.process.peak_bytes > 80 * MIB
    assert len(ballast) == 256 * MIB


def test_a_failed_process_keeps_its_output_and_its_unit_does_not_count() -> None:
    result = run("import sys; print('about to fail'); sys.exit('token=abcdefgh12345 is wrong, api_key=abcdefgh12')")

    (unit,) = result.units
    assert (result.process.exit_code, result.process.failure) == (1, "exit code 1")
    assert unit.left_out == "failed"
    assert isinstance(unit.period_ns, Unknown)
    assert "about to fail" in result.output_tail
    assert "api_key=[redacted]" in result.output_tail


def test_a_signal_is_named() -> None:
    assert run("import os; os.kill(os.getpid(), 9)").process.failure == "ended by signal 9"


def test_a_process_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    note = tmp_path / "child"
    code = (
        "import os, time\n"
        "child = os.fork()\n"
        f"open({str(note)!r}, 'w').write(str(child)) if child else None\n"
        "time.sleep(600)"
    )

    result = run(code, timeout_s=1.5)

    assert result.process.failure == "ended after 1.5 s, the time that it was given"
    assert not is_alive(int(note.read_text()))


def is_alive(pid: int) -> bool:
    """Tell whether a process still runs; an ended one may wait a moment for its new parent."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True


def test_a_program_that_does_not_exist_is_refused_with_its_name() -> None:
    with pytest.raises(UsageError, match=r"no-such-program: cannot be started: No such file"):
        run_process(Command(argv=["no-such-program"]), Settings())


def test_arguments_reach_the_program_as_they_are() -> None:
    code = "import sys; sys.exit(sys.argv[1:] != ['a b', '$HOME', ';'])"
    result = run_process(Command(argv=[sys.executable, "-S", "-c", code, "a b", "$HOME", ";"]), Settings())

    assert result.process.failure == ""


def test_variables_and_folder_are_the_command_s(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(os.environ['COLOUR'] != 'blue' or not os.path.samefile('.', os.environ['WHERE']))"

    assert run(code, env={"COLOUR": "blue", "WHERE": str(tmp_path)}, cwd=tmp_path).process.failure == ""
    assert "COLOUR" not in os.environ


SPANS = """
import json, os
ms = 1000000
with open(os.path.join(os.environ["LONGPOLE_RECORD"], "1.spans.jsonl"), "w") as file:
    lines = [dict(k="header", schema="longpole.spans/1", clock_ns=0, epoch_ns=0, pid=1, main_thread=7,
                  environment={"torch_version": "9.9"})]
    for n in range(6):
        lines += [dict(k="span", n="load", s=n * 10 * ms, d=4 * ms, t=7, o="input"),
                  dict(k="unit", n="step %d" % n, s=n * 10 * ms, d=10 * ms, t=7)]
    file.write("".join(json.dumps(line) + "\\n" for line in lines) + '{"k":"unit","n":"cut')
"""


def test_units_that_a_process_recorded_are_its_samples() -> None:
    result = run(SPANS, warmup_units=1, units=3)

    assert [unit.left_out for unit in result.units] == ["warm-up", "", "", "", BEYOND, BEYOND]
    assert [unit.period_ns for unit in result.units][1:] == [10_000_000] * 5
    assert {name: stage.wall_ns for name, stage in result.units[1].stages.items()} == {
        "load": 4_000_000,
        "residual": 6_000_000,
    }
    assert result.environment == {"torch_version": "9.9"}


def test_a_process_that_fails_half_way_keeps_the_units_until_then() -> None:
    result = run(SPANS + "\nraise SystemExit(4)")

    assert result.process.failure == "exit code 4"
    assert len(result.units) == 6
