"""A profiler that the program uses itself: two cannot run at once, and the program's own comes first."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class OtherProfilers:
    """Knows whether the program's own profiler is on, and calls back before it starts."""

    def __init__(self, torch: Any, make_way: Callable[[], None]) -> None:
        self._torch = torch
        self._make_way = make_way
        self._ours = 0
        self._open = 0
        self._wrapped: list[tuple[Any, str, Any, Any]] = []

    def install(self) -> None:
        """Watch the places in which a profiler of torch begins and ends."""
        profiler = self._torch.profiler
        lower = profiler.profile.__mro__[1]  # prepares every trace of torch.profiler, whoever asked for it
        self._wrap(profiler.profile, "start", self._begins)
        self._wrap(profiler.profile, "stop", self._ends)
        self._wrap(lower, "prepare_trace", self._takes_over)
        self._wrap(self._torch.autograd.profiler.profile, "__enter__", self._takes_over)

    def remove(self) -> None:
        """Put the methods back."""
        for cls, name, wrapper, inner in self._wrapped:
            if cls.__dict__.get(name) is wrapper:
                setattr(cls, name, inner)
        self._wrapped.clear()

    @contextlib.contextmanager
    def ours(self) -> Iterator[None]:
        """Take what is done meanwhile for our own."""
        self._ours += 1
        try:
            yield
        finally:
            self._ours -= 1

    def is_on(self) -> bool:
        """Tell whether the program's own profiler is on: it records, or annotates the steps that it lets pass."""
        enabled = getattr(self._torch.autograd, "_profiler_enabled", bool)
        return self._open > 0 or bool(enabled())

    def _wrap(self, cls: Any, name: str, before: Callable[[], None]) -> None:
        inner = getattr(cls, name)

        @functools.wraps(inner)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self._ours:
                before()
            return inner(*args, **kwargs)

        setattr(cls, name, wrapper)
        self._wrapped.append((cls, name, wrapper, inner))

    def _begins(self) -> None:
        self._open += 1
        self._make_way()

    def _ends(self) -> None:
        self._open = max(0, self._open - 1)

    def _takes_over(self) -> None:
        self._make_way()
