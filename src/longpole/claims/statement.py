"""Claims read from a file's keys: what is stated, of what model and device, and what could not be read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar

from longpole.claims.fields import (
    FIELDS,
    OF_COLLECTIVE,
    REMARKS,
    WORDS,
    close_keys,
    find_field,
    plain_key,
)
from longpole.claims.figures import Figure, Written, figure_of, parse_written
from longpole.claims.models import architecture_of, nominal_size
from longpole.claims.units_of import unit_of
from longpole.errors import UsageError
from longpole.hardware.devices import find_device, match_device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.claims.fields import Field
    from longpole.claims.units_of import Unit
    from longpole.costs.architecture import Architecture
    from longpole.hardware.devices import Device

Found = TypeVar("Found")
TABLES: Final = ("claim", "claims", "statement", "statements", "row", "rows")
_MOST_STATEMENTS: Final = 10_000
_MOST_PARAMETERS: Final = 10**16
_LARGEST_COUNT: Final = 10**12
_PERCENT_FROM: Final = 2.0  # a bare MFU of 35 means 35 %, one of 1.56 means 156 %
_SEVERAL: Final = re.compile(r"(\d{1,7})\s*[x×*]\s*(\D.*)")  # "8x A100"
_KIBI: Final = 1024
_MODEL_KEYS: Final = {
    "key_value_heads": "kv_heads", "feed_forward": "ffn", "vocabulary": "vocab", "sequence": "seq",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One row of claims about one run.

    Attributes:
        name: What reports call it.
        figures: What is stated, by the field's name.
        shared: Of these, what the head of the file states for all rows.
        words: `dtype`, `convention`, `recompute`, `collective`, `algorithm`, `schedule`, `purpose` as far as stated.
        model: The architecture, None where it is not known.
        model_name: What the model was called.
        device: The device, None where none is named.
        nominal: Whether the parameters come from a name such as "70B", which is rounder than a count.
        binary: Fields whose k, M or B may stand for powers of 1024.
        assumed: How ambiguous keys were read, for a reader.
        unread: Keys that mean no figure.
        quote: The claim in words, if the file gives it.
    """

    name: str
    figures: Mapping[str, Figure]
    shared: frozenset[str] = frozenset()
    words: Mapping[str, str] = field(default_factory=dict)
    model: Architecture | None = None
    model_name: str = ""
    device: Device | None = None
    nominal: bool = False
    binary: frozenset[str] = frozenset()
    assumed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    quote: str = ""

    def count(self, name: str) -> int | None:
        """Return a stated count."""
        figure = self.figures.get(name)
        return round(figure.value) if figure is not None else None

    def given(self, name: str, figure: Figure) -> Statement:
        """Return the statement with one figure more, or another one."""
        return replace(self, figures={**self.figures, name: figure})


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """A file of claims.

    Attributes:
        title: Of the file.
        statements: Its rows, in order; rows are compared with each other.
    """

    title: str
    statements: tuple[Statement, ...]


def read_claims(document: Mapping[str, Any], resolve: Callable[[str], Architecture | None] | None = None) -> Claims:
    """Read what a file states.

    Keys at its head hold for every statement; each table of `[[claim]]` (or `[claim.NAME]`) is one. A file without
    such tables is one statement.

    Args:
        document: Numbers with a fraction as `Decimal`, so that their digits are known.
        resolve: Returns a model that is given as a path; None where that is none.

    Raises:
        UsageError: A figure cannot be one, or a device or convention is not known.
    """
    head = {key: value for key, value in document.items() if plain_key(key) not in TABLES}
    tables = _tables(document)
    if len(tables) > _MOST_STATEMENTS:
        msg = f"expected at most {_MOST_STATEMENTS:,} statements; found {len(tables):,}"
        raise UsageError(msg)
    title = str(head.get("title", head.get("name", "")))
    statements = []
    for number, (name, table) in enumerate(tables, 1):
        shown = str(table.get("name") or table.get("id") or table.get("case_id") or table.get("label") or name)
        shown = shown or (f"statement {number}" if len(tables) > 1 or not title else title)
        try:
            statements.append(_statement(shown, head if table is not head else {}, table, resolve))
        except UsageError as error:
            where = f"{shown}: " if len(tables) > 1 else ""
            msg = f"{where}{error}"
            raise UsageError(msg) from None
    if not any(one.figures for one in statements):
        msg = (
            "no figure is stated; expected keys such as params, gpus, tok_s, mfu, tp, pp, dp, step_s, or tables"
            " [[claim]] with them"
        )
        raise UsageError(msg)
    return Claims(title=title, statements=tuple(statements))


