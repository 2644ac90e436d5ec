"""Where a step of the program ends: after the step of its optimizer, or after a call of its outermost module."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_OTHER_STEPS = 8  # so many steps of another optimizer in a row, and the one that was followed is out of use


class OptimizerSteps:
    """Calls back after each step of the first optimizer that steps.

    The step's own method is wrapped and no hook of torch's is used: those run inside the annotation `Optimizer.step#…`,
    which would then reach over the boundary, and are not called where torch.compile has switched them off.
    """

    def __init__(self, torch: Any, on_step: Callable[[], None], on_optimizer: Callable[[], None]) -> None:
        self._torch = torch
        self._on_step = on_step
        self._on_optimizer = on_optimizer
        self._armed = False
        self._depth = 0
        self._followed: Any | None = None
        self._others: dict[int, int] = {}
        self._covered: list[tuple[type, Any, Any]] = []
        self._patch: Any = None

    def install(self) -> None:
        """Wrap the step of every class of which an optimizer is made from now on."""
        self._armed = True
        cls = self._torch.optim.Optimizer
        self._patch = patch = cls._patch_step_function  # where torch itself wraps the step

        @functools.wraps(patch)
        def patch_and_cover(optimizer: Any) -> None:
            patch(optimizer)
            if self._armed:
                self._cover(type(optimizer))
                self._on_optimizer()

        cls._patch_step_function = patch_and_cover

    def remove(self) -> None:
        """Put the methods back; what a scheduler has kept of them calls straight through."""
        self._armed = False
        if self._patch is not None:
            cls = self._torch.optim.Optimizer
            cls._patch_step_function = self._patch
        for covered, step, inner in self._covered:
            if covered.__dict__.get("step") is step:
                covered.step = inner  # type: ignore[attr-defined]
        self._covered.clear()

    def _cover(self, cls: Any) -> None:
        inner = cls.step
        if getattr(inner, "longpole_covers", None) is self:
            return
        is_compiling = self._torch.compiler.is_compiling

        @functools.wraps(inner)
        def step(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not self._armed or self._depth:
                return inner(*args, **kwargs)
            self._depth += 1
            try:
                result = inner(*args, **kwargs)
            finally:
                self._depth -= 1
            self._ended(args[0])
            return result

        step.longpole_covers = self  # type: ignore[attr-defined]
        cls.step = step
        self._covered.append((cls, step, inner))

    def _ended(self, optimizer: Any) -> None:
        followed = None if self._followed is None else self._followed()
        if followed is not optimizer:
            seen = self._others[id(optimizer)] = self._others.get(id(optimizer), 0) + 1
            if followed is not None and seen < _OTHER_STEPS:
                return
            self._followed = weakref.ref(optimizer)
        self._others.clear()
        self._on_step()


class ModuleCalls:
    """Calls back after each call of a module with parameters that is not called by another module."""

    def __init__(self, torch: Any, on_step: Callable[[], None]) -> None:
        self._torch = torch
        self._on_step = on_step
        self._armed = False
        self._depth = 0
        self._inner: Any = None
        self._wrapper: Any = None

    def install(self) -> None:
        """Wrap the call of modules.

        torch's global hooks are not used: while there is one, a compiled module warns.
        """
        self._armed = True
        self._inner = inner = self._torch.nn.Module.__call__
        is_compiling = self._torch.compiler.is_compiling

        @functools.wraps(inner)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not self._armed or self._depth:
                return inner(module, *args, **kwargs)
            self._depth += 1
            try:
                result = inner(module, *args, **kwargs)
            finally:
                self._depth -= 1
            if next(module.parameters(), None) is not None:
                self._on_step()
            return result

        self._wrapper = call
        self._torch.nn.Module.__call__ = call

    def remove(self) -> None:
        """Put the method back."""
        self._armed = False
        if self._torch.nn.Module.__call__ is self._wrapper:
            self._torch.nn.Module.__call__ = self._inner
