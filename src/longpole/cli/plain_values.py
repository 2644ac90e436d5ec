"""Texts of options handed to our commands as they are.

Typer reads every value through Pydantic, whose import costs 0.19 s: more than all else that a cached report does
before its first page. Our commands take texts and flags only, and read them in `values`, so nothing is lost.
"""

from __future__ import annotations

from typing import Any, Final

import typer

_PLAIN: Final = (str, list[str], bool)


class AsTyped:
    """Stands in for Typer's own reader of a parameter."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return a value as it was typed; the values of a repeated parameter as a list."""
        del param, ctx
        return list(value) if isinstance(value, tuple) else value


def hand_over_plainly(command: Any) -> None:
    """Hand the texts and flags of a command and its subcommands over as they were typed.

    A version of Typer that keeps its readers elsewhere is left alone: it is slower, and reads the same.

    Args:
        command: What `typer.main.get_command` returns.
    """
    # Not `command.params`: the option `--help` is made when it is first asked for.
    for parameter in command.get_params(typer.Context(command)):
        kept = getattr(parameter, "__dict__", {})
        described = getattr(parameter, "type_descriptor", None)
        if "_runtime_param" in kept and getattr(described, "annotation", None) in _PLAIN:
            kept["_runtime_param"] = AsTyped()
    for child in getattr(command, "commands", {}).values():
        hand_over_plainly(child)
