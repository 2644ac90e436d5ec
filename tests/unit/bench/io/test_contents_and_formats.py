"""Content is random and known; every format brings every byte back; what differs is found and named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from longpole.bench.io.contents import TENSORS, divide, find_difference, make_content, touch
from longpole.bench.io.formats import FILE_OF, FORMATS, LIBRARIES_OF
from longpole.bench.io.reload import find_reload_failures

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 64 << 10


@pytest.fixture(params=sorted(FORMATS))
def form(request: pytest.FixtureRequest) -> str:
    for library in LIBRARIES_OF.get(request.param, ()):
        pytest.importorskip(library)
    return str(request.param)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others() -> None:
    one, again, other = make_content(SIZE, 42), make_content(SIZE, 42), make_content(SIZE, 43)

    assert one.blake2b() == again.blake2b() != other.blake2b()
    assert len(set(one.words.tolist())) == 256


def test_an_object_is_sixteen_equal_tensors_of_floats_in_order() -> None:
    content = make_content(SIZE, 1)
    tensors = content.tensors(SIZE // 2)

    assert len(tensors) == TENSORS
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype("float32")}
    assert b"".join(tensor.tobytes() for tensor in tensors.values()) == content.words[: SIZE // 2].tobytes()


def test_a_touch_reads_every_byte() -> None:
    part = np.zeros(SIZE, dtype=np.uint8)
    part[::8] = 1

    assert touch(divide(part)) == SIZE // 8


def test_a_format_brings_every_byte_back(form: str, tmp_path: Path) -> None:
    content = make_content(SIZE, 3)
    saver, loader = FORMATS[FILE_OF.get(form, form)](), FORMATS[form]()
    saver.save(tmp_path / "file", content.tensors(SIZE))
    loader.prepare_load(SIZE)

    loaded = loader.load(tmp_path / "file", SIZE)

    assert find_difference(loaded, content.tensors(SIZE)) == ""


def test_one_flipped_byte_is_found_and_placed(form: str, tmp_path: Path) -> None:
    content = make_content(SIZE, 3)
    saver, loader = FORMATS[FILE_OF.get(form, form)](), FORMATS[form]()
    saver.save(tmp_path / "file", content.tensors(SIZE))
    data = bytearray((tmp_path / "file").read_bytes())
    place = data.index(content.words[SIZE // 2 : SIZE // 2 + 64].tobytes()) + 5
    data[place] ^= 1
    (tmp_path / "file").write_bytes(data)
    loader.prepare_load(SIZE)

    try:
        says = find_difference(loader.load(tmp_path / "file", SIZE), content.tensors(SIZE))
    except OSError as error:  # a format may check its own sums
        says = str(error)

    assert "tensor_08: byte 5" in says or form in says


def test_a_short_file_cannot_look_right_by_what_was_in_the_buffer(tmp_path: Path) -> None:
    content, raw = make_content(SIZE, 3), FORMATS["raw"]()
    raw.save(tmp_path / "file", content.tensors(SIZE))
    raw.prepare_load(SIZE)
    raw.load(tmp_path / "file", SIZE)
    os.truncate(tmp_path / "file", SIZE - 1)
    raw.prepare_load(SIZE)

    assert "tensor_15" in find_difference(raw.load(tmp_path / "file", SIZE), content.tensors(SIZE))


def test_a_file_that_is_no_such_file_is_an_error_of_the_system(form: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"not one of ours")
    loader = FORMATS[form]()
    loader.prepare_load(SIZE)

    if form == "raw":
        assert find_difference(loader.load(tmp_path / "file", SIZE), make_content(SIZE, 1).tensors(SIZE))
        return
    with pytest.raises(OSError, match=r"\S"):
        loader.load(tmp_path / "file", SIZE)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tensors: tensors.pop("tensor_03"), "missing ['tensor_03']"),
        (lambda tensors: tensors.update(more=tensors["tensor_00"]), "not expected ['more']"),
        (lambda tensors: tensors.update(tensor_00=tensors["tensor_00"].view("int32")), "expected float32"),
        (lambda tensors: tensors.update(tensor_00=tensors["tensor_00"].reshape(2, -1)), "expected float32 (1024,)"),
    ],
)
def test_names_types_and_shapes_are_compared(change, says: str) -> None:  # type: ignore[no-untyped-def]
    content = make_content(SIZE, 3)
    found = content.tensors(SIZE)
    change(found)

    assert says in find_difference(found, content.tensors(SIZE))


def test_a_process_that_has_only_the_file_finds_a_flipped_byte(tmp_path: Path) -> None:
    content, raw = make_content(SIZE, 3), FORMATS["raw"]()
    for name in ("good", "bad"):
        raw.save(tmp_path / name, content.tensors(SIZE))
    with (tmp_path / "bad").open("r+b") as file:
        file.seek(100)
        byte = file.read(1)[0]
        file.seek(100)
        file.write(bytes([byte ^ 255]))

    failures = find_reload_failures(
        [("raw", tmp_path / "good"), ("raw", tmp_path / "bad")], content.tensors(SIZE), SIZE
    )

    assert failures == ["raw: another process finds other bytes in tensor_00"]
