"""From the bytes of a dump to what it says (formats.md A.1).

The form changed with nearly every release: a bare list of entries (2.2), a dictionary (2.3), one sequence number and
then two (2.4), JSON beside pickles, without stacks and with 0 for a time that is not known. What is missing is missing;
an entry that cannot be read costs itself.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from longpole.errors import InputError, NotATraceError
from longpole.readers.plain_pickle import looks_like_pickle, read_plain_pickle
from longpole.readers.rank_in_name import last_number_in_name
from longpole.readers.spelling import show_controls
from longpole.records.credentials import redact
from longpole.records.flight import FlightDump, FlightEntry, Frame, GroupKey

_HINT: Final = "Give the file as PyTorch wrote it"
_NUMBERS: Final = re.compile(r"\d{1,9}")
_PAIR: Final = re.compile(r"(send|recv) (\d{1,9})(->|<-)(\d{1,9})")
_BACKEND: Final = re.compile(r"^(\w{1,32}):")
_NAME_MAX: Final = 200
_FRAMES_MAX: Final = 64
_DIMENSIONS_MAX: Final = 32


def looks_like_dump(head: bytes) -> bool:
    """Tell whether unpacked bytes may begin a dump: a pickle, or JSON with a dump's keys."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if looks_like_pickle(head):
        return b"pg_config" in head or b"process_group" in head or b"profiling_name" in head or b"entries" in head
    is_json = text[:1] in (b"{", b"[")
    return is_json and (b'"pg_config"' in head or b'"collective_seq_id"' in head) and b'"traceEvents"' not in head


def read_dump(content: bytes, path: str) -> tuple[FlightDump, int]:
    """Read a dump.

    Args:
        content: The whole file, unpacked.
        path: As it was given; its name tells the rank where the dump does not.

    Returns:
        What it says, and how many of its entries could not be read.

    Raises:
        InputError: It is damaged, or names no rank.
        NotATraceError: It is no dump of a flight recorder.
    """
    found = _plain(content, path)
    told: dict[str, Any] = found if isinstance(found, dict) else {"entries": found}
    entries = told.get("entries", [])
    is_dump = isinstance(entries, list) and ("pg_config" in told or any(_is_entry(one) for one in entries[:64]))
    if not is_dump:
        raise NotATraceError.at(path, None, "no dump of a flight recorder: it has neither groups nor operations", _HINT)
    rank = _whole(told.get("rank"))
    from_name = rank is None
    if rank is None:
        rank = last_number_in_name(path)
    if rank is None:
        hint = "Call it by its rank, as PyTorch does: trace_rank_3"
        raise InputError.at(path, None, "neither the dump nor the file's name says its rank", hint)
    groups = _groups(told.get("pg_config"))
    read = [_entry(one, groups) for one in entries]
    good = [one for one in read if one is not None]
    version = told.get("version") or told.get("fr_version")
    library = told.get("comm_lib_version") or told.get("nccl_version")
    dump = FlightDump(
        path=path,
        rank=rank,
        rank_from_name=from_name,
        version=_text(version),
        library=_text(library),
        groups=tuple(groups.values()),
        entries=tuple(sorted(good, key=lambda one: one.number)),
        is_ring_full=bool(good) and min(one.number for one in good) > 0,
    )
    return dump, len(read) - len(good)


def _plain(content: bytes, path: str) -> object:
    if looks_like_pickle(content):
        return read_plain_pickle(content, path)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError.at(path, getattr(error, "pos", None), f"this JSON cannot be read: {error}", _HINT) from None


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and "profiling_name" in value


def _whole(value: object) -> int | None:
    if isinstance(value, str) and value.strip().lstrip("-").isdigit() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None


def _text(value: object) -> str:
    return redact(show_controls(str(value)))[:_NAME_MAX] if isinstance(value, str | int | float) else ""


def _groups(written: object) -> dict[tuple[str, str], GroupKey]:
    """Return the listed groups by (name, description); a list without members says nothing and is left out."""
    found: dict[tuple[str, str], GroupKey] = {}
    for name, one in written.items() if isinstance(written, dict) else []:
        if not isinstance(one, dict):
            continue
        ranks = one.get("ranks", "")
        numbers = _NUMBERS.findall(ranks) if isinstance(ranks, str) else [str(rank) for rank in _list(ranks)]
        members = tuple(sorted({int(number) for number in numbers if number.isdigit()}))
        if members:
            key = _text(one.get("name", name)), _text(one.get("desc", ""))
            found[key] = GroupKey(*key, members)
    return found


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _entry(one: object, groups: dict[tuple[str, str], GroupKey]) -> FlightEntry | None:
    if not isinstance(one, dict):
        return None
    profiled = _text(one.get("profiling_name"))
    is_p2p = bool(one.get("is_p2p")) or bool(_PAIR.search(profiled))
    sequence = _whole(one.get("p2p_seq_id" if is_p2p else "collective_seq_id", one.get("seq_id")))
    if sequence is None or not profiled:
        return None
    pair = _PAIR.search(profiled)
    peers = None
    if pair is not None:
        here, there = int(pair[2]), int(pair[4])
        peers = (here, there) if pair[3] == "->" else (there, here)
    named = _list(one.get("process_group"))
    name = _text(named[0]) if named else _text(one.get("pg_id", ""))
    description = _text(named[1]) if len(named) > 1 else ""
    return FlightEntry(
        group=groups.get((name, description), GroupKey(name, description, ())),
        sequence=sequence,
        operation=pair[1] if pair is not None else _BACKEND.sub("", profiled),
        is_p2p=is_p2p,
        peers=peers,
        input_sizes=_shapes(one.get("input_sizes")),
        output_sizes=_shapes(one.get("output_sizes")),
        input_types=tuple(_text(kind) for kind in _list(one.get("input_dtypes"))),
        output_types=tuple(_text(kind) for kind in _list(one.get("output_dtypes"))),
        state=_text(one.get("state")),
        is_retired=bool(one.get("retired")),
        created_ns=_created(one),
        timeout_ms=_whole(one.get("timeout_ms")),
        number=_whole(one.get("record_id")) or 0,
        frames=_frames(one.get("frames")),
        backend=backend[1] if (backend := _BACKEND.match(profiled)) is not None else "",
    )


def _created(one: dict[str, Any]) -> int | None:
    created = _whole(one.get("time_created_ns"))
    if created is None and (micros := _whole(one.get("time_created_us"))) is not None:
        created = micros * 1000
    return created if created is not None and created > 0 else None


def _shapes(value: object) -> tuple[tuple[int, ...], ...]:
    return tuple(_shape(shape) for shape in _list(value))


def _shape(value: object) -> tuple[int, ...]:
    return tuple(size for size in map(_whole, _list(value)[:_DIMENSIONS_MAX]) if size is not None)


def _frames(value: object) -> tuple[Frame, ...]:
    return tuple(
        Frame(_text(one.get("name")), _text(one.get("filename")), _whole(one.get("line")) or 0)
        for one in _list(value)[:_FRAMES_MAX]
        if isinstance(one, dict)
    )
