"""Sequences divided over ranks as one value; the page and the JSON document pour it out (`longpole.balance/1`)."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from longpole.records.ledger import Unknown
from longpole.report.document import UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.balance/1"

METHOD_WORDS: Final = {
    "in_turn": "dealt out in turn",
    "in_blocks": "in blocks",
    "longest_first": "longest first",
    "differencing": "differencing",
    "multifit": "multifit",
    "exchange": "local exchange",
    "exact": "all divisions",
}
"""What a person calls the methods."""

COST_WORDS: Final = {
    "tokens": "tokens",
    "square": "attention's square",
    "crossover": "tokens and attention's square",
    "flops": "the model's FLOPs",
}
"""What a person calls the costs."""


class BalanceCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a sequence costs.

    Attributes:
        by: `tokens`, `square`, `crossover` or `flops`.
        formula: Over the tokens s of a sequence.
        unit: Of the cost.
        model, convention: Whose FLOPs, and as who counts them; empty for the other costs.
    """

    by: Literal["tokens", "square", "crossover", "flops"]
    formula: str
    unit: str
    model: str = ""
    convention: str = ""


class BalanceLoad(msgspec.Struct, frozen=True, kw_only=True):
    """How even a way to divide is, over all batches: ranks wait for one another after each.

    Attributes:
        method: How it was divided.
        load: What the last ranks take, summed over the batches: cost over speed.
        over_mean: That over what all would take if costs were divisible at will; 1 is even.
        wait_share: The part of the ranks' time in which they wait for the last one, speeds weighted.
        tokens_over_mean, squares_over_mean: As `over_mean`, of tokens and of attention's square, whatever is balanced.
        most_tokens: The most tokens that a rank has at once: activations grow with them.
        most_sequences: The most sequences that a rank has at once.
    """

    method: str
    load: float
    over_mean: float
    wait_share: float
    tokens_over_mean: float
    squares_over_mean: float
    most_tokens: int
    most_sequences: int


class BalanceMethod(msgspec.Struct, frozen=True, kw_only=True):
    """What one method reaches.

    Attributes:
        method: Its name.
        load: What the last ranks take, summed over the batches; a method that was not needed in one, because an earlier
            one met the bound, counts there with the earlier one's.
        over_bound_share: By how much that is over the bound.
    """

    method: str
    load: float
    over_bound_share: float


class BalanceRank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank before and after.

    Attributes:
        rank: Which.
        speed: What was reckoned with, relative to the others'.
        measured_speed: As a trace has it, before speeds that do not differ surely were set to 1; None without a trace.
        sequences_before, sequences_after: Over all batches.
        tokens_before, tokens_after: The same.
        wait_share_before, wait_share_after: The part of the steps' time in which it waits for the last rank.
    """

    rank: int
    speed: float
    measured_speed: float | None
    sequences_before: int
    sequences_after: int
    tokens_before: int
    tokens_after: int
    wait_share_before: float
    wait_share_after: float


class Balance(msgspec.Struct, kw_only=True):
    """The document of `longpole balance --json`.

    Attributes:
        schema: `longpole.balance/1`.
        longpole: Version of the package.
        source: The file of the lengths; empty where they came from a program.
        says: The result in a sentence.
        cost: What a sequence costs.
        speeds_from: `equal`, `given`, or the trace's path.
        equal_counts: Whether all ranks must get as many sequences.
        sequences, tokens, longest_tokens, median_tokens: What there is to divide.
        batch_size: Sequences of a full batch over all ranks.
        batches: How many batches.
        before, after: How it was and how it is divided.
        faster_share: By how much shorter the steps are, as far as they are this cost.
        methods: What each method reaches.
        bound: What no division is below, summed over the batches.
        optimum: The same of the best division there is, where that is known.
        ranks: Each rank, before and after.
        assignment: By batch and by rank: the places of sequences in the file, from 0.
        notes: What a reader should know.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: Literal["longpole.balance/1"] = SCHEMA
    longpole: str
    source: str
    says: str
    cost: BalanceCost
    speeds_from: str
    equal_counts: bool
    sequences: int
    tokens: int
    longest_tokens: int
    median_tokens: float
    batch_size: int
    batches: int
    before: BalanceLoad
    after: BalanceLoad
    faster_share: float
    methods: list[BalanceMethod]
    bound: float
    optimum: float | Unknown
    ranks: list[BalanceRank]
    assignment: list[list[list[int]]]
    notes: list[str] = []
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def balance_schema() -> bytes:
    """Return the JSON Schema of `longpole balance --json`."""
    return document_schema(Balance, SCHEMA)
