"""Sets of processes: what they measured, and what is left of them when one dies, hangs or lies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longpole.bench.collectives.plan import Facts, Plan
from longpole.bench.collectives.run import child_environment, measure, probe
from longpole.bench.collectives.world import Rank, WorldFailedError, run_world
from longpole.errors import UsageError

FAKE = [sys.executable, str(Path(__file__).resolve().parents[3] / "fake_ranks.py")]
FACTS = Facts("gloo")


def _plan(**changes: object) -> Plan:
    made: dict[str, object] = {
        "kinds": ("all_reduce", "broadcast"),
        "sizes": (1024, 4096),
        "rounds": 2,
        "repeats": 10,
        "timeout_s": 20.0,
    }
    return Plan(**(made | changes))  # type: ignore[arg-type]  # a test names the fields


def test_the_time_of_a_repeat_is_the_longest_of_the_ranks() -> None:
    measured = measure(_plan(), FACTS, command=FAKE)

    point = measured.points[0]
    assert (point.kind, point.bytes, point.ranks, point.correctness) == ("all_reduce", 1024, 2, "passed")
    assert [one.samples_ns for one in point.rounds] == [list(range(2024, 2034))] * 2
    assert [one.skew_ns for one in point.rounds] == [10, 10]
    assert point.repeats == 20
    assert len(measured.points) == 4


@pytest.mark.parametrize("does", ["", "die:1", "wrong:1"])
def test_settings_are_the_childrens_alone(does: str) -> None:
    before = dict(os.environ)

    measure(_plan(variables=({}, {"OMP_FAKE_RANKS": does or "none"}), rounds=1), FACTS, command=FAKE)

    assert dict(os.environ) == before


def test_a_rank_that_dies_costs_its_setting_only() -> None:
    measured = measure(_plan(variables=({}, {"OMP_FAKE_RANKS": "die:1"})), FACTS, command=FAKE)

    by_name = {setting.name: setting for setting in measured.settings}
    assert by_name["default"].status == "measured"
    assert by_name["OMP_FAKE_RANKS=die:1"].status == "failed"
    assert by_name["OMP_FAKE_RANKS=die:1"].failure == "rank 1 ended with exit code 1: RuntimeError: the wire is cut"
    assert len([point for point in measured.points if point.setting == "default"]) == 4


def test_a_rank_that_hangs_is_ended_and_named() -> None:
    plan = _plan(variables=({}, {"OMP_FAKE_RANKS": "hang:1"}), rounds=1, timeout_s=1.5)

    measured = measure(plan, FACTS, command=FAKE)

    failure = next(setting.failure for setting in measured.settings if setting.status == "failed")
    assert "nobody got on for 1.5 s" in failure
    assert "rank 1 is behind the others" in failure


def test_a_wrong_result_withdraws_its_times() -> None:
    measured = measure(_plan(variables=({}, {"OMP_FAKE_RANKS": "wrong:0"}), rounds=1), FACTS, command=FAKE)

    assert {point.correctness for point in measured.points if point.setting == "default"} == {"passed"}
    assert {point.correctness for point in measured.points if point.setting != "default"} == {"failed"}


def test_a_kind_that_the_backend_lacks_is_said_and_the_rest_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_FAKE_RANKS", "refuse:broadcast")

    measured = measure(_plan(rounds=1), FACTS, command=FAKE)

    assert {point.kind for point in measured.points} == {"all_reduce"}
    assert [(one.what, one.why) for one in measured.not_run] == [("broadcast", "gloo: gloo does not support broadcast")]


def test_gloo_is_not_measured_under_variables_that_it_does_not_read() -> None:
    measured = measure(_plan(variables=({}, {"NCCL_ALGO": "Ring"}), rounds=1), FACTS, command=FAKE)

    assert {point.setting for point in measured.points} == {"default"}
    assert measured.settings[1].status == "not_run"
    assert measured.not_run[0].why == "gloo reads none of these variables"


def test_what_a_child_gets_is_ours_with_the_setting() -> None:
    environment = child_environment({"NCCL_ALGO": "Ring"})

    assert environment["NCCL_ALGO"] == "Ring"
    assert {name: environment[name] for name in os.environ} == dict(os.environ)


def test_a_probe_that_says_nothing_is_explained() -> None:
    with pytest.raises(UsageError, match="could not be asked"):
        probe(_plan(), [sys.executable, "-c", "pass"])


def test_no_process_is_left_when_one_dies(tmp_path: Path) -> None:
    """The other one would wait for ten minutes."""
    said = tmp_path / "pid"
    waits = f"import os, time; open({str(said)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    dies = f"import os, time\nwhile not os.path.exists({str(said)!r}): time.sleep(0.01)\nos.kill(os.getpid(), 9)"
    ranks = [
        Rank([sys.executable, "-c", code], tmp_path / f"{place}.out", tmp_path / f"{place}.err")
        for place, code in enumerate((waits, dies))
    ]

    with pytest.raises(WorldFailedError, match="rank 1 ended with signal SIGKILL"):
        run_world(ranks, dict(os.environ), 30.0)

    text = said.read_text(encoding="utf-8")
    assert not text or not _lives(int(text))


_INTERRUPTED = """
import os, sys
from pathlib import Path
from longpole.bench.collectives.world import Rank, run_world
folder = Path(sys.argv[1])
code = "import os, time; open({0!r}, 'w').write(str(os.getpid())); time.sleep(600)"
ranks = [
    Rank([sys.executable, "-c", code.format(str(folder / f"{place}.pid"))], folder / "out", folder / f"{place}.err")
    for place in range(2)
]
try:
    run_world(ranks, dict(os.environ), 60.0)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_ends_every_rank(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", _INTERRUPTED, str(tmp_path)])
    pids = [_read_when_there(tmp_path / f"{place}.pid") for place in range(2)]

    parent.send_signal(signal.SIGINT)

    assert parent.wait(timeout=30) == 130
    assert not any(_lives(pid) for pid in pids)


def test_ranks_end_when_their_parent_was_killed(tmp_path: Path) -> None:
    """Nobody is there any more to end them: they look for it themselves."""
    code = (
        "import os, sys, time; from longpole.bench.collectives import worker; worker._end_with_parent();"
        f" open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    starts = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {code!r}]); time.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", starts])
    pid = _read_when_there(tmp_path / "pid")

    parent.kill()
    parent.wait()

    deadline_s = time.monotonic() + 30
    while _lives(pid) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not _lives(pid)


def _read_when_there(path: Path) -> int:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.02)
    pytest.fail(f"{path} was not written")


def _lives(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