def _tables(document: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    found: list[tuple[str, Mapping[str, Any]]] = []
    for key, value in document.items():
        if plain_key(key) not in TABLES:
            continue
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            found += [("", one) for one in value]
        elif isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values()):
            found += [(str(name), one) for name, one in value.items()]
        elif isinstance(value, dict) and value:
            found.append(("", value))
        elif not isinstance(value, str):
            msg = f"{key}: expected tables, each [[{key}]] with what is stated; found {value!r}"
            raise UsageError(msg)
    return found or [("", document)]


class _Reader:
    """Collects what the keys of one statement say."""

    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.origin: dict[str, str] = {}
        self.words: dict[str, str] = {}
        self.binary: set[str] = set()
        self.assumed: list[str] = []
        self.unread: list[str] = []
        self.quote = ""
        self.config = ""

    def read(self, table: Mapping[str, Any], *, nested: str = "") -> None:
        """Read the keys of a table; its inner tables group keys and mean nothing by themselves."""
        for key, value in table.items():
            plain = plain_key(key)
            if nested and plain == "name":
                self.words[nested] = str(value)
            elif isinstance(value, dict):
                self.read(value, nested=WORDS.get(plain, "") if WORDS.get(plain) in ("model", "device") else "")
            elif plain in WORDS and not (plain in ("gpu", "chip") and isinstance(value, int)):
                self._word(key, WORDS[plain], value)
            elif plain in REMARKS:
                if plain in ("quote", "statement", "text", "claim", "says") and isinstance(value, str):
                    self.quote = value
            elif (found := find_field(_MODEL_KEYS.get(plain, key))) is not None:
                self._figure(key, *found, value)
            else:
                close = ", ".join(close_keys(key))
                self.unread.append(f"{key}: no such figure{f'; close to it: {close}' if close else ''}")

    def _word(self, key: str, name: str, value: Any) -> None:
        if name == "recompute" and isinstance(value, bool):
            value = "full" if value else "none"
        if name == "model" and isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            self._figure(key, FIELDS["params"], 1.0, value)
            return
        if not isinstance(value, str) or not value.strip():
            msg = f"{key}: expected a word; found {value!r}"
            raise UsageError(msg)
        text = value.strip()
        several = _SEVERAL.fullmatch(text) if name == "device" else None
        if several is not None:
            self._figure(key, FIELDS["gpus"], 1.0, int(several[1]))
            text = several[2]
        self.words[name] = text

    def _figure(self, key: str, field: Field, scale: float, value: Any) -> None:
        if value is None or value == "":
            return
        try:
            name, figure, unit = _read_figure(field, scale, value, key)
        except UsageError as error:
            msg = f"{key}: {error}"
            raise UsageError(msg) from None
        if name != field.name:
            self.assumed.append(f"{key} = {figure.text} is read as {FIELDS[name].what}, as its unit says")
        plain = plain_key(key)
        if plain in OF_COLLECTIVE:
            self.words.setdefault("collective", OF_COLLECTIVE[plain])
        if unit is not None and unit.prefixed in ("k", "K", "M", "B", "G", "T") and field.kind == "amount":
            self.binary.add(name)
        before = self.figures.get(name)
        if before is not None and self.origin.get(name) != key and not before.low[2] <= figure.value <= before.high[2]:
            msg = f"{key} and {self.origin[name]} are one figure ({FIELDS[name].what}); state it once"
            raise UsageError(msg)
        self.figures[name], self.origin[name] = figure, key


