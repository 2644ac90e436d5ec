"""A sampler for a DataLoader that divides each global batch over the ranks by what its sequences cost.

Every rank computes the same division from the same seed and epoch, so that nothing has to be sent; it needs no torch,
and torch's DataLoader takes it as `batch_sampler`.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.balance.batch import Batch, in_rotation
from longpole.costs.balance.choose import balance
from longpole.costs.balance.sequence_cost import BY_SQUARE, BY_TOKENS, LengthCost
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENOUGH_SHARE: Final = 0.005
"""Over the bound: the search runs on the host between two steps, and from there on takes longer than what it saves
(decision 0037 has the times)."""

_COSTS: Final = {"tokens": BY_TOKENS, "square": BY_SQUARE}


class BalancedBatchSampler:
    """Batches of one rank, such that all ranks are done with theirs at about the same time.

    The data set is shuffled by seed and epoch and cut into global batches; each is divided over the ranks by cost, and
    what falls to this rank is one batch of its DataLoader. So the sequences of a global batch are those of an
    unbalanced sampler that shuffles so; only which rank computes them differs. How many sequences and tokens a rank
    gets differs too: a loss that is averaged within each rank and then over ranks would weigh sequences by the company
    that they are in. Divide the sum of all losses by the tokens (or sequences) of the whole batch.

        sampler = BalancedBatchSampler(lengths, ranks=8, rank=rank, batch_size=256)
        loader = DataLoader(data, batch_sampler=sampler, collate_fn=...)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for batch in loader: ...

    Args:
        lengths: Tokens of each sequence of the data set, in its order.
        ranks: How many ranks divide a batch.
        rank: Whose batches these are.
        batch_size: Sequences of a global batch, over all ranks.
        cost: `tokens`, `square` (attention's), or anything with `of_all(lengths)`: a `SequenceCost` of both, or a
            `ModelCost`.
        speeds: Of each rank, in proportion; equal unless given.
        equal_counts: Whether all ranks get as many sequences of a batch, give or take one.
        shuffle: Whether the order changes from epoch to epoch.
        seed: Of the order.
        drop_last: Leave out a last batch that is not full. Otherwise it is divided as it is, and where it has fewer
            sequences than there are ranks, sequences from the beginning of the epoch are repeated in it: a rank without
            a batch would leave the others waiting.
        enough_share: A division is good enough that is over the bound by no more than this share of it.

    Raises:
        UsageError: An argument is none of what is accepted.
    """

    def __init__(  # noqa: PLR0913 - a DataLoader's sampler is made in one call
        self,
        lengths: Sequence[int],
        *,
        ranks: int,
        rank: int,
        batch_size: int,
        cost: str | LengthCost = "tokens",
        speeds: Sequence[float] | None = None,
        equal_counts: bool = False,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        enough_share: float = ENOUGH_SHARE,
    ) -> None:
        _check_counts(ranks, rank, batch_size, speeds)
        self.lengths = whole_lengths(lengths)
        self.ranks = ranks
        self.rank = rank
        self.batch_size = batch_size
        self.cost = _cost(cost)
        self.speeds = [float(speed) for speed in speeds] if speeds is not None else [1.0] * ranks
        self.equal_counts = equal_counts
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.enough_share = enough_share
        self.epoch = 0
        self.done_batches = 0
        Batch([], self.speeds)  # refuses speeds that are none
        if not self.lengths:
            msg = "lengths: expected at least one sequence, found none"
            raise UsageError(msg)

    def set_epoch(self, epoch: int, *, done_batches: int = 0) -> None:
        """Say which epoch the next pass is, the same on every rank.

        Args:
            epoch: Its number.
            done_batches: How many of its batches were already computed, by a job that is resumed; left out.

        Raises:
            UsageError: The epoch has no more batches than that.
        """
        if not 0 <= done_batches < max(self._batches, 1):
            msg = f"done_batches: expected 0 to {max(self._batches - 1, 0)}, found {done_batches}"
            raise UsageError(msg)
        self.epoch = epoch
        self.done_batches = done_batches

    def __len__(self) -> int:
        """Return how many batches the next pass has: the same on every rank."""
        return self._batches - self.done_batches

    @property
    def _batches(self) -> int:
        whole, rest = divmod(len(self.lengths), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield this rank's batches of an epoch: places in the data set."""
        for number, places in enumerate(self.global_batches(), self.done_batches):
            yield self.divide(places, number)[self.rank]

    def global_batches(self) -> Iterator[list[int]]:
        """Yield the global batches of an epoch, before they are divided."""
        order = list(range(len(self.lengths)))
        if self.shuffle:
            # Only the stream of `random()` is promised to stay as it is from one Python to the next.
            draw = Random(f"{self.seed}/{self.epoch}").random
            keys = [draw() for _ in order]
            order.sort(key=keys.__getitem__)
        for number in range(self.done_batches, self._batches):
            places = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield places + [order[at % len(order)] for at in range(max(self.ranks - len(places), 0))]

    def divide(self, places: Sequence[int], number: int = 0) -> list[list[int]]:
        """Return what of a global batch falls to each rank.

        Args:
            places: In the data set.
            number: Of the batch in the epoch: where ranks are as fast, they take turns with the longest sequence.
        """
        batch = Batch(self.cost.of_all([self.lengths[place] for place in places]), self.speeds, self.equal_counts)
        parts = in_rotation(batch, balance(batch, enough_share=self.enough_share).parts, number)
        return [[places[at] for at in part] for part in parts]


def whole_lengths(lengths: Sequence[int]) -> list[int]:
    """Return lengths as plain integers, be they a list, an array or a tensor.

    Raises:
        UsageError: One of them is none.
    """
    values: list[Any] = lengths.tolist() if hasattr(lengths, "tolist") else list(lengths)
    for place, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            msg = f"lengths: expected whole numbers of tokens of at least 0; sequence {place} has {value!r}"
            raise UsageError(msg)
    return values


def _cost(cost: str | LengthCost) -> LengthCost:
    if not isinstance(cost, str):
        return cost
    if cost not in _COSTS:
        msg = f"cost: expected {', '.join(_COSTS)} or a SequenceCost, found {cost!r}"
        raise UsageError(msg)
    return _COSTS[cost]


def _check_counts(ranks: int, rank: int, batch_size: int, speeds: Sequence[float] | None) -> None:
    if ranks < 1 or not 0 <= rank < ranks:
        msg = f"rank: expected one of 0 to {ranks - 1} of at least one rank; found rank {rank} of {ranks}"
        raise UsageError(msg)
    if batch_size < ranks:
        msg = f"batch_size: expected at least one sequence for each of {ranks} ranks, found {batch_size} in all"
        raise UsageError(msg)
    if speeds is not None and len(speeds) != ranks:
        msg = f"speeds: expected one for each of {ranks} ranks, found {len(speeds)}"
        raise UsageError(msg)
