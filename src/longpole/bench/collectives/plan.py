"""What is measured, in which order, and under which settings."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from longpole.bench.environment import PREFIXES as KEPT_PREFIXES
from longpole.errors import UsageError
from longpole.records.bench_collectives import DEFAULT_SETTING, CollectivesSetting
from longpole.records.credentials import redact_variable
from longpole.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KINDS: Final = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv")
DTYPES: Final = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8")
BACKENDS: Final = ("auto", "gloo", "nccl")
PREFIXES: Final = (*KEPT_PREFIXES, "RCCL_", "GLOO_", "UCX_", "FI_")
"""Variables that may be set for a measurement: those that change performance, and never a credential."""

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{1,60}", re.ASCII)
_RANGE: Final = re.compile(r"(?P<low>[^.]+)\.\.(?P<high>[^.x]+)(?:x(?P<factor>\d{1,3}))?", re.ASCII)
_MOST_SETTINGS: Final = 64
_MOST_SIZES: Final = 64


@dataclass(frozen=True, slots=True)
class Cell:
    """One point under one bucket: what a set of processes measures in one go."""

    kind: str
    size_bytes: int
    bucket_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured.

    Attributes:
        backend: `auto`, `gloo` or `nccl`.
        world: Ranks, all on this machine.
        kinds: Of `KINDS`.
        sizes: Bytes of the full buffer, rising.
        variables: For each setting the environment variables it sets; the first sets none.
        buckets: None for the whole buffer, then the sizes of buckets.
        dtype: Of `DTYPES`.
        repeats, warmup: Timed and untimed operations of a point in each set of processes.
        rounds: Sets of fresh processes for each setting.
        seed: Of the order.
        timeout_s: A set of processes of which none gets on for so long is ended.
    """

    backend: str = "auto"
    world: int = 2
    kinds: tuple[str, ...] = KINDS
    sizes: tuple[int, ...] = ()
    variables: tuple[Mapping[str, str], ...] = ({},)
    buckets: tuple[int | None, ...] = (None,)
    dtype: str = "float32"
    repeats: int = 20
    warmup: int = 5
    rounds: int = 5
    seed: int = 42
    timeout_s: float = 120.0

    def cells(self) -> list[Cell]:
        """Return all points of one setting of variables; a bucket as large as the buffer is the whole buffer."""
        return [
            Cell(kind, size, bucket)
            for kind in self.kinds
            for size in self.sizes
            for bucket in self.buckets
            if bucket is None or bucket < size
        ]

    def order(self, place: int, round_number: int) -> list[Cell]:
        """Return the points in the order in which one set of processes measures them: drawn from the seed."""
        cells = self.cells()
        Random(f"{self.seed}/{round_number}/{place}").shuffle(cells)
        return cells

    def schedule(self) -> list[tuple[int, int]]:
        """Return (round, place of the setting) in the order of running: in each round every setting once, shuffled."""
        schedule = []
        for number in range(self.rounds):
            places = list(range(len(self.variables)))
            Random(f"{self.seed}/{number}").shuffle(places)
            schedule += [(number, place) for place in places]
        return schedule

    def settings(self) -> list[CollectivesSetting]:
        """Return the settings as a record names them."""
        return [
            CollectivesSetting(setting_name(variables, bucket), dict(variables), bucket)
            for variables in self.variables
            for bucket in self.buckets
        ]

    def semantic_id(self, backend: str) -> str:
        """Return the hash of what two records must share to be compared: what was run, on what, and how."""
        parts = (backend, self.world, self.kinds, self.sizes, self.buckets, self.dtype, self.repeats, self.warmup)
        return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def setting_name(variables: Mapping[str, str], bucket_bytes: int | None) -> str:
    """Return what a setting is called.

    >>> setting_name({}, None), setting_name({"NCCL_ALGO": "Ring"}, 1 << 20)
    ('default', 'NCCL_ALGO=Ring bucket=1MiB')
    """
    parts = [f"{name}={value}" for name, value in variables.items()]
    parts += [f"bucket={write_size(bucket_bytes)}"] if bucket_bytes is not None else []
    return " ".join(parts) or DEFAULT_SETTING


