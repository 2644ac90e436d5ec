"""Units as people write them behind a figure, by what the figure measures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.errors import UsageError

if TYPE_CHECKING:
    from longpole.claims.fields import Kind

_PREFIX: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SPELLED: Final = {"peta": "P", "tera": "T", "giga": "G", "exa": "E"}
_COUNT_WORDS: Final = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "mn": 1e6, "bn": 1e9}
_TIMES: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0,
    "seconds": 1.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0,
    "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0,
    "week": 604800.0, "weeks": 604800.0, "month": 2629746.0, "months": 2629746.0, "year": 31556952.0,
    "years": 31556952.0, "milliseconds": 1e-3, "microseconds": 1e-6,
}  # fmt: skip
_OF_DEVICE: Final = re.compile(
    r"(?:/|\bper\b|·|\bp/)\s*(?:gpu|device|chip|card|accelerator|tpu|npu|rank|worker|[abhvm]\d{2,3}x?)s?\b",
    re.IGNORECASE,
)
_PER: Final = re.compile(r"(?:/|\bper\b)\s*(ms|sec|seconds?|s|min|minutes?|hours?|h|days?|d)\b", re.IGNORECASE)
_FLOPS: Final = re.compile(
    r"(?P<prefix>[kKMGTPE]|[Pp]eta|[Tt]era|[Gg]iga|[Ee]xa|)(?:[Ff][Ll][Oo][Pp]s?S?|[Ff]lop|OPS|ops|F(?=$|[\s/]))"
)
_BYTES: Final = re.compile(r"(?P<prefix>[kKMGTP]?)(?P<binary>i?)(?P<unit>[Bb]its?|[Bb]ytes?|[Bb]ps|[Bb])(?P<rest>.*)")
_BINARY: Final = {"": 1.0, "k": 2.0**10, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_IGNORED: Final = re.compile(r"[\w .,()/·×-]*")  # nouns behind a count: "GPUs", "H800 hours"


@dataclass(frozen=True, slots=True)
class Unit:
    """What a written unit is worth.

    Attributes:
        scale: One of it, in the unit of the field.
        of_device: Whether it says that the figure is of one device.
        of_tokens: Whether it counts tokens.
        of_sequences: Whether it counts sequences.
        prefixed: `k`, `M` … of a count, whose meaning (1000 or 1024) nobody writes down.
    """

    scale: float
    of_device: bool = False
    of_tokens: bool = False
    of_sequences: bool = False
    prefixed: str = ""


def unit_of(kind: Kind, prefix: str, text: str, bare: float) -> Unit:
    """Return what a unit is worth.

    >>> unit_of("rate", "", "Gb/s", 1.0).scale / 1e9
    0.125
    >>> unit_of("token_rate", "k", "tok/s/GPU", 1.0).of_device
    True

    Args:
        kind: What the figure measures.
        prefix: What stands directly behind the number: `k`, `M`, `B` … or `%`.
        text: The rest.
        bare: Worth of a number without a unit.

    Raises:
        UsageError: It is no unit of that kind.
    """
    if not prefix and not text:
        return Unit(bare)
    reader = _READERS[kind]
    found = reader(prefix, text.strip(), bare)
    if found is None:
        msg = f"unit {(prefix + ' ' + text).strip()!r} is none here; {_ACCEPTED[kind]}"
        raise UsageError(msg)
    return found


def _count(prefix: str, text: str, bare: float) -> Unit | None:
    word = text.split()[0].lower() if text else ""
    scale = _PREFIX.get(prefix)
    if scale is None or not _IGNORED.fullmatch(text):
        return None
    if word in _COUNT_WORDS:
        scale *= _COUNT_WORDS[word]
    written = bool(prefix) or word in _COUNT_WORDS
    low = text.lower()
    return Unit(
        scale if written else bare,
        of_tokens="tok" in low,
        of_sequences="seq" in low or "sample" in low,
        prefixed=prefix or (word if word in _COUNT_WORDS else ""),
    )


def _time(prefix: str, text: str, bare: float) -> Unit | None:
    words = text.replace("-", " ").split()
    scale = _PREFIX.get(prefix)
    if scale is None:
        return None
    if words and words[0].lower() in _COUNT_WORDS:
        scale *= _COUNT_WORDS[words[0].lower()]
    named = [word for word in words if word.lower() in _TIMES or word in _TIMES]
    if not named:
        return None if text else Unit(scale * bare)
    word = named[-1]
    return Unit(scale * _TIMES.get(word, _TIMES.get(word.lower(), 1.0)))


def _token_rate(prefix: str, text: str, bare: float) -> Unit | None:
    scale = _PREFIX.get(prefix)
    if scale is None:
        return None
    low = text.lower()
    if not text:
        return Unit(scale * bare)
    if re.match(r"(?:[kmb] ?)?(tok|seq|sample|t/|t per|word|tps|tgs)", low) is None:
        return None
    if not prefix and low[0] in "kmb" and low[1:].lstrip().startswith(("tok", "seq", "sam")):
        scale = _PREFIX[text[0] if text[0] != "b" else "B"] if text[0] != "m" else 1e6
    per = _PER.search(text)
    if per is None and not low.startswith(("tps", "tgs")):
        return None
    seconds = _TIMES[per[1].lower()] if per else 1.0
    return Unit(
        scale / seconds,
        of_device=bool(_OF_DEVICE.search(text)) or low.startswith("tgs"),
        of_sequences=low.lstrip("km ").startswith(("seq", "sample")),
    )


def _flops(prefix: str, text: str, bare: float) -> Unit | None:
    if not text:
        return Unit(_PREFIX[prefix]) if prefix in _PREFIX else None
    match = _FLOPS.match(text)
    if match is None or prefix not in _PREFIX:
        return None
    del bare
    of_day = 86400.0 if "day" in text.lower() else 1.0  # petaflop/s-days, as GPT-3's paper counts
    return Unit(
        of_day * _PREFIX[prefix] * _PREFIX[_SPELLED.get(match["prefix"].lower(), match["prefix"])],
        of_device=bool(_OF_DEVICE.search(text)),
    )


def _bytes(prefix: str, text: str, bare: float) -> Unit | None:
    del bare
    if prefix == "B" and not text:
        return Unit(1.0)
    match = _BYTES.match(text)
    if match is None or prefix not in _PREFIX:
        return Unit(_PREFIX[prefix]) if not text and prefix in _PREFIX else None
    table = _BINARY if match["binary"] else _PREFIX
    unit = match["unit"]
    bits = unit.startswith(("bit", "Bit")) or unit in ("b", "bps")
    return Unit(_PREFIX[prefix] * table[match["prefix"]] / (8.0 if bits else 1.0))


def _share(prefix: str, text: str, bare: float) -> Unit | None:
    low = text.lower()
    if prefix == "%" or low.startswith(("%", "percent", "per cent")):
        return Unit(0.01)
    return Unit(bare) if not prefix and (low in ("x", "×") or _IGNORED.fullmatch(text)) else None


def _money(prefix: str, text: str, bare: float) -> Unit | None:
    word = text.split()[0].lower() if text else ""
    scale = _PREFIX.get(prefix)
    if scale is None or not _IGNORED.fullmatch(text):
        return None
    return Unit(scale * _COUNT_WORDS.get(word, 1.0) if prefix or word in _COUNT_WORDS else bare)


_READERS: Final = {
    "count": _count, "amount": _count, "time": _time, "token_rate": _token_rate, "flops": _flops,
    "flops_rate": _flops, "bytes": _bytes, "rate": _bytes, "share": _share, "factor": _share, "money": _money,
}  # fmt: skip
_ACCEPTED: Final = {
    "count": "expected a count such as 16, 16384 or 8k",
    "amount": "expected a number such as 13e9, 13B or '16M tokens'",
    "time": "expected a time such as '512 ms', '13.5 h' or '3.7 days'",
    "token_rate": "expected a rate such as '1200 tok/s', '2.2k tokens/s/GPU' or '272.8B tokens/day'",
    "flops": "expected FLOPs such as '250 GFLOP' or 1.28e15",
    "flops_rate": "expected a rate such as '312 TFLOP/s'",
    "bytes": "expected a size such as '168 MB' or '160 MiB'",
    "rate": "expected a rate such as '400 GB/s' or '3200 Gb/s'",
    "share": "expected a share such as '35 %' or 0.35",
    "factor": "expected a factor such as 1.57 or '29 %'",
    "money": "expected an amount such as '5.576M'",
}  # fmt: skip
