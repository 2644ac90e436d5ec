"""What breaks trace files: seeded changes to their bytes, to their events, and to the archive around them."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from typing import TYPE_CHECKING, Any, Final

import zstandard

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Bytes = Callable[[bytes, random.Random], bytes]
    Events = Callable[[list[Any], random.Random], list[Any]]

HOSTILE_NAMES: Final = (
    "\x1b[2J\x1b[31mred\x07",
    "\u202egnp.exe\u2066",
    "\x00nul\x00",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\u2028line\u2029paragraph\x85next",
    "\ud800 alone",
    "n" * 1_000_000,
    "ProfilerStep#99999999999999999999",
    "ProfilerStep#-1",
    "ProfilerStep#",
    "../../../etc/passwd",
    "%s%n{0}{}",
    "a~1b/c~0d",
    "=cmd|' /C calc'!A0",
    "",
    "\ufeff\ufffe\uffff",
    "[TP00] 0",
)
ODD_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    "",
    "x",
    "12.5",
    "-0",
    "1e400",
    "nan",
    [],
    [[[]]],
    {},
    {"a": {"b": None}},
    -1,
    0,
    1,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    10**30,
    -(2**63),
    -(10**25),
    0.1,
    -0.0,
    1e-30,
    1e18,
    1e300,
    -1e300,
    float("nan"),
    float("inf"),
    float("-inf"),
)
FIELDS: Final = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "bp")
ARGUMENTS: Final = (
    "correlation",
    "External id",
    "stream",
    "device",
    "bytes",
    "Input Dims",
    "Fwd thread id",
    "Call stack",
    "Collective name",
    "Process Group Ranks",
    "Group size",
    "dtype",
    "Seq",
    "name",
    "labels",
    "Stream Id",
    "Task Type",
    "finished",
)
CATEGORIES: Final = (
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cuda_runtime",
    "cpu_op",
    "user_annotation",
    "python_function",
    "cuda_sync",
    "gpu_user_annotation",
    "overhead",
    "Trace",
    "Kernel",
    "nonsense",
    "",
)
HEADER_FIELDS: Final = (
    "schemaVersion",
    "distributedInfo",
    "deviceProperties",
    "baseTimeNanoseconds",
    "displayTimeUnit",
    "traceName",
    "host_name",
    "metadata",
)


# ---------------------------------------------------------------------------------------------------- bytes


def cut(data: bytes, rng: random.Random) -> bytes:
    """Stop anywhere."""
    return data[: rng.randrange(1, len(data))]


def cut_front(data: bytes, rng: random.Random) -> bytes:
    """Begin anywhere."""
    return data[rng.randrange(len(data)) :]


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    """Flip some bits."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 3, 30, 300))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def double_stretch(data: bytes, rng: random.Random) -> bytes:
    """Write a stretch twice."""
    low, high = _stretch(data, rng)
    return data[:high] + data[low:high] + data[high:]


def drop_stretch(data: bytes, rng: random.Random) -> bytes:
    """Leave a stretch out."""
    low, high = _stretch(data, rng)
    return data[:low] + data[high:]


def zero_stretch(data: bytes, rng: random.Random) -> bytes:
    """Fill a stretch with zeros, as a file system does after a crash."""
    low, high = _stretch(data, rng)
    return data[:low] + bytes(high - low) + data[high:]


def insert_bytes(data: bytes, rng: random.Random) -> bytes:
    """Put something in between."""
    at = rng.randrange(len(data))
    what = rng.choice(
        (
            b"\0",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b'"',
            b"\\",
            b"\xff\xfe",
            b"\x1b[31m",
            b"NaN",
            b"...",
            b'{"ph":"X"',
            b"]}",
        )
    )
    return data[:at] + what * rng.choice((1, 1, 1, 5, 2000)) + data[at:]


def swap_stretches(data: bytes, rng: random.Random) -> bytes:
    """Exchange two stretches."""
    low, high = _stretch(data, rng)
    other = rng.randrange(len(data))
    middle = data[low:high]
    rest = data[:low] + data[high:]
    return rest[:other] + middle + rest[other:]


def change_digits(data: bytes, rng: random.Random) -> bytes:
    """Change digits only, so that the text stays valid."""
    changed = bytearray(data)
    places = [at for at, byte in enumerate(changed) if byte in b"0123456789"]
    for _ in range(min(len(places), rng.choice((1, 10, 100)))):
        changed[rng.choice(places)] = rng.choice(b"0123456789")
    return bytes(changed)


def overwrite_with_itself(data: bytes, rng: random.Random) -> bytes:
    """Overwrite a stretch with another one of the file, as a second writer does."""
    low, high = _stretch(data, rng)
    source = rng.randrange(len(data))
    return data[:low] + data[source : source + high - low] + data[high:]


