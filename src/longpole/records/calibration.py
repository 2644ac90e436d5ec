"""How noisy a machine is for one benchmark, as it is stored (`longpole.calibration/1`); a gate reads its floors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from longpole.errors import InputError
from longpole.records.run_record import RecordEnvironment

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "longpole.calibration/1"
FLOOR_PAIRS: Final = 10
"""Pairs for which the noise floor is given: what a gate starts with (bench-io A7)."""

_HINT: Final = "longpole bench calibrate writes one"

Share: TypeAlias = Annotated[float, Meta(ge=0)]


class SmallestEffect(msgspec.Struct, frozen=True):
    """What so many pairs can see.

    Attributes:
        pairs: How many.
        share: The smallest change for the worse that is called regressed in four of five cases.
    """

    pairs: int
    share: Share


class CalibrationFigure(msgspec.Struct, frozen=True):
    """One figure's noise between two sides that are the same.

    Attributes:
        metric: `time` or `peak_memory`, as a gate names them.
        unit: `ns` or `bytes`.
        median: Over all processes, each by its median.
        between_cv_share: Coefficient of variation of the processes' medians.
        pair_spread_share: Standard deviation of the log-ratios of the pairs; from 8 pairs on, of normal noise that has
            the same interval by ranks, so that a few wild pairs do not make it.
        difference_share: What the two equal sides seemed to differ by.
        floor_share: Half the 90 % interval of `FLOOR_PAIRS` pairs: nine of ten comparisons of equal sides stay within.
        smallest: The smallest effect by number of pairs, at `threshold_share`.
        within_cv_share: Median over the processes of their units' coefficient of variation; None where each is one.
    """

    metric: str
    unit: str
    median: float
    between_cv_share: Share
    pair_spread_share: Share
    difference_share: float
    floor_share: Share
    smallest: list[SmallestEffect]
    within_cv_share: Share | None = None


class Calibration(msgspec.Struct, frozen=True):
    """The document of `longpole bench calibrate --json`.

    Attributes:
        schema: `longpole.calibration/1`.
        longpole: Version of the package.
        benchmark: What was run.
        semantic_id: Of the records that were compared.
        pairs: How many pairs of equal processes the figures rest on.
        order_seed: Of their random order.
        threshold_share: The threshold of `smallest`.
        figures: By metric.
        floors: Metric -> noise floor: a gate raises its threshold to it, and never lowers it.
        environment: Where it holds.
        flags: Flag -> processes that have it.
        warnings: What limits it.
        records: Run ids of the two records.
    """

    schema: Literal["longpole.calibration/1"]
    longpole: str
    benchmark: str
    semantic_id: str
    pairs: int
    order_seed: int
    threshold_share: float
    figures: list[CalibrationFigure]
    floors: dict[str, Share]
    environment: RecordEnvironment = msgspec.field(default_factory=RecordEnvironment)
    flags: dict[str, int] = {}
    warnings: list[str] = []
    records: list[str] = []


def read_calibration(path: Path) -> Calibration:
    """Read a calibration.

    Raises:
        InputError: It cannot be read, is of another version, or a field is wrong: file and field are named.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError.at(path, None, f"cannot be read: {error.strerror or error}", _HINT) from None
    try:
        found: Any = msgspec.json.decode(data, type=dict)
        if found.get("schema") != SCHEMA:
            raise InputError.at(path, None, f"expected the schema {SCHEMA!r}, found {found.get('schema')!r}", _HINT)
        return msgspec.convert(found, Calibration)
    except msgspec.ValidationError as error:
        raise InputError.at(path, None, f"{error}", _HINT) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError.at(path, None, f"not JSON: {error}", _HINT) from None