def _read_figure(field: Field, scale: float, value: Any, key: str) -> tuple[str, Figure, Unit | None]:
    """Return the field that is meant, its figure, and the unit that was written out.

    Raises:
        UsageError: It is no figure of that kind.
    """
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, str, float)):
        msg = f"expected a number, or a text with its unit; found {value!r}"
        raise UsageError(msg)
    text = value.strip().lstrip("$€ ") if isinstance(value, str) else str(value)
    written = parse_written(text)
    written = replace(written, text=value.strip() if isinstance(value, str) else f"{value}")
    unit = unit_of(field.kind, written.prefix, written.unit, scale)
    worth = _worth(field, written, unit, scale, key)
    name = _meant(field.name, unit)
    figure = figure_of(written, worth)
    if FIELDS[name].exact or name == "zero":
        figure = _exact(figure, written)
    if field.name == "speedup" and (written.prefix == "%" or "%" in written.unit):
        figure = _plus_one(figure)
    _check(FIELDS[name], figure)
    return name, figure, unit if isinstance(value, str) else None


def _worth(field: Field, written: Written, unit: Unit, scale: float, key: str) -> float:
    """Return the worth of one of what was written, where a bare number may mean two things."""
    bare = not written.prefix and not written.unit
    number = abs(float(written.first))
    if field.kind == "share" and bare and scale == 1.0 and number > _PERCENT_FROM:
        return 0.01
    if field.kind in ("flops_rate", "rate") and bare:
        if scale == 1.0 and 0 < number < 1e6:  # 312 under `peak` are TFLOP/s, 400 under `link` are GB/s
            return 1e12 if field.kind == "flops_rate" else 1e9
        if scale > 1.0 and number >= 1e9:
            return 1.0
    if field.name == "params" and bare and 0 < number < 1e5 and scale == 1.0:
        msg = f"expected a number of parameters such as 13e9 or '13B'; found {written.text!r}"
        raise UsageError(msg)
    if scale >= 1e8 and bare and number >= 1e6 and field.kind in ("amount", "flops"):
        return 1.0
    if field.name == "seq" and written.prefix in ("k", "K"):
        return float(_KIBI)
    del key
    return unit.scale


def _meant(name: str, unit: Unit) -> str:
    """Return the field that a unit means where the key alone says something else."""
    if name == "tok_s" and unit.of_device:
        return "tok_s_gpu"
    if name == "tok_s" and unit.of_sequences:
        return "seq_s"
    if name == "gbs" and (unit.of_tokens or unit.prefixed in ("M", "B")):
        return "tokens_step"
    return name


def _exact(figure: Figure, written: Written) -> Figure:
    if written.last is not None or written.bound or written.about:
        return figure
    whole = round(figure.value)
    if abs(figure.value - whole) > 1e-6 * max(whole, 1):
        msg = f"expected a whole number; found {written.text!r}"
        raise UsageError(msg)
    return Figure.exactly(float(whole), written.text)


def _plus_one(figure: Figure) -> Figure:
    low, high = (tuple(1 + end for end in ends) for ends in (figure.low, figure.high))
    return Figure(figure.text, 1 + figure.value, low, high)  # type: ignore[arg-type]


def _check(field: Field, figure: Figure) -> None:
    may_be_zero = field.name in ("zero", "bubble", "increase", "comm_s")
    if figure.value < 0 or (figure.value == 0 and not may_be_zero):
        msg = f"expected a number above 0; found {figure.text!r}"
        raise UsageError(msg)
    if field.exact and figure.value > _LARGEST_COUNT:
        msg = f"expected a count of at most {_LARGEST_COUNT:.0e}; found {figure.text!r}"
        raise UsageError(msg)
    if field.name in ("params", "active_params") and figure.value > _MOST_PARAMETERS:
        msg = f"expected at most {_MOST_PARAMETERS:.0e} parameters; found {figure.text!r}"
        raise UsageError(msg)
    if field.name == "zero" and figure.value not in (0, 1, 2, 3):
        msg = f"expected a stage of ZeRO: 0, 1, 2 or 3; found {figure.text!r}"
        raise UsageError(msg)