def write_size(size_bytes: int) -> str:
    """Write a size exactly, in the largest binary unit that divides it.

    >>> write_size(65536), write_size(1000)
    ('64KiB', '1000B')
    """
    for step, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= step and size_bytes % step == 0:
            return f"{size_bytes // step}{unit}"
    return f"{size_bytes}B"


def parse_sizes(text: str) -> tuple[int, ...]:
    """Read sizes: `1KiB..64MiB` (each twice the last), `1KiB..64MiBx4`, or a list with commas.

    >>> parse_sizes("1KiB..8KiB"), parse_sizes("1KiB..64KiBx4"), parse_sizes("4B,1MB")
    ((1024, 2048, 4096, 8192), (1024, 4096, 16384, 65536), (4, 1000000))

    Raises:
        UsageError: It is neither, or there are too many.
    """
    sizes: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        low = _size(match["low"] if match else part, text)
        high = _size(match["high"], text) if match else low
        factor = int(match["factor"] or 2) if match else 2
        if high < low or factor < 2:
            _refuse_sizes(text)
        while low <= high and len(sizes) <= _MOST_SIZES:
            sizes.add(low)
            low *= factor
    if len(sizes) > _MOST_SIZES:
        msg = f"--sizes: expected at most {_MOST_SIZES} sizes; found more in {text!r}; raise the factor (1KiB..1GiBx4)"
        raise UsageError(msg)
    return tuple(sorted(sizes))


def _size(text: str, whole: str) -> int:
    size = parse_bytes(text)
    if size is None or size < 1:
        _refuse_sizes(whole)
    return size  # type: ignore[return-value]  # refused above


def _refuse_sizes(text: str) -> None:
    msg = f"--sizes: expected sizes such as 1KiB..64MiB, 1KiB..64MiBx4 or 4KiB,1MiB; found {text!r}"
    raise UsageError(msg)


def parse_buckets(text: str | None) -> tuple[int | None, ...]:
    """Read the sizes of buckets; the whole buffer comes first.

    >>> parse_buckets("1MiB,25MB"), parse_buckets(None)
    ((None, 1048576, 25000000), (None,))

    Raises:
        UsageError: One is no size.
    """
    if text is None:
        return (None,)
    sizes = [parse_bytes(part) for part in text.split(",")]
    if None in sizes or 0 in sizes:
        msg = f"--bucket: expected sizes with commas between them, such as 1MiB,25MiB; found {text!r}"
        raise UsageError(msg)
    return (None, *dict.fromkeys(sizes))


def parse_settings(texts: Sequence[str]) -> tuple[dict[str, str], ...]:
    """Read `NAME=VALUE,VALUE` of each variable, and return all combinations; the first one sets nothing.

    >>> parse_settings(["NCCL_ALGO=Ring,Tree", "NCCL_PROTO=LL"])[1:]
    ({'NCCL_ALGO': 'Ring', 'NCCL_PROTO': 'LL'}, {'NCCL_ALGO': 'Tree', 'NCCL_PROTO': 'LL'})

    Raises:
        UsageError: One is not of that form, is given twice, or names a variable that has nothing to do with speed.
    """
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        choices = list(dict.fromkeys(part.strip() for part in rest.split(",") if part.strip()))
        if not (equals and choices and _NAME.fullmatch(name) and name not in values):
            msg = f"--set: expected NAME=VALUE,VALUE, each name once, such as NCCL_ALGO=Ring,Tree; found {text!r}"
            raise UsageError(msg)
        if not name.startswith(PREFIXES) or any(redact_variable(name, choice) != choice for choice in choices):
            msg = f"--set {name}: only variables that change performance are set: {', '.join(PREFIXES)}"
            raise UsageError(msg)
        values[name] = choices
    combinations = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    if len(combinations) > _MOST_SETTINGS:
        msg = f"--set: expected at most {_MOST_SETTINGS} combinations; found {len(combinations)}; give fewer values"
        raise UsageError(msg)
    return ({}, *(combination for combination in combinations if combination))


@dataclass(slots=True)
class Facts:
    """What a probe or a worker says of where it runs.

    Attributes:
        backend: The backend that is used.
        device: Model of the device, `cpu` for the host.
        versions: Library -> version.
        problem: Why nothing can be measured; empty where it can.
    """

    backend: str
    device: str = "cpu"
    versions: dict[str, str] = field(default_factory=dict)
    problem: str = ""
