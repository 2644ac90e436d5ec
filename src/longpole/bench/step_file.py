"""What the process of a step writes while it measures: a line of JSON for each thing, readable up to the last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from longpole.records.run_record import RecordCheck

if TYPE_CHECKING:
    from pathlib import Path

STEP_FILE: Final = "step.jsonl"
"""Its name in the folder that the process is given."""

_Ns: TypeAlias = Annotated[int, Meta(ge=0)]


class SampleLine(msgspec.Struct, tag_field="k", tag="sample", omit_defaults=True):
    """One sample: so many calls of the step, timed together.

    Attributes:
        start_ns, duration_ns: On the process's clock, device work included.
        calls: How many calls it was.
        left_out: Why it does not count.
        conditions, flags: As of a unit of a record.
    """

    start_ns: _Ns
    duration_ns: _Ns
    calls: Annotated[int, Meta(ge=1)] = 1
    left_out: str = ""
    conditions: dict[str, float] = {}
    flags: list[str] = []


class CheckLine(msgspec.Struct, tag_field="k", tag="check", omit_defaults=True):
    """What a check of the step's result said; `says` is empty where it is right."""

    name: str
    says: str = ""


class FactsLine(msgspec.Struct, tag_field="k", tag="facts"):
    """What the process says of itself: seeds, items, how samples are taken."""

    facts: dict[str, Any]


class ErrorLine(msgspec.Struct, tag_field="k", tag="error"):
    """Why the step could not be measured to its end."""

    says: str


StepLine: TypeAlias = SampleLine | CheckLine | FactsLine | ErrorLine


@dataclass(slots=True)
class StepReport:
    """What a process of a step left behind.

    Attributes:
        samples: In order.
        checks: Of the results.
        facts: Of the process.
        error: Why it did not come to its end; empty where it did.
    """

    samples: list[SampleLine] = field(default_factory=list)
    checks: list[RecordCheck] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    error: str = ""


def read_step_file(path: Path) -> StepReport:
    """Read what there is: nothing where there is no such file, and no line that is cut off."""
    report = StepReport()
    try:
        data = path.read_bytes()
    except OSError:
        return report
    decoder = msgspec.json.Decoder(StepLine)
    for line in data.split(b"\n"):
        try:
            found = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        match found:
            case SampleLine():
                report.samples.append(found)
            case CheckLine():
                report.checks.append(RecordCheck(found.name, "failed" if found.says else "passed", found.says))
            case FactsLine():
                report.facts |= found.facts
            case ErrorLine():
                report.error = found.says
    return report
