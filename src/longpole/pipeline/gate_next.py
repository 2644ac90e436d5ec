"""The next command to type after a gate that does not simply pass."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longpole.report.gate import Gate


def next_command(gate: Gate, commands: tuple[str, str], max_pairs: int) -> str:
    """Return the command that brings a reader on; empty where nothing needs to be done.

    Args:
        gate: The answer.
        commands: What was run as pairs; empty texts for records.
        max_pairs: How many pairs were allowed.
    """
    if gate.verdict in ("same", "improved"):
        return ""
    if gate.verdict == "invalid":
        return _after_invalid(gate, commands)
    if gate.verdict == "inconclusive":
        return _more_pairs(gate, commands, max_pairs)
    if gate.base.paths and gate.new.paths:
        return shlex.join(["longpole", "bench", "compare", gate.base.paths[0], gate.new.paths[0]])
    return f"{_gate(commands)} --records gate-records"


def _gate(commands: tuple[str, str]) -> str:
    return shlex.join(["longpole", "bench", "gate", "--a", commands[0], "--b", commands[1]])


def _after_invalid(gate: Gate, commands: tuple[str, str]) -> str:
    """Offer what would make it valid: the difference allowed, the failing command alone, or a look at the machine."""
    keys = list(
        dict.fromkeys(e.key for e in gate.differences if e.severity == "void" and e.key and _may_be_allowed(e.what))
    )
    if keys and not commands[0]:
        allowed = [word for key in keys for word in ("--allow-diff", key)]
        return shlex.join(["longpole", "bench", "gate", *gate.base.paths, *gate.new.paths, *allowed])
    for side, command in zip((gate.base, gate.new), commands, strict=True):
        if side.left_out and command and any("exit" in why or "signal" in why for why in side.left_out):
            return command
    return "longpole bench doctor"


def _may_be_allowed(what: str) -> bool:
    return what in ("benchmark", "machine", "devices", "versions", "contract", "shapes")


def _more_pairs(gate: Gate, commands: tuple[str, str], max_pairs: int) -> str:
    """Offer as many pairs as would settle it where that is known, else twice as many."""
    needed = [figure.pairs_needed for figure in gate.figures if isinstance(figure.pairs_needed, int)]
    pairs = max(max(needed, default=0), 2 * max_pairs)
    if commands[0]:
        return f"{_gate(commands)} --max-pairs {pairs} --budget 30min"
    if gate.base.command and gate.new.command:
        return _gate((gate.base.command, gate.new.command))
    return "longpole bench gate --a 'COMMAND OF THE BASELINE' --b 'THE OTHER COMMAND'"
