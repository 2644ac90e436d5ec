"""What can be changed in the recorded program: the knobs of the predictions' program, and those that verify needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from benchmarks.predictions.knobs import Knobs, parse_knobs

if TYPE_CHECKING:
    from collections.abc import Mapping

FETCHES = ("fresh", "cached", "stale")


@dataclass(frozen=True, kw_only=True)
class Setting(Knobs):
    """One configuration of the program. Costs are slept, once a step; a pair is (rank 0, rank 1).

    Attributes:
        batch: rows of a step on each rank.
        item_ms: what preparing one row takes, inside the range `preprocess_batch`.
        log_every: `log_ms` is paid in every n-th step only.
        save_joined: a save in a thread is waited for at once, where no range says so.
        barrier: all ranks meet at the end of a step.
        pace_ms: no step goes on to the optimizer sooner than this after the one before did (range `rate_limiter`).
        fetch: a batch is fetched from the slow store (`fresh`), was loaded into memory before the training (`cached`),
            or is kept from the first fetch on by a cache that forgets to look at the index (`stale`).
        cache_mb: what the cache of `cached` holds.
    """

    width: int = 64  # little real work: it is what varies from run to run
    batch: int = 16
    item_ms: float = 0.0
    log_every: int = 1
    save_joined: bool = False
    barrier: bool = False
    pace_ms: float = 0.0
    fetch: str = "fresh"
    cache_mb: float = 0.0


def parse_setting(raw: Mapping[str, Any]) -> Setting:
    """Read a configuration: what is not named keeps its default, and one number stands for both ranks.

    Args:
        raw: name -> value, as TOML or JSON has it.

    Returns:
        The configuration.

    Raises:
        ValueError: a name is not known, or a value is of another kind; the message names it.
    """
    own = {name: value for name, value in asdict(Setting()).items() if name not in asdict(Knobs())}
    knobs = parse_knobs({"width": Setting().width} | {name: value for name, value in raw.items() if name not in own})
    values = {name: _parse_own(name, raw[name], default) for name, default in own.items() if name in raw}
    return Setting(**{**asdict(knobs), **values})


def _parse_own(name: str, value: Any, default: Any) -> Any:
    if name == "fetch":
        fits = value in FETCHES
    elif isinstance(default, bool):
        fits = isinstance(value, bool)
    elif isinstance(default, int):
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    else:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    if not fits:
        message = f"{name}: expected a value like {default!r}; found {value!r}"
        raise ValueError(message)
    return float(value) if isinstance(default, float) else value


def changed_values(setting: Setting) -> dict[str, Any]:
    """Return what differs from the defaults, in the order of the attributes."""
    standard = Setting()
    return {
        field.name: getattr(setting, field.name)
        for field in fields(setting)
        if getattr(setting, field.name) != getattr(standard, field.name)
    }
