"""What the recorder's user said of a span, which no rule about names may overrule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.vocabulary.meanings import HostMeaning
from longpole.vocabulary.objects import ACTIVITY_OBJECTS, STAGES

if TYPE_CHECKING:
    from longpole.vocabulary.matcher import Vocabulary

MARKER: Final = "marker"  # the object of a span that only says where a unit of work begins and ends

# What an object's span is where its name says nothing finer; findings go by these activities.
_ACTIVITY: Final = {
    "input": "data_loader",
    "artifact": "weights_load",
    "state": "offload",
    "output": "write",
    "collective": "",
}
_WAIT: Final = {"output": "output_queue"}  # who waits for output waits for room: that is back-pressure


class Declared(msgspec.Struct, frozen=True):
    """What a program says of one of its spans.

    Attributes:
        object: One of OBJECTS, MARKER, or empty where only the name is given: then rules about names decide.
        stage: The stage of the unit, empty where not said.
        waits: It waits for what other threads or processes do for that object.
        kind: Of a collective between two marks: how its library calls it. With the object `collective` its call
            returned before it was done.
    """

    object: str = ""
    stage: str = ""
    waits: bool = False
    kind: str = ""


def declared_meaning(vocabulary: Vocabulary, name: str, said: Declared) -> HostMeaning:
    """Return what a span means: what is said of it, and for the rest what its name says.

    >>> from longpole.vocabulary.matcher import Vocabulary
    >>> declared_meaning(Vocabulary.load(), "save", Declared("input")).object
    'input'
    """
    if said.kind:
        kind = vocabulary.host(f"nccl:{said.kind}").kind
        backend = IN_FLIGHT if said.object else RECORDED_BACKEND
        return HostMeaning(object=said.object, is_collective_op=True, kind=kind, backend=backend)
    if said.object in ("compute", MARKER):
        return HostMeaning(stage=_stage(said, HostMeaning()))
    by_name = vocabulary.host(name)
    if not said.object:
        return replace(by_name, stage=_stage(said, by_name))
    if said.object not in ACTIVITY_OBJECTS:
        return HostMeaning(object=said.object, stage=_stage(said, HostMeaning()))
    agrees = by_name.object == said.object
    activity = by_name.activity if agrees else _ACTIVITY[said.object]
    return HostMeaning(
        object=said.object,
        activity=_WAIT.get(said.object, activity) if said.waits else activity,
        stage=_stage(said, by_name if agrees else HostMeaning()),
        loader_workers=said.waits if said.object == "input" else None,
    )


RECORDED_BACKEND: Final = "recorded"
"""The library of a collective that the recorder saw begin and end, whatever it is called."""

IN_FLIGHT: Final = "in flight"
"""That of one whose call returned before it was done: its end is that of the wait for it, not of the transfer."""


def _stage(said: Declared, by_name: HostMeaning) -> str:
    return said.stage if said.stage in STAGES else by_name.stage
