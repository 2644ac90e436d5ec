"""Changes in the order in which they stand on the command line, across options.

The command-line library hands over the values of each option by themselves; `--remove input --set compute=0.5x
--remove host` is told from another order of the same only by what was typed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TYPED: Final = "longpole.typed"


class KeepsTyped(TyperCommand):
    """A command that keeps what was typed for it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words, then read them as any command does."""
        ctx.meta[_TYPED] = list(args)
        return super().parse_args(ctx, args)


def typed_words(ctx: Any) -> list[str]:
    """Return what was typed for the command of a context."""
    typed: list[str] = ctx.meta.get(_TYPED, [])
    return typed


def in_typed_order(values: Mapping[str, Sequence[str] | bool], typed: Sequence[str]) -> list[tuple[str, str]]:
    """Put the values of several options in the order in which they were typed.

    Args:
        values: Option -> its values in order, or whether the flag was given.
        typed: The words of the command line, which give the order.

    Returns:
        (option, value) for each; a flag's value is empty. Where the order cannot be told, as `values` has them.

    >>> in_typed_order({"--set": ["a=0", "b=0"], "--remove": ["c"]}, ["--set=a=0", "--remove", "c", "--set", "b=0"])
    [('--set', 'a=0'), ('--remove', 'c'), ('--set', 'b=0')]
    """
    left = {option: _as_list(value) for option, value in values.items()}
    given: list[tuple[str, str]] = []
    for word in typed:
        option = word.partition("=")[0]
        if left.get(option):
            given.append((option, left[option].pop(0)))
    return given + [(option, value) for option, rest in left.items() for value in rest]


def _as_list(value: Sequence[str] | bool) -> list[str]:
    if isinstance(value, bool):
        return [""] if value else []
    return list(value)
