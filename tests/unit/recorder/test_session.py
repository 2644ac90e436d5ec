"""A recording survives what happens to processes: forks, kills, full disks, folders that cannot be written."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from longpole import record
from longpole.errors import UsageError
from longpole.recorder.session import Options, Recorder
from longpole.records.span_file import SpanLine
from longpole.records.span_file_read import read_span_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.span_files import Recording


def span(name: str) -> SpanLine:
    return SpanLine(name, 1, 2, 3)


def wait_for(found: Any, what: str) -> None:
    """Wait for something that another process is about to do."""
    for _ in range(600):
        if found():
            return
        time.sleep(0.05)
    pytest.fail(f"did not happen within 30 s: {what}")


def test_no_file_and_no_thread_before_the_first_span(recording: Recording) -> None:
    assert not recording.folder.exists()
    with record.stage("a"):
        pass
    record.flush()

    assert record.path() is not None
    assert len(list(recording.folder.iterdir())) == 1


def test_the_last_line_says_that_the_process_ended_in_order(recording: Recording) -> None:
    with record.stage("a"):
        pass

    assert recording.stop().close is not None


def test_a_recording_that_is_started_anew_goes_on_in_a_file_of_its_own(recording: Recording) -> None:
    with record.stage("a"):
        pass
    record.start(recording.folder)
    with record.stage("b"):
        pass
    record.stop()

    assert sorted(file.spans[0].n for file in recording.files()) == ["a", "b"]


def test_a_span_that_ends_after_the_recording_is_dropped(recording: Recording) -> None:
    with record.stage("a"):
        pass
    with record.stage("late"):
        record.stop()

    assert [line.n for line in recording.files()[0].spans] == ["a"]


@pytest.mark.parametrize("wrong", [{"flush_interval_s": 0}, {"buffer_lines": 0}, {"rank": -1}])
def test_options_out_of_range_are_named(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        record.start(tmp_path, **wrong)
    assert not record.is_on()


def test_a_full_buffer_drops_and_counts(tmp_path: Path) -> None:
    recorder = Recorder(Options(str(tmp_path), buffer_lines=10))
    # The flush thread cannot take anything out while this is held.
    with recorder._writing:  # noqa: SLF001
        recorder._thread = recorder  # type: ignore[assignment]  # noqa: SLF001 - awake, without a thread
        for n in range(25):
            recorder.keep(span(str(n)))
        assert len(recorder.lines) == 10
    recorder.close()

    (path,) = tmp_path.iterdir()
    file = read_span_file(path)
    assert [line.n for line in file.spans] == [str(n) for n in range(10)]
    assert (file.lost_lines, file.lost[0].why) == (15, "the buffer was full")


def test_a_forked_child_writes_a_file_of_its_own_and_nothing_twice(recording: Recording) -> None:
    code, errors = recording.run_program(
        """
        with record.stage("before"):
            pass
        with record.stage("open across the fork"):
            pid = os.fork()
        with record.stage("child" if pid == 0 else "parent"):
            pass
        record.stop()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        """
    )

    assert (code, errors) == (0, "")
    child, parent = sorted(recording.files(), key=lambda file: file.header.parent_pid is None)
    assert [line.n for line in parent.spans] == ["before", "open across the fork", "parent"]
    assert [line.n for line in child.spans] == ["child"]
    assert child.header.parent_pid == parent.header.pid


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_are_recorded_to_their_end(
    method: str, recording: Recording, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import multiprocessing
from longpole import record

def work():
    with record.stage("child"):
        pass

if __name__ == "__main__":
    record.start({str(recording.folder)!r})
    with record.stage("parent"):
        pass
    child = multiprocessing.get_context({method!r}).Process(target=work)
    child.start()
    child.join()
""",
        encoding="utf-8",
    )
    code, errors = recording.run_program(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")

    assert (code, errors) == (0, "")
    assert sorted(file.spans[0].n for file in recording.files()) == ["child", "parent"]
    assert all(file.close is not None for file in recording.files())


def test_a_killed_process_leaves_everything_up_to_its_last_flush(recording: Recording) -> None:
    program = recording.start_program(
        """
        n = 0
        while True:
            with record.unit(n):
                time.sleep(0.0005)
            n += 1
        """
    )
    wait_for(lambda: recording.folder.exists() and any(f.units for f in recording.files()), "a first flush")
    program.send_signal(signal.SIGKILL)
    program.communicate()

    (file,) = recording.files()
    assert program.returncode == -signal.SIGKILL
    assert [unit.n for unit in file.units] == [f"step {n}" for n in range(len(file.units))]
    assert (file.damaged_lines, file.close) == (0, None)


def test_a_terminated_process_dies_of_the_signal_as_it_would_without(recording: Recording) -> None:
    program = recording.start_program(
        """
        with record.stage("a"):
            pass
        record.flush()
        time.sleep(60)
        """
    )
    wait_for(lambda: recording.folder.exists() and any(f.spans for f in recording.files()), "a flush")
    program.terminate()
    program.communicate()

    assert program.returncode == -signal.SIGTERM


def test_a_full_disk_is_said_once_and_the_program_goes_on(recording: Recording) -> None:
    """Lines that are in the file are whole, and those that are not are counted once there is room again."""
    code, errors = recording.run_program(
        """
        import resource
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        with record.stage("first"):
            pass
        record.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
        for _ in range(3):
            for _ in range(100):
                with record.stage("lost"):
                    pass
            record.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        with record.stage("last"):
            pass
        print("done")
        """
    )

    assert code == 0
    assert errors.count("cannot write spans") == 1
    assert errors.count("\n") == 1
    (file,) = recording.files()
    assert (file.damaged_lines, file.cut_at_byte) == (0, None)
    names = [line.n for line in file.spans]
    assert (names[0], names[-1]) == ("first", "last")
    assert names.count("lost") + file.lost_lines == 300


def test_a_device_that_is_full_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("no /dev/full here")
    recorder = Recorder(Options(str(tmp_path)))
    writer = recorder._writer  # noqa: SLF001
    writer._file = os.open("/dev/full", os.O_WRONLY)  # noqa: SLF001

    assert [writer.write([span("a")]), writer.write([span("b")])] == [False, False]
    assert sum(writer.lost.values()) == 2
    assert capsys.readouterr().err.count("No space left") == 1
    writer.close()


def test_a_folder_that_cannot_be_made_is_said_once(recording: Recording, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    code, errors = recording.run_program(
        f"""
        record.start({str(tmp_path / "file" / "spans")!r})
        for _ in range(3):
            with record.stage("a"):
                pass
            record.flush()
        """
    )

    assert code == 0
    assert errors.count("longpole.record: cannot write spans") == 1


def test_the_variable_switches_it_on(recording: Recording, tmp_path: Path) -> None:
    code, errors = recording.run_program(
        """
        import subprocess, sys
        record.stop()
        os.environ["LONGPOLE_RECORD"] = os.environ["WHERE"]
        text = "from longpole import record\\nwith record.stage('a'): pass"
        subprocess.run([sys.executable, "-c", text], check=True)
        """,
        WHERE=str(tmp_path / "there"),
        RANK="3",
        WORLD_SIZE="8",
        LOCAL_RANK="1",
    )

    assert (code, errors) == (0, "")
    (path,) = (tmp_path / "there").iterdir()
    file = read_span_file(path)
    assert (file.rank, file.world_size, file.local_rank) == (3, 8, 1)
    assert path.name.startswith("rank3-")


def test_a_header_tells_no_arguments_and_no_variables(recording: Recording) -> None:
    code, _ = recording.run_program(
        """
        import sys
        sys.argv = ["/home/me/private/train.py", "--token=hunter2"]
        with record.stage("a"):
            pass
        """,
        API_KEY="hunter3",
    )

    (path,) = recording.folder.iterdir()
    text = path.read_text(encoding="utf-8")
    assert code == 0
    assert '"program":"train.py"' in text
    assert "hunter" not in text
    assert "private" not in text


def test_recording_loads_neither_numpy_nor_polars_nor_torch(recording: Recording) -> None:
    code, errors = recording.run_program(
        """
        import sys
        with record.stage("a"):
            pass
        record.stop()
        sys.exit(", ".join({"numpy", "polars", "rich", "scipy", "torch", "typer"} & set(sys.modules)) or 0)
        """
    )

    assert (code, errors) == (0, "")
