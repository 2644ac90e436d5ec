"""Digests on disk: found again, never trusted when damaged, bounded, safe when two processes race (DESIGN §4)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from longpole.digest.cache import Cache, entry_key
from tests.build import LOADER, WORKER_LOADER, Script, measure

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.digest.rank_digest import RankDigest


def _digest(rank: int = 0) -> RankDigest:
    script = Script(rank=rank)
    script.step(0, 0, 100)
    script.span(LOADER, 0, 20)
    script.span(WORKER_LOADER, 20, 30)
    script.op("aten::linear", 30, 40, shapes="[[4, 8]]")
    script.kernel(50, 60, script.launch(32, 35))
    script.copy("htod", 70, 80)
    return measure(script)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    """Every field, unknown ones too."""
    cache = Cache(tmp_path)

    cache.write("key", [_digest(0), _digest(1)])

    assert cache.read("key") == [_digest(0), _digest(1)]


def test_a_record_without_a_device_is_read_again(tmp_path: Path) -> None:
    script = Script()
    script.step(0, 0, 100)
    cache = Cache(tmp_path)

    cache.write("key", [measure(script)])

    assert cache.read("key") == [measure(script)]


def test_nothing_is_found_under_another_key(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "not there yet")

    assert cache.read("key") is None

    cache.write("key", [_digest()])

    assert cache.read("other") is None


@pytest.mark.parametrize("damage", [b"", b"\xc1", b"\x93\x01", b"not msgpack at all"])
def test_a_damaged_entry_is_no_entry(tmp_path: Path, damage: bytes) -> None:
    cache = Cache(tmp_path)
    cache.write("key", [_digest()])
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(damage)

    assert cache.read("key") is None


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_an_entry_that_was_cut_is_no_entry(tmp_path: Path, kept: float) -> None:
    cache = Cache(tmp_path)
    cache.write("key", [_digest()])
    (entry,) = tmp_path.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(whole[: int(kept * len(whole))])

    assert cache.read("key") is None


def test_an_entry_of_another_version_is_no_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    other = _digest()
    other.version += 1
    cache.write("key", [other])

    assert cache.read("key") is None


def test_a_damaged_entry_is_replaced(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.write("key", [_digest()])
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(b"\xc1")

    cache.write("key", [_digest()])

    assert cache.read("key") == [_digest()]


def write_often(folder: Path, rank: int, count: int) -> None:
    cache = Cache(folder)
    digest = _digest(rank)
    for _ in range(count):
        cache.write("key", [digest])
        found = cache.read("key")
        assert found is not None
        assert found[0].rank in (0, 1)


_OTHER_PROCESS = """
import sys
from pathlib import Path
from tests.unit.digest.test_cache import write_often
print("ready", flush=True)
write_often(Path(sys.argv[1]), 1, 200)
"""


def test_two_processes_that_race_leave_a_whole_entry(tmp_path: Path, root: Path) -> None:
    """Each reads after every write, and finds its own entry or the other's, never half of one."""
    command = [sys.executable, "-c", _OTHER_PROCESS, str(tmp_path)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        write_often(tmp_path, 0, 200)
        other.communicate(timeout=60)

    assert other.returncode == 0
    assert Cache(tmp_path).size().n_entries == 1


def test_the_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    Cache(tmp_path).write("old", [_digest()])
    size_bytes = Cache(tmp_path).size().size_bytes
    cache = Cache(tmp_path, max_bytes=2 * size_bytes)
    cache.write("used", [_digest()])
    for place, key in enumerate(("old", "used")):
        os.utime(tmp_path / f"{key}.digest", (1000 + place, 1000 + place))
    os.utime(tmp_path / "used.digest", (900, 900))
    assert cache.read("used") is not None

    cache.write("new", [_digest()])

    assert [cache.read(key) is not None for key in ("old", "used", "new")] == [False, True, True]
    assert cache.size().size_bytes <= 2 * size_bytes


def test_an_entry_larger_than_the_bound_does_not_stay(tmp_path: Path) -> None:
    cache = Cache(tmp_path, max_bytes=10)

    cache.write("key", [_digest()])

    assert cache.size().size_bytes <= 10


def test_what_another_process_left_half_written_counts_and_goes(tmp_path: Path) -> None:
    (tmp_path / "abc.part").write_bytes(b"x" * 1000)
    (tmp_path / "notes.txt").write_bytes(b"not ours")
    cache = Cache(tmp_path)

    assert cache.size().size_bytes == 1000
    assert cache.clear() == 1000
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("a file where the folder should be", encoding="utf-8")
    cache = Cache(in_the_way)

    cache.write("key", [_digest()])

    assert cache.read("key") is None
    assert cache.size().n_entries == 0
    assert cache.clear() == 0


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"LONGPOLE_CACHE": "/a/b"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/longpole"),
        ({"HOME": "/home/me"}, "/home/me/.cache/longpole"),
    ],
)
def test_the_users_cache_is_where_the_system_says(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str
) -> None:
    for name in ("LONGPOLE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert str(Cache.default().folder) == folder


# --- keys ---------------------------------------------------------------------------------------------------------


def _key(path: Path, *, member: str = "", context: str = "", whole_file: bool = False) -> str | None:
    return entry_key(path, member, context, whole_file=whole_file)


def _file(tmp_path: Path, content: bytes, name: str = "trace.json") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    os.utime(path, ns=(10**18, 10**18))
    return path


def test_the_key_of_an_unchanged_file_is_stable(tmp_path: Path) -> None:
    path = _file(tmp_path, b"abc")

    assert _key(path) == _key(path)


def test_content_time_member_and_context_change_the_key(tmp_path: Path) -> None:
    path = _file(tmp_path, b"abc")
    keys = {_key(path), _key(path, member="rank0.json"), _key(path, context="--step x")}

    _file(tmp_path, b"abd")
    keys.add(_key(path))
    os.utime(path, ns=(10**18 + 1, 10**18 + 1))
    keys.add(_key(path))

    assert len(keys) == 5


def test_a_change_in_the_first_or_last_mebibyte_of_a_large_file_is_seen(tmp_path: Path) -> None:
    content = bytearray(4 << 20)
    keys = {_key(_file(tmp_path, bytes(content)))}
    for place in (0, (1 << 20) - 1, (3 << 20), (4 << 20) - 1):
        changed = bytearray(content)
        changed[place] = 1
        keys.add(_key(_file(tmp_path, bytes(changed))))

    assert len(keys) == 5


def test_only_a_hash_of_all_bytes_sees_every_change(tmp_path: Path) -> None:
    """Between two sampled blocks of a large file of unchanged size and time."""
    content = bytearray(8 << 20)
    path = _file(tmp_path, bytes(content))
    sampled, whole = _key(path), _key(path, whole_file=True)
    content[(1 << 20) + 5000] = 1
    _file(tmp_path, bytes(content))

    assert _key(path) == sampled
    assert _key(path, whole_file=True) != whole


def test_a_pipe_has_no_key(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    assert _key(path) is None
