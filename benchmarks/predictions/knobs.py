"""What can be changed in the recorded program. Standard library only: the program's own interpreter reads it too."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

N_RANKS = 2
GATHERS = ("none", "extra", "late", "early")
PER_RANK = ("loader_ms", "preprocess_ms", "pause_ms", "attention_ms", "log_ms", "save_ms")


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """One configuration of the program. Costs are slept, once a step; a pair is (rank 0, rank 1).

    Attributes:
        loader_ms: fetching one batch, in the data set.
        workers: loader processes of each rank; 0 fetches in the main process.
        preprocess_ms: inside the range `preprocess_batch`.
        pause_ms: before preprocessing, in no range at all.
        attention_ms: the operator `bench::attention`, spread over four calls in the forward pass.
        log_ms: inside the range `log_metrics`, at the end of the step.
        save_ms: inside the range `save_checkpoint`, at the end of the step.
        save_in_thread: the save sleeps in a thread of its own; the next save waits for the one before.
        gather: an all-gather that is `extra` (nobody needs it, after the optimizer), or is needed before the last layer
            and issued there (`late`) or at the start of the forward pass (`early`).
        gather_mb: what each rank gives to it.
        blocks: of the model.
        width: of a block; its weights are width × 2 width and back.
        bucket_mb: DDP's bucket size; 0 is DDP's own default.
    """

    loader_ms: tuple[float, float] = (0.0, 0.0)
    workers: int = 0
    preprocess_ms: tuple[float, float] = (0.0, 0.0)
    pause_ms: tuple[float, float] = (0.0, 0.0)
    attention_ms: tuple[float, float] = (4.0, 4.0)
    log_ms: tuple[float, float] = (0.0, 0.0)
    save_ms: tuple[float, float] = (0.0, 0.0)
    save_in_thread: bool = False
    gather: str = "none"
    gather_mb: float = 0.0
    blocks: int = 4
    width: int = 192
    bucket_mb: float = 0.0


def parse_knobs(raw: Mapping[str, Any]) -> Knobs:
    """Read a configuration: what is not named keeps its default, and one number stands for both ranks.

    Args:
        raw: name -> value, as TOML or JSON has it.

    Returns:
        The configuration.

    Raises:
        ValueError: a name is not known, or a value is of another kind; the message names it.
    """
    defaults = asdict(Knobs())
    values: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in defaults:
            message = f"expected knobs of {', '.join(defaults)}; found {name!r}"
            raise ValueError(message)
        values[name] = _parse_pair(name, value) if name in PER_RANK else _parse_single(name, value, defaults[name])
    return replace(Knobs(), **values)


def _parse_pair(name: str, value: Any) -> tuple[float, float]:
    both = value if isinstance(value, (list, tuple)) else [value] * N_RANKS
    if len(both) != N_RANKS or not all(_is_cost(one) for one in both):
        message = f"{name}: expected milliseconds for each of {N_RANKS} ranks, not negative; found {value!r}"
        raise ValueError(message)
    return float(both[0]), float(both[1])


def _parse_single(name: str, value: Any, default: Any) -> Any:
    if name == "gather":
        fits = value in GATHERS
    elif isinstance(default, bool):
        fits = isinstance(value, bool)
    else:
        fits = _is_cost(value) and (isinstance(default, float) or isinstance(value, int))
    if not fits:
        message = f"{name}: expected a value like {default!r}; found {value!r}"
        raise ValueError(message)
    return float(value) if isinstance(default, float) else value


def _is_cost(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def changed_knobs(knobs: Knobs) -> dict[str, Any]:
    """Return the knobs that differ from their defaults, in their order."""
    standard = Knobs()
    return {
        field.name: getattr(knobs, field.name)
        for field in fields(knobs)
        if getattr(knobs, field.name) != getattr(standard, field.name)
    }


def name_knobs(knobs: Knobs) -> str:
    """Give a configuration a name that says what it is and can name a folder.

    Examples:
        >>> name_knobs(Knobs(loader_ms=(8, 8), workers=2))
        'loader8_workers2'
        >>> name_knobs(Knobs())
        'plain'
    """
    parts = []
    for name, value in changed_knobs(knobs).items():
        short = name.removesuffix("_ms").removesuffix("_mb").replace("_", "-")
        if isinstance(value, tuple):
            text = f"{value[0]:g}" if value[0] == value[1] else f"{value[0]:g}-{value[1]:g}"
        elif isinstance(value, float):
            text = f"{value:g}"
        else:
            text = "" if value is True else f"{value}"
        parts.append(f"{short}{text}")
    return "_".join(parts) or "plain"