def glue(data: bytes, rng: random.Random) -> bytes:
    """Put documents one behind the other."""
    between = rng.choice((b"", b"\n", b",", b"\0\0", b" junk "))
    return between.join([data] * rng.choice((2, 3)))


def reencode(data: bytes, rng: random.Random) -> bytes:
    """Write in another encoding, with or without a byte order mark."""
    text = data.decode("utf-8", "replace")
    encoding = rng.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"))
    return text.encode(encoding, "replace")


def nest(data: bytes, rng: random.Random) -> bytes:
    """Put something nested very deeply into the middle."""
    at = data.find(b'"args": {') + 9
    depth = rng.choice((50, 500, 5_000, 100_000))
    inner = rng.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth))
    return data[:at] + b'"deep": ' + inner + b", " + data[at:]


def change_line_ends(data: bytes, rng: random.Random) -> bytes:
    """Use other line ends, or none."""
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"", b"\n\n\n")))


def _stretch(data: bytes, rng: random.Random) -> tuple[int, int]:
    low = rng.randrange(len(data))
    return low, min(low + rng.choice((1, 2, 10, 100, 1000, 10_000)), len(data))


BYTES: Final[tuple[Bytes, ...]] = (
    cut,
    cut_front,
    flip_bits,
    double_stretch,
    drop_stretch,
    zero_stretch,
    insert_bytes,
    swap_stretches,
    change_digits,
    overwrite_with_itself,
    glue,
    reencode,
    nest,
    change_line_ends,
)


# --------------------------------------------------------------------------------------------------- events


def retype(events: list[Any], rng: random.Random) -> list[Any]:
    """Give fields values of other types."""
    for _ in range(rng.choice((1, 5, 50))):
        event = rng.choice(events)
        if isinstance(event, dict):
            event[rng.choice(FIELDS)] = rng.choice(ODD_VALUES)
    return events


def retype_everywhere(events: list[Any], rng: random.Random) -> list[Any]:
    """Give one field the same odd value in every event, or an odd one to each."""
    field, value = rng.choice(FIELDS), rng.choice(ODD_VALUES)
    alike = rng.random() < 0.5
    for event in events:
        if isinstance(event, dict):
            event[field] = value if alike else rng.choice(ODD_VALUES)
    return events


def retype_arguments(events: list[Any], rng: random.Random) -> list[Any]:
    """Give arguments values of other types."""
    for _ in range(rng.choice((1, 10, 100))):
        event = rng.choice(events)
        if isinstance(event, dict) and isinstance(event.get("args"), dict):
            event["args"][rng.choice(ARGUMENTS)] = rng.choice(ODD_VALUES)
    return events


def drop_fields(events: list[Any], rng: random.Random) -> list[Any]:
    """Leave fields out."""
    for _ in range(rng.choice((1, 10, 100))):
        event = rng.choice(events)
        if isinstance(event, dict):
            event.pop(rng.choice(FIELDS), None)
    return events


def rename(events: list[Any], rng: random.Random) -> list[Any]:
    """Give events hostile names."""
    for _ in range(rng.choice((1, 10))):
        event = rng.choice(events)
        if isinstance(event, dict):
            event["name"] = rng.choice(HOSTILE_NAMES)
            if isinstance(event.get("args"), dict):
                event["args"]["name"] = rng.choice(HOSTILE_NAMES)
    return events


def recategorise(events: list[Any], rng: random.Random) -> list[Any]:
    """Give events other categories."""
    for event in events:
        if isinstance(event, dict) and rng.random() < 0.3:
            event["cat"] = rng.choice(CATEGORIES)
    return events


def shuffle(events: list[Any], rng: random.Random) -> list[Any]:
    """Bring the events out of order."""
    rng.shuffle(events)
    return events


def repeat(events: list[Any], rng: random.Random) -> list[Any]:
    """Write events several times."""
    return events + [rng.choice(events) for _ in range(rng.choice((1, 20, len(events))))]


def thin_out(events: list[Any], rng: random.Random) -> list[Any]:
    """Lose events."""
    share = rng.choice((0.01, 0.1, 0.5, 0.9))
    return [event for event in events if rng.random() < share]


def drop_a_kind(events: list[Any], rng: random.Random) -> list[Any]:
    """Lose all events of some category or phase."""
    field = rng.choice(("cat", "ph"))
    lost = rng.choice([event.get(field) for event in events if isinstance(event, dict)] or [None])
    return [event for event in events if not isinstance(event, dict) or event.get(field) != lost]


def move_in_time(events: list[Any], rng: random.Random) -> list[Any]:
    """Move events in time, some of them very far, and stretch some."""
    shift = rng.choice((-1e3, 1e3, -1e15, 1e15, 1e17, -1e18, 0.0005))
    for event in events:
        if not isinstance(event, dict) or rng.random() > 0.2:
            continue
        if isinstance(event.get("ts"), int | float):
            event["ts"] += shift
        if rng.random() < 0.2 and isinstance(event.get("dur"), int | float):
            event["dur"] *= rng.choice((-1, 0, 1e3, 1e9, 1e15))
    return events


