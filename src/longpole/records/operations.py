"""Tables of timed operations of a training job, as any framework's own timers may write them: columns and kinds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from longpole.errors import InvariantError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Codes: TypeAlias = NDArray[np.int32]
    Kinds: TypeAlias = NDArray[np.uint8]

NONE_ID: Final = -1  # micro-batch, chunk, group: the row has none


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """One column of a table as a user writes it.

    Attributes:
        name: Its name in the file.
        values: `integer`, `number` or `text`.
        meaning: One sentence, with the unit.
    """

    name: str
    values: str
    meaning: str


REQUIRED_COLUMNS: Final = (  # a table without one of them is refused
    WrittenColumn("step", "integer", "The step's number; gaps are allowed."),
    WrittenColumn("rank", "integer", "The global rank, one worker of the job."),
    WrittenColumn("dp_rank", "integer", "The worker's place in its data-parallel group, from 0."),
    WrittenColumn("stage", "integer", "The worker's pipeline stage, from 0."),
    WrittenColumn("optype", "text", "What is done: one of the names below, or any other for a computation."),
    WrittenColumn("start_ts", "number", "Start in seconds, on a clock that all ranks share in a step."),
    WrittenColumn("duration", "number", "How long it took, in seconds, waiting for others included."),
)
OPTIONAL_COLUMNS: Final = (
    WrittenColumn("start_ns", "integer", "Start in nanoseconds, in place of `start_ts`."),
    WrittenColumn("duration_ns", "integer", "Duration in nanoseconds, in place of `duration`."),
    WrittenColumn("tp_rank", "integer", "The worker's place in its tensor-parallel group; 0 where left out."),
    WrittenColumn("seq_id", "integer", "Number among the operations of one type of a worker in a step; else by start."),
    WrittenColumn("mb_id", "integer", "The micro-batch; -1 or empty for none."),
    WrittenColumn("mc", "integer", "The model chunk within the stage; -1 or empty for none."),
    WrittenColumn("gmc", "integer", "The model chunk within the model; -1 or empty for none."),
    WrittenColumn("kind", "text", "`compute`, `send`, `recv` or `collective`, where the name does not say it."),
    WrittenColumn(
        "group", "text", "Operations of one step, type and `seq_id` that share it run together, on any ranks."
    ),
)
WRITTEN_COLUMNS: Final = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
STANDS_IN: Final = {"start_ts": "start_ns", "duration": "duration_ns"}


class OperationKind(IntEnum):
    """How an operation depends on other workers."""

    COMPUTE = 0
    SEND = 1
    RECV = 2
    COLLECTIVE = 3


class Members(IntEnum):
    """Which workers take part in one instance of a collective."""

    ALONE = 0
    DATA = 1
    TENSOR = 2
    ENDS = 3
    ALL = 4


@dataclass(frozen=True, slots=True)
class OperationType:
    """What the name of an operation says of it.

    Attributes:
        name: As written.
        kind: How it depends on other workers.
        members: Of a collective: who takes part.
        direction: Of a point-to-point operation or a pass: +1 forward, -1 backward, 0 for neither.
        known: False for communication of which the name does not say who takes part.
    """

    name: str
    kind: OperationKind
    members: Members = Members.ALONE
    direction: int = 0
    known: bool = True


@dataclass(frozen=True, slots=True)
class TypeRule:
    """Names that mean one type; the first rule that matches the whole name counts."""

    pattern: str
    kind: OperationKind
    members: Members
    meaning: str


_COLLECTIVE_WORDS: Final = r"all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|broadcast|barrier"
TYPE_RULES: Final = (
    TypeRule(
        "(forward|backward|optimizer|gc)(-compute)?", OperationKind.COMPUTE, Members.ALONE, "computation of one worker"
    ),
    TypeRule("(forward|backward)-send", OperationKind.SEND, Members.ALONE, "to the next stage / the stage before"),
    TypeRule("(forward|backward)-recv", OperationKind.RECV, Members.ALONE, "from the stage before / the next stage"),
    TypeRule(
        f"(params?|grads?|separate-grads)-({_COLLECTIVE_WORDS})",
        OperationKind.COLLECTIVE,
        Members.DATA,
        "all data-parallel ranks of one stage",
    ),
    TypeRule(
        f"embedding-grads-({_COLLECTIVE_WORDS})",
        OperationKind.COLLECTIVE,
        Members.ENDS,
        "the first and the last stage of one data-parallel rank",
    ),
    TypeRule(
        f"(layernorm-grads|tp|tensor)-({_COLLECTIVE_WORDS})",
        OperationKind.COLLECTIVE,
        Members.TENSOR,
        "all tensor-parallel ranks at one place",
    ),
    TypeRule("optimizer-clip-main-grad", OperationKind.COLLECTIVE, Members.ALL, "all ranks: the norm of all gradients"),
)
_KIND_WORDS: Final = {kind.name.lower(): kind for kind in OperationKind}
_DIRECTIONS: Final = {"forward": 1, "backward": -1}


def operation_type(name: str, kind: str = "") -> OperationType:
    """Return what a name says of an operation.

    Args:
        name: As written in `optype`; underscores count as hyphens.
        kind: As written in the column `kind`, empty where it is not.

    >>> operation_type("forward-send").kind.name, operation_type("grads_reduce_scatter").members.name
    ('SEND', 'DATA')
    >>> operation_type("data-loading").kind.name, operation_type("moe-all-to-all").known
    ('COMPUTE', False)
    """
    plain = name.strip().lower().replace("_", "-")
    direction = _DIRECTIONS.get(plain.split("-", 1)[0], 0)
    rule = next((rule for rule in TYPE_RULES if re.fullmatch(rule.pattern, plain)), None)
    stated = _KIND_WORDS.get(kind.strip().lower())
    if rule is not None and stated in (None, rule.kind):
        return OperationType(name, rule.kind, rule.members, direction)
    if stated is not None:
        return OperationType(name, stated, Members.ALONE, direction, known=stated is OperationKind.COMPUTE)
    if re.search(_COLLECTIVE_WORDS, plain):
        return OperationType(name, OperationKind.COLLECTIVE, Members.ALONE, direction, known=False)
    return OperationType(name, OperationKind.COMPUTE, Members.ALONE, direction)


_TABLE_DTYPES: Final = {
    "step": "int64",
    "rank": "int32",
    "worker": "int32",
    "optype": "int32",
    "kind": "uint8",
    "sequence": "int32",
    "micro_batch": "int32",
    "chunk": "int32",
    "model_chunk": "int32",
    "group": "int32",
    "start_ns": "int64",
    "duration_ns": "int64",
    "row": "int64",
}


@dataclass(frozen=True, slots=True)
class Worker:
    """One rank and its place in the layout."""

    rank: int
    dp_rank: int
    stage: int
    tp_rank: int


@dataclass(frozen=True, slots=True)
class OperationTable:
    """The operations of a job, ordered by step, worker, start, end, type and sequence.

    Attributes:
        step: `[N]` int64: number of the step as written.
        rank: `[N]` int32: global rank.
        worker: `[N]` int32: index into `workers`.
        optype: `[N]` int32: index into `types`.
        kind: `[N]` uint8: a member of OperationKind.
        sequence: `[N]` int32: number among the worker's operations of that type in the step.
        micro_batch: `[N]` int32: the micro-batch, NONE_ID for none.
        chunk: `[N]` int32: the model chunk within the stage, NONE_ID for none.
        model_chunk: `[N]` int32: the model chunk within the model, NONE_ID for none.
        group: `[N]` int32: written group, NONE_ID for none.
        start_ns: `[N]` int64 ns since the step's first operation.
        duration_ns: `[N]` int64 ns.
        row: `[N]` int64: row in the files, counted over all of them.
        types: What `optype` counts into.
        workers: What `worker` counts into, by stage, data-parallel and tensor-parallel rank.
    """

    step: Ints
    rank: Codes
    worker: Codes
    optype: Codes
    kind: Kinds
    sequence: Codes
    micro_batch: Codes
    chunk: Codes
    model_chunk: Codes
    group: Codes
    start_ns: Ints
    duration_ns: Ints
    row: Ints
    types: tuple[OperationType, ...]
    workers: tuple[Worker, ...]

    def __post_init__(self) -> None:
        for name, dtype in _TABLE_DTYPES.items():
            array: NDArray[Any] = getattr(self, name)
            if array.dtype != np.dtype(dtype) or len(array) != len(self.step):
                msg = f"OperationTable.{name} is {array.dtype}[{len(array)}], expected {dtype}[{len(self.step)}]"
                raise InvariantError(msg)
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.step)

    @property
    def end_ns(self) -> Ints:
        """`[N]` int64 ns since the step's first operation: end (exclusive)."""
        return self.start_ns + self.duration_ns

    def take(self, rows: NDArray[Any]) -> OperationTable:
        """Return the table of the given rows, `[M]` indices or a mask of `[N]` bools; types and workers stay."""
        columns = {name: getattr(self, name)[rows] for name in _TABLE_DTYPES}
        return OperationTable(**columns, types=self.types, workers=self.workers)

    def of_worker(self, attribute: str) -> Codes:
        """Return `[N]` int32: an attribute of each row's worker (`dp_rank`, `stage`, `tp_rank`)."""
        return np.array([getattr(worker, attribute) for worker in self.workers], np.int32)[self.worker]

    def step_numbers(self) -> tuple[Ints, Codes]:
        """Return the steps in ascending order, and `[N]` int32: each row's place among them."""
        steps, place = np.unique(self.step, return_inverse=True)
        return steps, place.astype(np.int32)
