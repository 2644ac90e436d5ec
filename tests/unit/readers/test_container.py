"""Any container gives the same text, in bounded memory; damage costs only what is damaged."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import stat
import threading
import zipfile
from typing import TYPE_CHECKING

import pytest
import zstandard

from longpole.errors import InputError
from longpole.readers.container import list_members, open_stream, sniff_kind
from longpole.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longpole.readers.container import ContainerDamage

SETTINGS = Settings()
NOISE = random.Random(7)
TEXT = json.dumps([{"ph": "X", "name": NOISE.randbytes(12).hex(), "ts": i} for i in range(12_000)]).encode()


def zstd(text: bytes, *, checksum: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=checksum).compress(text)


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def read(path: Path, settings: Settings = SETTINGS, member: str | None = None) -> tuple[bytes, ContainerDamage | None]:
    with open_stream(path, settings, member=member) as stream:
        text = b"".join(stream.blocks())
        return text, stream.damage


CONTAINERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda text: text,
    "gzip": gzip.compress,
    "gzip of two members": lambda text: gzip.compress(text[:99_999]) + gzip.compress(text[99_999:]),
    "gzip with an empty member": lambda text: gzip.compress(b"") + gzip.compress(text),
    "gzip with zero padding": lambda text: gzip.compress(text) + bytes(5000),
    "gzip in gzip": lambda text: gzip.compress(gzip.compress(text)),
    "zstd": zstd,
    "zstd without a checksum": lambda text: zstd(text, checksum=False),
    "zstd of two frames": lambda text: zstd(text[:99_999]) + zstd(text[99_999:]),
    "zstd behind a skippable frame": lambda text: b"\x53\x2a\x4d\x18\x03\0\0\0abc" + zstd(text),
    "zip": lambda text: packed({"run/rank0.json": text}),
    "zip, stored": lambda text: packed({"rank0.json": text}, zipfile.ZIP_STORED),
    "zip of a gzip": lambda text: packed({"rank0.json.gz": gzip.compress(text)}),
    "zip with companions": lambda text: packed(
        {"README.md": b"# traces", "__MACOSX/._a.json": b"{", "a/": b"", ".x": b"{}", "a/t": text}
    ),
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("file_name", ["trace.json", "trace.json.gz", "trace"])
def test_content_decides_and_every_container_gives_the_same_text(tmp_path: Path, name: str, file_name: str) -> None:
    path = tmp_path / file_name
    path.write_bytes(CONTAINERS[name](TEXT))

    text, damage = read(path)

    assert text == TEXT
    assert damage is None


@pytest.mark.parametrize("name", ["plain", "gzip", "zstd", "zip"])
def test_the_kind_is_told_by_the_first_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "any"
    path.write_bytes(CONTAINERS[name](TEXT))

    with open_stream(path, SETTINGS) as stream:
        kinds = (stream.kind, sniff_kind(CONTAINERS[name](TEXT)[:4]))

    assert kinds == (name, name)


@pytest.mark.parametrize("name", ["plain", "gzip", "zstd", "zip"])
@pytest.mark.parametrize("block_bytes", [1000, len(TEXT), len(TEXT) // 2, 1 << 23])
def test_every_block_but_the_last_is_full(tmp_path: Path, name: str, block_bytes: int) -> None:
    path = tmp_path / "any"
    path.write_bytes(CONTAINERS[name](TEXT))

    with open_stream(path, SETTINGS) as stream:
        sizes = [len(block) for block in stream.blocks(block_bytes)]

    assert set(sizes[:-1]) <= {block_bytes}
    assert 0 < sizes[-1] <= block_bytes
    assert sum(sizes) == len(TEXT)


# ----------------------------------------------------------------------------------------------- pipes


@pytest.mark.parametrize("name", ["plain", "gzip", "zstd", "zip"])
def test_a_pipe_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(CONTAINERS[name](TEXT),))
    writer.start()

    text, damage = read(path)
    writer.join()

    assert (text, damage) == (TEXT, None)


def test_a_pipe_is_listed_without_being_used_up(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    members = list_members(path, SETTINGS)

    assert [(member.name, member.kind) for member in members] == [("pipe", "plain")]


# ---------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize("pack", [gzip.compress, zstd, lambda text: packed({"a.json": text})])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_cut_archive_gives_what_it_still_holds(tmp_path: Path, pack: Callable[[bytes], bytes], share: float) -> None:
    path = tmp_path / "cut"
    stored = pack(TEXT)
    path.write_bytes(stored[: int(len(stored) * share)])

    text, damage = read(path)

    assert TEXT.startswith(text)
    assert len(text) > (share - 0.1) * len(TEXT) - (1 << 17)
    assert damage is not None
    assert (damage.code, damage.decoded_byte) == ("container.cut", len(text))
    assert damage.stored_byte <= int(len(stored) * share)


def test_a_cut_inside_the_checksum_costs_no_text(tmp_path: Path) -> None:
    for name, stored in (("gzip", gzip.compress(TEXT)), ("zstd", zstd(TEXT))):
        path = tmp_path / name
        path.write_bytes(stored[:-2])

        text, damage = read(path)

        assert text == TEXT
        assert damage is not None
        assert damage.code == "container.cut"


def test_a_wrong_checksum_costs_no_text(tmp_path: Path) -> None:
    gz = gzip.compress(TEXT)
    zs = zstd(TEXT)
    zipped = packed({"a.json": TEXT})
    crc = zipped.rindex(b"PK\x01\x02") + 16  # APPNOTE.TXT 4.3.12
    stored = {
        "gzip": gz[:-8] + b"\xde\xad\xbe\xef" + gz[-4:],
        "gzip, first member": gz[:-8] + b"\xde\xad\xbe\xef" + gz[-4:] + gzip.compress(b" "),
        "zstd": zs[:-4] + b"\xde\xad\xbe\xef",
        "zip": zipped[:crc] + b"\xde\xad\xbe\xef" + zipped[crc + 4 :],
    }
    for name, content in stored.items():
        path = tmp_path / name
        path.write_bytes(content)

        text, damage = read(path)

        assert text.rstrip() == TEXT, name
        assert damage is not None, name
        assert damage.code == "container.corrupt", name


def test_text_before_a_corrupt_place_is_kept(tmp_path: Path) -> None:
    """A deflate decoder notices damage late, or only by the checksum; what stands before it is right in any case."""
    for pack in (gzip.compress, zstd):
        for at_share in (0.3, 0.6):
            stored = bytearray(pack(TEXT))
            at = int(len(stored) * at_share)
            stored[at : at + 400] = NOISE.randbytes(400)
            path = tmp_path / "corrupt"
            path.write_bytes(stored)

            text, damage = read(path)

            assert damage is not None
            assert damage.code == "container.corrupt"
            whole = int(len(TEXT) * (at_share - 0.1)) - (1 << 17 if pack is zstd else 1 << 14)
            assert text[:whole] == TEXT[: max(whole, 0)]


def test_bytes_behind_an_archive_are_left_out_and_reported(tmp_path: Path) -> None:
    for pack in (gzip.compress, zstd):
        stored = pack(TEXT)
        path = tmp_path / "trailing"
        path.write_bytes(stored + bytes(100) + b"and more")

        text, damage = read(path)

        assert text == TEXT
        assert damage is not None
        assert (damage.code, damage.stored_byte) == ("container.corrupt", len(stored) + 100)


def test_a_damaged_archive_within_a_zip_is_placed_in_the_zip(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    inner = gzip.compress(TEXT)
    path.write_bytes(packed({"a.json.gz": inner[: len(inner) // 2]}))

    text, damage = read(path)

    assert TEXT.startswith(text)
    assert damage is not None
    assert damage.code == "container.cut"
    assert damage.stored_byte <= path.stat().st_size


def test_a_few_bytes_before_a_damage_are_kept(tmp_path: Path) -> None:
    short = gzip.compress(b'[{"ph": "X"}')
    path = tmp_path / "short"
    path.write_bytes(short[:-9])

    text, damage = read(path)

    assert text.startswith(b'[{"ph": "X')
    assert damage is not None
    assert damage.code == "container.cut"


def test_a_gzip_header_with_all_its_fields_is_skipped(tmp_path: Path) -> None:
    plain = gzip.compress(TEXT)
    extra = b"\x04\x00abcd" + b"n" * 200 + b"\0" + b"comment\0" + b"\x12\x34"
    path = tmp_path / "fields"
    path.write_bytes(plain[:3] + b"\x1e" + plain[4:10] + extra + plain[10:])

    text, damage = read(path)

    assert (text, damage) == (TEXT, None)


# ---------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        zstd,
        lambda text: packed({"a.json": text}),
        lambda text: gzip.compress(gzip.compress(text)),
        lambda text: packed({"a.json.gz": gzip.compress(text)}),
    ],
    ids=["gzip", "zstd", "zip", "gzip in gzip", "gzip in zip"],
)
def test_a_bomb_stops_at_the_stated_bound(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    settings = Settings(expansion_max_ratio=20, expansion_free_bytes=1 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"[" + bytes(50 << 20)))
    sizes: list[int] = []

    with open_stream(path, settings) as stream, pytest.raises(InputError, match=r"20 times .* 1,048,576 bytes"):
        sizes.extend(len(block) for block in stream.blocks(1 << 16))

    assert sum(sizes) < 8 << 20


def test_a_zip_is_bounded_whatever_size_it_declares(tmp_path: Path) -> None:
    """The declared size of the content is overwritten by 5 in both places."""
    settings = Settings(expansion_max_ratio=20, expansion_free_bytes=1 << 20)
    stored = bytearray(packed({"a.json": b"[" + bytes(50 << 20)}))
    stored[22:26] = b"\5\0\0\0"
    size_at = stored.rindex(b"PK\x01\x02") + 24
    stored[size_at : size_at + 4] = b"\5\0\0\0"
    path = tmp_path / "liar.zip"
    path.write_bytes(stored)

    with open_stream(path, settings) as stream, pytest.raises(InputError, match="beyond the bound"):
        list(stream.blocks(1 << 16))


def test_a_small_archive_may_grow_by_any_ratio(tmp_path: Path) -> None:
    path = tmp_path / "dense"
    path.write_bytes(gzip.compress(b"[" + b" " * (5 << 20) + b"]"))

    text, damage = read(path)

    assert (len(text), damage) == ((5 << 20) + 2, None)


# ------------------------------------------------------------------------------------------------- zip


def test_each_json_member_of_a_zip_is_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "job.zip"
    path.write_bytes(
        packed({"job/../../rank0.json": b'{"a": 0}', "notes.txt": b"hello", "rank1": b"\n [1]", "é.json": b"[]"})
    )

    members = list_members(path, SETTINGS)
    texts = [read(path, member=member.name)[0] for member in members]

    assert [member.name for member in members] == ["job/../../rank0.json", "rank1", "é.json"]
    assert {member.kind for member in members} == {"zip"}
    assert texts == [b'{"a": 0}', b"\n [1]", b"[]"]


def test_a_zip_with_several_json_members_is_not_opened_as_one(tmp_path: Path) -> None:
    path = tmp_path / "job.zip"
    path.write_bytes(packed({"rank0.json": b"[]", "rank1.json": b"[]"}))

    with pytest.raises(InputError, match=r"found 2 \('rank0.json', 'rank1.json'\)"):
        open_stream(path, SETTINGS)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (packed({}), "found nothing"),
        (packed({"a.txt": b"hello", "b.txt": b"there"}), "'a.txt', 'b.txt'"),
    ],
)
def test_a_zip_without_json_is_refused(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(content)

    with pytest.raises(InputError, match=found):
        open_stream(path, SETTINGS)


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    """Bit 0 of the flags, here set in both headers of the member, says that it is encrypted."""
    stored = bytearray(packed({"a.json": b"[]"}))
    stored[6] |= 1
    stored[stored.rindex(b"PK\x01\x02") + 8] |= 1
    path = tmp_path / "a.zip"
    path.write_bytes(stored)

    with pytest.raises(InputError, match="encrypted"):
        open_stream(path, SETTINGS)


def test_a_member_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(packed({"a.json": b"[]"}))

    with pytest.raises(InputError, match=r"'b\.json'"):
        open_stream(path, SETTINGS, member="b.json")


# ------------------------------------------------------------------------------------------- encodings


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("pack", [lambda text: text, gzip.compress])
def test_text_of_another_encoding_becomes_utf8(tmp_path: Path, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    text = '[{"name": "größer 😀"}]' * 5000
    path = tmp_path / "encoded"
    path.write_bytes(pack(text.encode(encoding)))

    assert read(path) == (text.encode(), None)


def test_the_size_of_a_byte_order_mark_is_told(tmp_path: Path) -> None:
    path = tmp_path / "marked"
    path.write_bytes(b"\xef\xbb\xbf[]")

    with open_stream(path, SETTINGS) as stream:
        blocks = list(stream.blocks())

    assert (blocks, stream.mark_bytes) == ([b"[]"], 3)


def test_bytes_that_utf16_does_not_allow_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "lone"
    path.write_bytes('["'.encode("utf-16") + b"\x00\xd8" + '"]'.encode("utf-16-le") + b"x")

    text, _ = read(path)

    assert text.decode() == '["�"]�'


# -------------------------------------------------------------------------------------------- refusals


def _folder(path: Path) -> None:
    path.mkdir()


def _nothing(path: Path) -> None:
    del path


REFUSALS: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (_folder, "found a folder"),
    "missing": (_nothing, "found nothing"),
    "empty": (lambda path: path.write_bytes(b""), "found an empty file"),
    "empty gzip": (lambda path: path.write_bytes(gzip.compress(b"")), "found nothing in it"),
    "cut gzip header": (lambda path: path.write_bytes(b"\x1f\x8b\x08"), "stops inside a gzip header"),
    "only a mark": (lambda path: path.write_bytes(b"\xef\xbb\xbf"), "found nothing in it"),
    "xz": (lambda path: path.write_bytes(b"\xfd7zXZ\0" + bytes(50)), "found an archive of xz"),
    "bzip2 in gzip": (lambda path: path.write_bytes(gzip.compress(b"BZh91AY")), "found an archive of bzip2"),
    "tar in gzip": (lambda path: path.write_bytes(gzip.compress(b"a" * 257 + b"ustar")), "found a tar archive"),
    "zip in gzip": (lambda path: path.write_bytes(gzip.compress(packed({"a": b"[]"}))), "found a zip inside a gzip"),
    "five archives": (
        lambda path: path.write_bytes(gzip.compress(gzip.compress(gzip.compress(gzip.compress(zstd(TEXT)))))),
        "one inside the other",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    make, found = REFUSALS[name]
    path = tmp_path / "trace.json"
    make(path)

    with pytest.raises(InputError, match=found) as refusal:
        read(path)

    assert str(refusal.value).startswith(str(path))
    assert "\n" not in str(refusal.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b"[]")
    path.chmod(stat.S_IWUSR)

    with pytest.raises(InputError, match="no permission"):
        open_stream(path, SETTINGS)


def test_a_zstd_frame_that_needs_a_dictionary_is_refused(tmp_path: Path) -> None:
    dictionary = zstandard.train_dictionary(4096, [b'{"ph": "X", "name": "%d"}' % i * 3 for i in range(2000)])
    path = tmp_path / "trace.zst"
    path.write_bytes(zstandard.ZstdCompressor(dict_data=dictionary).compress(TEXT))

    with pytest.raises(InputError, match="needs dictionary"):
        read(path)


def test_a_zstd_window_beyond_the_bound_is_refused(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, write_content_size=False)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "trace.zst"
    path.write_bytes(packer.compress(TEXT) + packer.flush())

    with pytest.raises(InputError, match="window of 1,073,741,824 bytes"):
        read(path)
