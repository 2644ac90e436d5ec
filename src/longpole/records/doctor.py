"""What makes a machine noisy, as it is stored (`longpole.doctor/1`)."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from longpole.records.run_record import RecordEnvironment

SCHEMA: Final = "longpole.doctor/1"

Share: TypeAlias = Annotated[float, Meta(ge=0)]
Status: TypeAlias = Literal["noisy", "may matter", "quiet", "not known"]
ORDER: Final[tuple[Status, ...]] = ("noisy", "may matter", "not known", "quiet")


class DoctorCheck(msgspec.Struct, frozen=True):
    """One thing that was looked at.

    Attributes:
        name: What: `governor`, `other load`, …
        status: `noisy` where it disturbs measurements now, `may matter` where it can, `quiet`, or `not known`.
        found: What was found, in words.
        why: Why it matters; empty where it is quiet.
        remedy: What to do; empty where nothing needs doing or nothing can be done.
    """

    name: str
    status: Status
    found: str
    why: str = ""
    remedy: str = ""


class DoctorLoop(msgspec.Struct, frozen=True):
    """What a fixed loop of arithmetic took here, again and again: the noise that no benchmark can be free of.

    Attributes:
        processes: How many fresh processes ran it.
        rounds: How often each did.
        median_ns: Median over the processes of a round's median.
        within_cv_share: Median over the processes of the rounds' coefficient of variation.
        between_cv_share: Coefficient of variation of the processes' medians.
        slowest_share: How much longer than the median the slowest round of all took.
    """

    processes: int
    rounds: int
    median_ns: int
    within_cv_share: Share
    between_cv_share: Share
    slowest_share: float


class Doctor(msgspec.Struct, frozen=True):
    """The document of `longpole bench doctor --json`.

    Attributes:
        schema: `longpole.doctor/1`.
        longpole: Version of the package.
        noisy: Whether something disturbs measurements now.
        says: The verdict in a sentence.
        checks: What was looked at, the gravest first.
        loop: What a fixed loop took; None where it was not run, or could not be.
        watched_s: How long the machine was watched at rest.
        conditions: What it was like meanwhile: name -> figure.
        environment: The machine.
    """

    schema: Literal["longpole.doctor/1"]
    longpole: str
    noisy: bool
    says: str
    checks: list[DoctorCheck]
    loop: DoctorLoop | None
    watched_s: float
    conditions: dict[str, float] = {}
    environment: RecordEnvironment = msgspec.field(default_factory=RecordEnvironment)
