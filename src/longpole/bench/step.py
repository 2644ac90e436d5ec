"""`@benchmark`: mark a function as a step that `longpole bench run FILE.py::NAME` measures.

    from longpole import benchmark

    @benchmark(warmup=3, items=4096, item_kind="token", correct=lambda loss: loss < 10)
    def step():
        ...

The mark changes nothing: the function is called as before. Loads the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, overload

MARK: Final = "__longpole_benchmark__"
"""The attribute that carries a step's options."""

Step = TypeVar("Step", bound=Callable[..., Any])

WARMUP: Final = 3
_LEAST_SAMPLES: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """How a step is measured.

    Attributes:
        warmup: Samples of each process that are left out.
        samples: Samples of each process after those; None for as many as a second holds, from 5 to 100.
        items: Items that one call processes; None where it is not said.
        item_kind: What those are: `token`, `sample`, `request`.
        setup: Called once in each process; what it returns is handed to the step.
        correct: Is given a result of the step before anything is timed and once more at the end; false, or an
            AssertionError, makes the record invalid.
    """

    warmup: int = WARMUP
    samples: int | None = None
    items: int | None = None
    item_kind: str = ""
    setup: Callable[[], Any] | None = None
    correct: Callable[[Any], object] | None = None


@overload
def benchmark(step: Step, /) -> Step: ...
@overload
def benchmark(
    *,
    warmup: int = WARMUP,
    samples: int | None = None,
    items: int | None = None,
    item_kind: str = "",
    setup: Callable[[], Any] | None = None,
    correct: Callable[[Any], object] | None = None,
) -> Callable[[Step], Step]: ...
def benchmark(step: Step | None = None, /, **options: Any) -> Step | Callable[[Step], Step]:
    """Mark a function as a step that can be measured; with or without options.

    Args:
        step: The function, where there are no options.
        **options: As of `StepOptions`.

    Raises:
        TypeError: An option is not known.
        ValueError: A number is out of its range.
    """
    chosen = StepOptions(**options)
    if chosen.warmup < 0 or (chosen.samples is not None and chosen.samples < _LEAST_SAMPLES):
        msg = f"benchmark: expected warmup of at least 0 and samples of at least 1; found {chosen}"
        raise ValueError(msg)
    if chosen.items is not None and chosen.items < 1:
        msg = f"benchmark: expected items of at least 1, found {chosen.items}"
        raise ValueError(msg)

    def mark(function: Step) -> Step:
        setattr(function, MARK, chosen)
        return function

    return mark(step) if step is not None else mark
