"""`longpole hang`: read what every rank left behind, and say which of them holds the job up."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.advice.hang.answer import explain_hang
from longpole.errors import InputError, NotATraceError, UsageError
from longpole.pipeline.version import package_version
from longpole.readers.container import open_stream
from longpole.readers.flight_recorder.decode import looks_like_dump, read_dump
from longpole.readers.plain_pickle import looks_like_pickle
from longpole.readers.stacks.decode import looks_like_stacks, read_stacks
from longpole.records.hang import HangSource
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.records.flight import FlightDump, StackDump
    from longpole.records.hang import Hang
    from longpole.settings import Settings

_MOST_BYTES: Final = 1 << 28  # 2,000 operations with stacks are some 5 MB
_BLOCK_BYTES: Final = 1 << 20
_LAST_NUMBER: Final = re.compile(r"\d+(?!.*\d)")
_DUMP_NAME: Final = re.compile(r"(?:trace|dump|rank)[-_.\w]*\d", re.IGNORECASE)
_HINT: Final = "Give the folder with the dumps of all ranks"


@dataclass(slots=True)
class _Found:
    """What was read.

    Attributes:
        dumps: By set of files (all but the rank in their names), then by rank.
        stacks: By rank.
        sources: By path.
        refused: Files that say they are dumps and could not be read, and why.
    """

    dumps: dict[str, dict[int, FlightDump]] = field(default_factory=dict)
    stacks: dict[int, StackDump] = field(default_factory=dict)
    sources: dict[str, HangSource] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


def hang_of(
    paths: Sequence[str], settings_file: Path | None = None, progress: Callable[[str, int, int], None] | None = None
) -> Hang:
    """Say which ranks hold a job up.

    Args:
        paths: Dumps of flight recorders, files of stacks, and folders of both.
        settings_file: The user's own thresholds; of them the bound on expansion matters.
        progress: Hears (file, files done, files in all).

    Raises:
        UsageError: A path does not exist, or there are several sets of dumps.
        InputError: There is no dump, or none could be read.
    """
    settings = read_settings(settings_file)
    files = _files(paths)
    found = _Found()
    for place, (path, is_named) in enumerate(files):
        if progress is not None:
            progress(str(path), place, len(files))
        _read(path, settings, found, is_named=is_named)
    dumps = _one_set(found)
    used = [dumps[rank].path for rank in sorted(dumps)] + [stack.path for stack in found.stacks.values()]
    answer = explain_hang(
        [dumps[rank] for rank in sorted(dumps)],
        [found.stacks[rank] for rank in sorted(found.stacks)],
        [found.sources[path] for path in used],
        package_version(),
    )
    answer.cautions.extend(f"left out: {why}" for why in found.refused)
    return answer


def _files(paths: Sequence[str]) -> list[tuple[Path, bool]]:
    """Return the files behind paths, and whether each was named itself."""
    found: dict[Path, bool] = {}
    for shown in paths:
        path = Path(shown)
        if path.is_dir():
            for inner in sorted(path.rglob("*")):
                if inner.is_file() and not inner.name.startswith("."):
                    found.setdefault(inner, False)
        elif path.exists():
            found[path] = True
        else:
            msg = f"{shown}: there is no such file or folder. {_HINT}"
            raise UsageError(msg)
    return list(found.items())


def _read(path: Path, settings: Settings, found: _Found, *, is_named: bool) -> None:
    """Read a file if it is a dump; what is none is passed over, unless the user named it."""
    shown = str(path)
    try:
        content = _content(path, settings)
        head = content[:_BLOCK_BYTES]
        # A dump that was cut may say too little of itself; its name then tells that its refusal must be said.
        if looks_like_dump(head) or (looks_like_pickle(head) and _DUMP_NAME.search(path.name)):
            dump, left_out = read_dump(content, shown)
            found.dumps.setdefault(_set_of(shown), {})[dump.rank] = dump
            found.sources[shown] = HangSource(
                shown, "flight_recorder", dump.rank, dump.version, len(dump.entries), left_out
            )
        elif looks_like_stacks(head):
            stack = read_stacks(content, shown)
            if stack.rank not in found.stacks or _knows_more(stack, found.stacks[stack.rank]):
                found.stacks[stack.rank] = stack
            found.sources[shown] = HangSource(shown, "stacks", stack.rank, "", len(stack.threads), 0)
        elif is_named:
            hint = "Give dumps of PyTorch's flight recorder, or stacks of py-spy or faulthandler"
            found.refused.append(str(NotATraceError.at(shown, None, "neither a dump nor stacks", hint)))
    except NotATraceError as error:
        if is_named:
            found.refused.append(str(error))
    except InputError as error:
        found.refused.append(str(error))


def _knows_more(stack: StackDump, other: StackDump) -> bool:
    """Prefer stacks that name threads and say who holds the interpreter's lock: py-spy's to faulthandler's."""
    return any(thread.holds_gil is not None for thread in stack.threads) and not any(
        thread.holds_gil is not None for thread in other.threads
    )


def _content(path: Path, settings: Settings) -> bytes:
    parts, size = [], 0
    with open_stream(path, settings) as stream:
        for block in stream.blocks(_BLOCK_BYTES):
            parts.append(block)
            size += len(block)
            if size > _MOST_BYTES:
                raise InputError.at(path, None, "is larger than any dump of a flight recorder", _HINT)
    return b"".join(parts)


def _set_of(path: str) -> str:
    """Return what the files of one moment have in common: their names without the rank."""
    folder, _, name = path.replace("\\", "/").rpartition("/")
    return f"{folder}/{_LAST_NUMBER.sub('*', _plain(name))}{'.json' if '.json' in name else ''}"


def _plain(name: str) -> str:
    return re.sub(r"(?:\.(?:gz|zst|json|pickle|pkl))+$", "", name, flags=re.IGNORECASE)


def _one_set(found: _Found) -> dict[int, FlightDump]:
    """Return the dumps of one moment.

    Raises:
        UsageError: There are several.
        InputError: There is none.
    """
    sets = {name: dumps for name, dumps in found.dumps.items() if not _has_twin(name, found.dumps)}
    # Names with hosts in them (rank_node02_5) make sets of their own; they are one if no rank is told twice.
    ranks = [rank for dumps in sets.values() for rank in dumps]
    if not ranks:
        why = found.refused[0] if found.refused else "no dump of a flight recorder here"
        raise InputError(why if found.refused else f"{why}. {_HINT}")
    if len(ranks) != len(set(ranks)):
        lines = [f"{len(sets)} sets of dumps here; name one:"]
        lines += [f"  {name}  ({len(dumps)} ranks)" for name, dumps in sorted(sets.items())]
        raise UsageError("\n".join(lines))
    return {rank: dump for dumps in sets.values() for rank, dump in dumps.items()}


def _has_twin(name: str, sets: dict[str, dict[int, FlightDump]]) -> bool:
    """Tell whether dumps in JSON lie beside the same ones as pickles, which hold stacks too."""
    return name.endswith(".json") and name.removesuffix(".json") in sets
