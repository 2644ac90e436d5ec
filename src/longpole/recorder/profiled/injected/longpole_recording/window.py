"""The profiler, from its warm-up to the last step that is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .rank import is_distributed, world_told
from .trace_file import keep_trace

if TYPE_CHECKING:
    from pathlib import Path

    from .request import Request

COMPLETE = "complete"


class Window:
    """Records steps number `first + warmup` to `first + warmup + active - 1`, counted from 0, unless it is cut.

    Attributes:
        rank: Who records.
        recorded: How many whole steps have been recorded so far.
        path: The trace, once it is written.
        failure: Why it could not be written.
    """

    def __init__(self, torch: Any, request: Request, rank: int, first: int) -> None:
        self.recorded = 0
        self.path: Path | None = None
        self.failure: OSError | None = None
        self._torch = torch
        self._request = request
        self.rank = rank
        self._begin = first + request.warmup
        self._end = self._begin + request.active
        self._number = first
        self._distributed = False
        self._unfinished: str | None = None
        self._profile = self._make_profile()

    def start(self) -> None:
        """Start with the warm-up; the step that follows has the window's first number."""
        self._profile.step_num = self._number
        self._profile.start()

    def step(self) -> bool:
        """End a step, and tell whether it was the last; the trace is written then."""
        self._distributed = self._distributed or is_distributed(self._torch)
        self._number += 1
        self.recorded = max(0, self._number - self._begin)
        complete = self._number == self._end
        if complete:
            self._describe(COMPLETE)
        self._profile.step()
        if complete:
            self._profile.stop()  # closes the annotation of the step that is not recorded
        return complete

    def cut(self, reason: str) -> None:
        """End before the last step, and write what there is, if that is a step at all."""
        self._distributed = self._distributed or is_distributed(self._torch)
        if self.recorded:
            self._unfinished = f"ProfilerStep#{self._number}"
            self._describe(reason)
        else:
            self._profile.on_trace_ready = None
        self._profile.stop()

    def _make_profile(self) -> Any:
        profiler = self._torch.profiler
        request = self._request
        return profiler.profile(
            activities=_activities(self._torch),
            schedule=self._action,
            on_trace_ready=self._write,
            record_shapes=request.shapes,
            profile_memory=request.memory,
            with_stack=request.stacks,
        )

    def _action(self, number: int) -> Any:
        """Say what the profiler does in a step; `torch.profiler.schedule` counts from 0 and cannot."""
        action = self._torch.profiler.ProfilerAction
        if number < self._begin:
            return action.WARMUP
        if number < self._end - 1:
            return action.RECORD
        return action.RECORD_AND_SAVE if number < self._end else action.NONE

    def _describe(self, ended: str) -> None:
        """Write into the trace what it holds, and how many ranks there are where torch.distributed does not."""
        request = self._request
        told = {
            "ended": ended,
            "recorded_steps": self.recorded,
            "asked_steps": request.active,
            "first_step": self._begin,
        }
        self._profile.add_metadata_json("longpole_record", json.dumps(told))
        world = world_told()
        if not self._distributed and world is not None:
            self._profile.add_metadata_json("distributedInfo", json.dumps({"rank": self.rank, "world_size": world}))

    def _write(self, profile: Any) -> None:
        try:
            self.path = keep_trace(profile.export_chrome_trace, self._request.out, self.rank, self._unfinished)
        except OSError as error:
            self.failure = error


def _activities(torch: Any) -> Any:
    kinds = torch.profiler.ProfilerActivity
    found = [kinds.CPU]
    for name, kind in (("cuda", "CUDA"), ("xpu", "XPU")):
        device = getattr(torch, name, None)
        if device is not None and hasattr(kinds, kind) and device.is_available():
            found.append(getattr(kinds, kind))
    return found
