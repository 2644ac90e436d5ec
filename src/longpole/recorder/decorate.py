"""Spans around functions of every sort: plain, coroutine, generator, asynchronous generator."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from longpole.recorder.session import STATE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractContextManager

Function = TypeVar("Function", bound="Callable[..., Any]")
OpenSpan: TypeAlias = "Callable[[], AbstractContextManager[Any]]"


def decorate(function: Function, span: OpenSpan) -> Function:
    """Return a function of the same sort that runs inside a new span each time.

    A generator's consumer works while it is suspended, so each of its steps is a span. A coroutine is one span, from
    its start to its end, waits included.
    """
    if inspect.isasyncgenfunction(function):
        return _around_async_generator(function, span)
    if inspect.iscoroutinefunction(function):
        return _around_coroutine(function, span)
    if inspect.isgeneratorfunction(function):
        return _around_generator(function, span)
    return _around_function(function, span)


def _around_function(function: Any, span: OpenSpan) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if STATE.recorder is None:
            return function(*args, **kwargs)
        with span():
            return function(*args, **kwargs)

    return call


def _around_coroutine(function: Any, span: OpenSpan) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with span():
            return await function(*args, **kwargs)

    return call


def _around_generator(function: Any, span: OpenSpan) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = function(*args, **kwargs)
        step = functools.partial(next, inner)
        try:
            while True:
                with span():
                    try:
                        value = step()
                    except StopIteration as end:
                        return end.value
                try:
                    step = functools.partial(inner.send, (yield value))
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever is thrown in is the inner generator's
                    step = functools.partial(inner.throw, error)
        finally:
            inner.close()

    return call


def _around_async_generator(function: Any, span: OpenSpan) -> Any:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        step = functools.partial(anext, inner)
        try:
            while True:
                with span():
                    try:
                        value = await step()
                    except StopAsyncIteration:
                        return
                try:
                    step = functools.partial(inner.asend, (yield value))
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever is thrown in is the inner generator's
                    step = functools.partial(inner.athrow, error)
        finally:
            await inner.aclose()

    return call