def _statement(
    name: str,
    head: Mapping[str, Any],
    table: Mapping[str, Any],
    resolve: Callable[[str], Architecture | None] | None,
) -> Statement:
    shared, own = _Reader(), _Reader()
    shared.read(head)
    own.read(table)
    figures = {**shared.figures, **own.figures}
    words = {**shared.words, **own.words}
    assumed = [*shared.assumed, *own.assumed]
    _share_tokens(figures, assumed)
    _check_words(words)
    device = _device(words, figures, assumed)
    statement = Statement(
        name=name,
        figures=figures,
        shared=frozenset(shared.figures) - frozenset(own.figures),
        words=words,
        model_name=words.get("model", ""),
        device=device,
        binary=frozenset(shared.binary | own.binary),
        assumed=tuple(assumed),
        unread=tuple(dict.fromkeys([*shared.unread, *own.unread])),
        quote=own.quote or shared.quote,
    )
    return _with_model(statement, resolve)


def _share_tokens(figures: dict[str, Figure], assumed: list[str]) -> None:
    """Decide whether `tokens` are those of a step or of the whole run."""
    if "tokens" not in figures or "tokens_step" in figures:
        return
    of_run = {"time_s", "gpu_s", "steps", "cost"} & figures.keys()
    of_step = {"step_s", "ideal_step_s", "flops_step", "dp", "gbs", "batch_per_dp", "ga"} & figures.keys()
    if of_step and not of_run:
        figures["tokens_step"] = figures.pop("tokens")
        assumed.append(f"tokens = {figures['tokens_step'].text} is read as the tokens of a step")


def _check_words(words: Mapping[str, str]) -> None:
    if "convention" in words:
        from longpole.costs.conventions import convention_of

        _named("convention", convention_of, words["convention"])
    recompute = words.get("recompute", "none").lower()
    if recompute not in ("none", "selective", "full", "selective_op", "partial", "yes", "no", "true", "false"):
        msg = f"recompute: expected none, selective or full; found {words['recompute']!r}"
        raise UsageError(msg)


def _named(key: str, find: Callable[[str], Found], name: str) -> Found:
    """Look a name up; an error says which key it stands under."""
    try:
        return find(name)
    except UsageError as error:
        msg = f"{key}: {error}"
        raise UsageError(msg) from None


def _device(words: Mapping[str, str], figures: Mapping[str, Figure], assumed: list[str]) -> Device | None:
    """Return the device that is named.

    Raises:
        UsageError: It is not in the table, and neither is its peak stated: none is guessed.
    """
    named = words.get("device", "")
    if not named:
        return None
    found = match_device(named)
    if found is None and not {"peak", "link", "memory_rate"} & figures.keys():
        return _named("device", find_device, named)  # raises, and lists what is close
    if found is None:
        assumed.append(f"device {named} is not in the table: what is stated of it is taken as it is")
    return found


def _with_model(statement: Statement, resolve: Callable[[str], Architecture | None] | None) -> Statement:
    """Add the model: the one that is named, or the one that the dimensions describe."""
    name = statement.model_name
    model = architecture_of(name, statement.count("seq"), resolve) if name else None
    if model is None:
        size = nominal_size(name)
        if size is not None and "params" not in statement.figures:
            statement = replace(statement.given("params", size), nominal=True)
        elif name and size is None:
            note = f"model {name} is not in the table: only what is stated of it is known"
            statement = replace(statement, assumed=(*statement.assumed, note))
    return replace(statement, model=model)
