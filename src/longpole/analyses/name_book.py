"""What every name of a timeline means, asked once per distinct name and kept as arrays over the name codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.vocabulary.declared import IN_FLIGHT, MARKER, RECORDED_BACKEND, declared_meaning
from longpole.vocabulary.objects import CALLS, OBJECTS, STAGES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.timeline.timeline import Timeline
    from longpole.vocabulary.matcher import Vocabulary
    from longpole.vocabulary.meanings import CopyMeaning, HostMeaning, KernelMeaning

    Small: TypeAlias = NDArray[np.int8]
    Flags: TypeAlias = NDArray[np.bool_]


OBJECT_CODE: Final = {name: code for code, name in enumerate(OBJECTS)}
CALL_CODE: Final = {name: code for code, name in enumerate(CALLS)}
_HOST_BACKENDS: Final = ("gloo", "mpi", "ucc", RECORDED_BACKEND)  # their spans on the host last as long as the transfer
STAGE_CODE: Final = {name: code for code, name in enumerate(STAGES)}


class NameBook:
    """Meanings of the names that occur in one timeline.

    Attributes:
        object: `[names]` int8: code into OBJECTS of the object activity that a host name is, -1 for none.
        call: `[names]` int8: code into CALLS, -1 for none.
        stage: `[names]` int8: code into STAGES, -1 where the name decides none.
        is_collective_op: `[names]` bool: host names that issue or await a collective.
        is_backend: `[names]` bool: spans of a communication library on the host.
        is_in_flight: `[names]` bool: from the call of a collective that returned at once to the end of the wait for it.
        is_collective: `[names]` bool: device names of collectives and point-to-point transfers.
        is_fused: `[names]` bool: device names that compute and communicate at once.
        is_declared: `[names]` bool: the program itself says what the span is.
        is_other_work: `[names]` bool: it says that the span is of an object other than compute.
        carries: `[names]` int8: code into OBJECTS of what copies carry that a host name launches, -1 where it says
            nothing.
        freight: `[names]` int8: code into OBJECTS of what it says a device span carries, -1 where it says nothing.
    """

    def __init__(self, timeline: Timeline, vocabulary: Vocabulary) -> None:
        n = len(timeline.names)
        self.names = timeline.names
        self._vocabulary = vocabulary
        self._said = timeline.told.names if timeline.told is not None else {}
        self.object: Small = np.full(n, -1, np.int8)
        self.call: Small = np.full(n, -1, np.int8)
        self.stage: Small = np.full(n, -1, np.int8)
        self.is_collective_op: Flags = np.zeros(n, np.bool_)
        self.is_backend: Flags = np.zeros(n, np.bool_)
        self.is_in_flight: Flags = np.zeros(n, np.bool_)
        self.is_collective: Flags = np.zeros(n, np.bool_)
        self.is_fused: Flags = np.zeros(n, np.bool_)
        self.is_declared: Flags = np.zeros(n, np.bool_)
        self.is_other_work: Flags = np.zeros(n, np.bool_)
        self.carries: Small = np.full(n, -1, np.int8)
        self.freight: Small = np.full(n, -1, np.int8)
        self._add_said()
        for code in _used(timeline.host.name, n):
            self._add_host(code, self.host(code))
        for code in _used(timeline.device.name, n):
            self._add_device(code)

    def host(self, code: int) -> HostMeaning:
        """Return what a host name means."""
        if code in self._said:
            return declared_meaning(self._vocabulary, self.names[code], self._said[code])
        return self._vocabulary.host(self.names[code])

    def kernel(self, code: int) -> KernelMeaning:
        """Return what the name of a kernel means."""
        return self._vocabulary.kernel(self.names[code])

    def copy(self, code: int) -> CopyMeaning:
        """Return what the name of a copy means."""
        return self._vocabulary.copy(self.names[code])

    def collective_kind(self, written: str) -> str:
        """Return what a collective's own name for itself (`_allgather_base`) means: one of COLLECTIVE_KINDS."""
        return self._vocabulary.host(f"nccl:{written}").kind

    def _add_said(self) -> None:
        for code, said in self._said.items():
            self.is_declared[code] = True
            self.is_other_work[code] = said.object not in ("", "compute", MARKER)
            self.freight[code] = OBJECT_CODE.get(said.object, -1)
            self.stage[code] = STAGE_CODE.get(said.stage, -1)

    def _add_device(self, code: int) -> None:
        if code in self._said and self._said[code].object:
            self.is_collective[code] = self._said[code].object == "collective"
            return
        meaning = self.kernel(code)
        self.is_collective[code] = meaning.is_collective
        self.is_fused[code] = meaning.is_fused

    def _add_host(self, code: int, meaning: HostMeaning) -> None:
        if meaning.object:
            self.object[code] = OBJECT_CODE[meaning.object]
        if meaning.call:
            self.call[code] = CALL_CODE[meaning.call]
        if meaning.carries:
            self.carries[code] = OBJECT_CODE[meaning.carries]
        if meaning.stage in STAGE_CODE:
            self.stage[code] = STAGE_CODE[meaning.stage]
        self.is_collective_op[code] = meaning.is_collective_op
        self.is_backend[code] = meaning.backend in _HOST_BACKENDS
        self.is_in_flight[code] = meaning.backend == IN_FLIGHT


def _used(codes: NDArray[np.int32], n: int) -> list[int]:
    seen = np.zeros(n, np.bool_)
    seen[codes] = True
    return np.flatnonzero(seen).tolist()
