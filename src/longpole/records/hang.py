"""What holds a job up that does not go on, as it is stored (`longpole.hang/1`)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

SCHEMA: Final = "longpole.hang/1"

Verdict: TypeAlias = Literal["host", "device", "mismatch", "order", "transfer", "not_told", "none"]


class HangSource(msgspec.Struct, frozen=True):
    """A file that was read.

    Attributes:
        path: As it was given.
        what: `flight_recorder` or `stacks`.
        rank: Whose it is.
        version: Of the format, empty where it says none.
        entries: Operations or threads in it.
        left_out: Operations that could not be read.
    """

    path: str
    what: str
    rank: int
    version: str
    entries: int
    left_out: int


class HangOperation(msgspec.Struct, frozen=True):
    """An operation of a group.

    Attributes:
        group: Name of the group.
        description: What the group is for, empty where nobody says.
        sequence: Its number among the group's collectives.
        operation: `all_reduce`, `send`, …
        sizes: Shapes of what was passed in, as text.
        dtype: Element type, empty where there is none.
        where: Innermost frame of the program that issued it, empty where stacks were not dumped.
    """

    group: str
    description: str
    sequence: int
    operation: str
    sizes: str
    dtype: str
    where: str


class HangRoot(msgspec.Struct, frozen=True):
    """A rank that the others wait for, and that waits for nobody.

    Attributes:
        rank: The rank.
        kind: `host`: its program never came; `device`: it came, and its device does not finish what the others did;
            `mismatch`: it came with another operation; `order`: it is part of a circle; `transfer`: both ends are
            there, and nothing moves.
        says: In a sentence.
        at: The operation that it holds up.
        last: The last operation that it issued, null where none is recorded.
        doing: What its main thread did, by its stack: `data_loader`, `checkpoint`, `collective`, `transfer`,
            `compilation`, `device`, `garbage_collection`, `other`; empty where no stack was given.
        stack: The innermost frames of that thread.
        waited_for_by: Ranks that wait for it, through others too.
    """

    rank: int
    kind: Verdict
    says: str
    at: HangOperation
    last: HangOperation | None
    doing: str
    stack: list[str]
    waited_for_by: list[int]


class HangWaiting(msgspec.Struct, frozen=True):
    """A rank that waits.

    Attributes:
        rank: The rank.
        at: What it is in.
        for_ranks: Whom it waits for; empty where that is not known.
        since_ns: When it issued that, ns since the epoch; null where the dump does not say.
    """

    rank: int
    at: HangOperation
    for_ranks: list[int]
    since_ns: int | None


class HangMismatch(msgspec.Struct, frozen=True):
    """Members that issued different operations under one number.

    Attributes:
        at: What most members issued.
        what: `operation`, `sizes` or `dtype`.
        odd: Ranks that differ from the most; all of them where no side has more.
        says: In a sentence.
    """

    at: HangOperation
    what: str
    odd: list[int]
    says: str


class HangGroup(msgspec.Struct, frozen=True):
    """A group in which somebody waits.

    Attributes:
        name, description: Of the group.
        members: Ranks in it.
        members_inferred: No dump lists them: they are the ranks that used it.
        compare_from: First number that all members' recorders still hold, null where there is none.
        stuck_at: First number that is not done everywhere.
        entered: Members that issued it and were still in it.
        finished: Members that are done with it.
        not_entered: Members that had not issued it.
        no_dump: Members without a dump.
    """

    name: str
    description: str
    members: list[int]
    members_inferred: bool
    compare_from: int | None
    stuck_at: int
    entered: list[int]
    finished: list[int]
    not_entered: list[int]
    no_dump: list[int]


class Hang(msgspec.Struct, frozen=True):
    """The document of `longpole hang --json`.

    Attributes:
        schema: `longpole.hang/1`.
        longpole: Version of the package.
        verdict: Kind of the first root; `none` where nothing waits, `not_told` where something does and no root is
            found.
        says: In a sentence.
        ranks: Ranks with a dump.
        empty: Those whose dump holds no operation.
        world_size: Ranks in the job, null where no group tells.
        missing: Ranks of the job without a dump.
        roots: The first one holds up the most ranks.
        waiting: Ranks that wait.
        mismatches: Operations that do not fit.
        groups: Groups in which somebody waits.
        cautions: What makes the answer less sure.
        sources: Files that were read.
    """

    schema: Literal["longpole.hang/1"]
    longpole: str
    verdict: Verdict
    says: str
    ranks: list[int]
    empty: list[int]
    world_size: int | None
    missing: list[int]
    roots: list[HangRoot]
    waiting: list[HangWaiting]
    mismatches: list[HangMismatch]
    groups: list[HangGroup]
    cautions: list[str]
    sources: list[HangSource]
