"""What is to be recorded: written by the launcher, read in the program."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

VARIABLE = "LONGPOLE_PROFILE"  # the request, as JSON
ROOT = "LONGPOLE_PROFILE_ROOT"  # process id of the command
STEPS = ("auto", "optimizer", "module")


@dataclass(frozen=True)
class Request:
    """What is to be recorded.

    Attributes:
        out: Folder for the traces, absolute.
        skip: How many steps pass before the window.
        warmup: How many steps the profiler warms up for; they are not kept.
        active: How many steps are kept.
        ranks: The ranks that record, all where None.
        step: What ends a step: `optimizer`, `module`, or `auto`.
        shapes: Record the shapes of operators' inputs.
        stacks: Record Python stacks.
        memory: Record allocations.
        quiet: Say nothing but failures.
    """

    out: str
    skip: int = 10
    warmup: int = 3
    active: int = 10
    ranks: tuple[int, ...] | None = None
    step: str = "auto"
    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    quiet: bool = False

    def encode(self) -> str:
        """Return the request as text for an environment variable."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Request:
        """Return the request that a text holds.

        Raises:
            ValueError: The text is no request.
        """
        try:
            told = json.loads(text)
            told["ranks"] = None if told["ranks"] is None else tuple(told["ranks"])
            return cls(**told)
        except (KeyError, TypeError) as error:
            message = f"{VARIABLE} holds no request: {error}"
            raise ValueError(message) from error

    def counts(self, rank: int) -> bool:
        """Tell whether a rank records."""
        return self.ranks is None or rank in self.ranks

    def speaks(self, rank: int) -> bool:
        """Tell whether a rank speaks for all: the lowest that records."""
        return rank == (0 if self.ranks is None else min(self.ranks))

    def remove_out_if_empty(self) -> bool:
        """Remove the folder for traces, and tell whether it was there and empty."""
        try:
            os.rmdir(self.out)  # noqa: PTH106 - pathlib is not loaded into programs that never import torch
        except OSError:
            return False
        return True
