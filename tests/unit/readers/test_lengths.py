"""Lengths of sequences in every form that they come in; what is none is named by its place."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.errors import InputError
from longpole.readers.lengths import read_lengths

if TYPE_CHECKING:
    from pathlib import Path

LENGTHS = [512, 2048, 96, 0]


def write(folder: Path, data: str | bytes) -> str:
    file = folder / "lengths"
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(file)


def as_npy(values: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(values))
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        "512\n2048\n96\n0\n",
        "512 2048 96 0",
        "512, 2048, 96, 0\n",
        "# lengths of the training set\n512 2048 # the first two\n\n96\n0\n",
        "512,2048,\n96,0,\n",
        "\ufeff512;2048;96;0",
        "[512, 2048, 96, 0]",
        json.dumps([{"id": k, "length": length} for k, length in enumerate(LENGTHS)]),
        "".join(json.dumps({"text": "x", "num_tokens": length}) + "\n" for length in LENGTHS),
        "".join(json.dumps({"input_ids": [1] * length}) + "\n\n" for length in LENGTHS),
        "id,tokens\n" + "".join(f"{k},{length}\n" for k, length in enumerate(LENGTHS)),
        as_npy(np.array(LENGTHS, np.int32)),
        as_npy(np.array(LENGTHS, np.uint64)),
    ],
)
def test_the_format_is_told_by_content(data: str | bytes, tmp_path: Path) -> None:
    assert read_lengths(write(tmp_path, data)) == LENGTHS


def test_a_key_or_column_is_named_where_none_is_usual(tmp_path: Path) -> None:
    objects = "".join(json.dumps({"n": length, "length": 1}) + "\n" for length in LENGTHS)
    table = "id,n\n" + "".join(f"{k},{length}\n" for k, length in enumerate(LENGTHS))

    assert read_lengths(write(tmp_path, objects), "n") == LENGTHS
    assert read_lengths(write(tmp_path, table), "n") == LENGTHS


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"3 4")))

    assert read_lengths("-") == [3, 4]


@settings(max_examples=20)
@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_what_is_written_is_read(lengths: list[int]) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for data in ("\n".join(map(str, lengths)), json.dumps(lengths), as_npy(lengths)):
            assert read_lengths(write(Path(folder), data)) == lengths


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("1\n-2\nx\n3.5\n", "3 values that are no length:\n  line 2: expected at least 0 tokens, found -2\n  line 3"),
        ("1 2e3", "1 value that is no length:\n  line 1: expected a whole number of tokens, found '2e3'"),
        ("[1, true]", "element 1: expected a whole number of tokens, found True"),
        ("[1, 9999999999999]", "expected tokens of one sequence, found 9999999999999"),
        ("[1, null]", "element 1: expected a whole number of tokens, found None"),
        ('[1, {"length": 3}]', "element 1: expected a whole number"),
        ("[1, 2", "is not JSON"),
        ('{"length": 3}\n{"length": \n', "line 2: is not JSON"),
        ('{"length": 3}\n{"tokenz": 4}\n', "line 2: which of 'tokenz' holds the lengths is not clear"),
        ('{"text": 3}', "which of 'text' holds the lengths is not clear. Name it with --key"),
        ('{"length": 3, "input_ids": [1]}', "which of 'length', 'input_ids' holds the lengths is not clear"),
        ("# ours\n\nid,tokens\n1,2\n\n3,x\n", "line 6: expected a whole number of tokens, found 'x'"),
        ("id,tokens\n1\n", "line 2: expected a whole number of tokens, found ''"),
        ("0,512\n1,96\n", "several numbers on every line and no header"),
        ("# nothing\n", "holds no lengths"),
        ("", "holds no lengths"),
        ("[]", "holds no lengths"),
        ("header\n", "holds the lengths is not clear"),
        ("id,tokens\n1," + "x" * 200_000 + "\n", "is no CSV: field larger than field limit"),
        ("x" * 200_000 + ",tokens\n1,2\n", "is no CSV: field larger than field limit"),
        ("9" * 40, "expected a whole number of tokens, found"),
        ("[" * 100_000, "is not JSON"),
        (
            as_npy([1])[:10] + as_npy([1])[10:].replace(b"(1,)", b"(9999999999999999,)"),
            "is no NumPy array that can be read",
        ),
        (b"\xff\xfe\x00", "is no text in UTF-8"),
        (b"\x93NUMPY\x01", "is no NumPy array that can be read"),
        (as_npy([1.5]), "expected a NumPy array of whole numbers with one axis, found float64"),
        (as_npy([[1]]), "with one axis, found int64 of shape"),
        (as_npy([3, -1]), "element 1: expected at least 0 tokens, found -1"),
    ],
)
def test_what_is_no_length_is_named(data: str | bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_lengths(write(tmp_path, data))

    assert says in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_pickled_array_is_never_loaded(tmp_path: Path) -> None:
    out = io.BytesIO()
    np.save(out, np.array([{"a": 1}], dtype=object), allow_pickle=True)

    with pytest.raises(InputError, match="no NumPy array that can be read"):
        read_lengths(write(tmp_path, out.getvalue()))


def test_no_more_than_eight_mistakes_are_listed(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_lengths(write(tmp_path, "1\n" + "-1\n" * 12))

    assert str(caught.value).count("line ") == 8
    assert "… and 4 more" in str(caught.value)


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no 'n'; there are 'id', 'tokens'"):
        read_lengths(write(tmp_path, "id,tokens\n1,2\n"), "n")


def test_a_file_that_is_not_there_or_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_lengths(str(tmp_path / "none"))
    with pytest.raises(InputError, match="cannot be read"):
        read_lengths(str(tmp_path))