def add_strangers(events: list[Any], rng: random.Random) -> list[Any]:
    """Put things between the events that are none."""
    for _ in range(rng.choice((1, 20))):
        events.insert(rng.randrange(len(events) + 1), rng.choice((*ODD_VALUES, *HOSTILE_NAMES[:6], {"ph": "B"}, {})))
    return events


def open_and_close(events: list[Any], rng: random.Random) -> list[Any]:
    """Turn complete events into begin or end events."""
    for event in events:
        if isinstance(event, dict) and event.get("ph") == "X" and rng.random() < 0.5:
            event["ph"] = rng.choice(("B", "E", "b", "e", "i", "C"))
    return events


EVENTS: Final[tuple[Events, ...]] = (
    retype,
    retype_everywhere,
    retype_arguments,
    drop_fields,
    rename,
    recategorise,
    shuffle,
    repeat,
    thin_out,
    drop_a_kind,
    move_in_time,
    add_strangers,
    open_and_close,
)


def change_events(data: bytes, rng: random.Random) -> bytes:
    """Change the events of a sound trace, and now and then a field of its header."""
    document = json.loads(data)
    is_list = isinstance(document, list)
    events = document if is_list else document["traceEvents"]
    for _ in range(rng.choice((1, 1, 2, 3))):
        if events:
            events = rng.choice(EVENTS)(events, rng)
    if is_list:
        return _dump(events)
    document["traceEvents"] = events
    if rng.random() < 0.3:
        document[rng.choice(HEADER_FIELDS)] = rng.choice((*ODD_VALUES, *HOSTILE_NAMES, [{"id": 0, "name": 1}]))
    if rng.random() < 0.2:
        document["distributedInfo"] = {"rank": rng.choice(ODD_VALUES), "world_size": rng.choice(ODD_VALUES)}
    fields = list(document.items())
    rng.shuffle(fields)
    return _dump(dict(fields))


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


# -------------------------------------------------------------------------------------------------- archives


def pack_gzip(data: bytes, rng: random.Random) -> bytes:
    """Pack as gzip, in one member or several, with or without something behind."""
    places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 0, 1, 5))))
    parts = [data[low:high] for low, high in zip([0, *places], [*places, len(data)], strict=True)]
    packed = b"".join(gzip.compress(part, mtime=0) for part in parts)
    return packed + rng.choice((b"", b"", b"\0" * 512, b"garbage", b"\x1f\x8b"))


def pack_zstd(data: bytes, rng: random.Random) -> bytes:
    """Pack as zstd, with or without size, checksum and something behind."""
    has_size, has_checksum = rng.random() < 0.5, rng.random() < 0.5
    packed = zstandard.ZstdCompressor(write_content_size=has_size, write_checksum=has_checksum).compress(data)
    return packed + rng.choice((b"", b"", packed, b"garbage"))


def pack_zip(data: bytes, rng: random.Random) -> bytes:
    """Pack as a zip of one or more members, whose names may be hostile."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in rng.sample(("trace.json", "a/b/rank1.json", "../../rank2.json", "\x1b[31m.json", "C:\\x.json"), 2):
            archive.writestr(zipfile.ZipInfo(name), data)
            if rng.random() < 0.6:
                break
    return packed.getvalue()


def pack_twice(data: bytes, rng: random.Random) -> bytes:
    """Pack several times."""
    for _ in range(rng.choice((2, 3, 5))):
        data = gzip.compress(data, mtime=0)
    return data


ARCHIVES: Final[tuple[Bytes, ...]] = (pack_gzip, pack_zstd, pack_zip, pack_twice)
_DAMAGE: Final[tuple[Bytes, ...]] = (cut, flip_bits, drop_stretch, double_stretch, zero_stretch, overwrite_with_itself)


def mutate(data: bytes, rng: random.Random) -> tuple[bytes, list[str]]:
    """Return a changed file, and what was done to it."""
    done: list[str] = []
    if rng.random() < 0.5:
        try:
            data = change_events(data, rng)
            done.append("change_events")
        except (ValueError, KeyError, TypeError):
            done.append("not sound")
    if rng.random() < 0.6 or not done:
        for _ in range(rng.choice((1, 1, 2))):
            change = rng.choice(BYTES)
            data = change(data, rng) or b"\n"
            done.append(change.__name__)
    if rng.random() < 0.3:
        pack = rng.choice(ARCHIVES)
        data = pack(data, rng)
        done.append(pack.__name__)
        if rng.random() < 0.7:
            damage = rng.choice(_DAMAGE)
            data = damage(data, rng) or b"\n"
            done.append(damage.__name__)
    return data, done
