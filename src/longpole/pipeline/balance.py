"""`longpole balance`: read lengths, divide them batch by batch, and say what that is better by."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.costs.balance.batch import Batch, Parts, in_blocks, in_rotation, in_turn
from longpole.costs.balance.choose import METHODS, balance
from longpole.costs.balance.exact import SEQUENCES_MAX, optimum
from longpole.costs.balance.sampler import whole_lengths
from longpole.costs.balance.sequence_cost import BY_SQUARE, BY_TOKENS, ModelCost, by_crossover
from longpole.errors import InputError, UsageError
from longpole.pipeline.version import package_version
from longpole.records.ledger import Unknown
from longpole.report.balance import METHOD_WORDS, Balance, BalanceCost, BalanceLoad, BalanceMethod, BalanceRank
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from longpole.costs.architecture import Architecture
    from longpole.costs.balance.choose import Balanced
    from longpole.costs.balance.sequence_cost import LengthCost
    from longpole.digest.rank_speeds import RankSpeeds
    from longpole.pipeline.reading import ReportOptions

BEFORE: Final[dict[str, Callable[[Batch], Parts]]] = {"in_turn": in_turn, "in_blocks": in_blocks}
"""How lengths are divided today: as torch's DistributedSampler deals them out, or in runs."""

COSTS: Final = ("tokens", "square")
_STEPS_MAX: Final = 200_000  # of the search for the optimum, over all batches: about half a second
_RANKS_MAX: Final = 1 << 20
_TRIED: Final = (*METHODS, "exact")
_MANY_BATCHES: Final = 100
_ENOUGH_OF_MANY: Final = 0.001  # over the bound: three times as fast (decision 0037)
_NOTHING: Final = 0.0005  # a gain that rounds to 0.0 %


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceOptions:
    """How lengths are divided.

    Attributes:
        ranks: How many ranks; None where the speeds say it.
        speeds: Of each rank, in proportion; empty for equal ones.
        trace: Files of a run whose ranks' speeds are measured; empty for none.
        report: How that is read.
        batch_size: Sequences of a global batch over all ranks; None for all at once.
        cost: `tokens` or `square`; None for tokens, unless one of the next is given.
        crossover: Tokens of a sequence whose attention costs as much as all the rest of it.
        model: A preset's name or a `config.json`, whose FLOPs are balanced.
        convention: How these are counted.
        equal_counts: Whether all ranks get as many sequences.
        before: How it is divided today, one of `BEFORE`.
        key: Key or column of the lengths.
    """

    ranks: int | None = None
    speeds: Sequence[float] = ()
    trace: Sequence[str] = ()
    report: ReportOptions | None = None
    batch_size: int | None = None
    cost: str | None = None
    crossover: float | None = None
    model: str | None = None
    convention: str | None = None
    equal_counts: bool = False
    before: str = "in_turn"
    key: str | None = None


@dataclass(slots=True)
class _Sums:
    """What is added up over the batches, of one way to divide."""

    load: float = 0.0
    tokens: float = 0.0
    squares: float = 0.0
    most_tokens: int = 0
    most_sequences: int = 0
    rank_load: list[float] = field(default_factory=list)
    rank_tokens: list[int] = field(default_factory=list)
    rank_sequences: list[int] = field(default_factory=list)

    def add(self, batch: Batch, parts: Parts, lengths: Sequence[int]) -> None:
        """Add one batch, whose sequences have these lengths."""
        loads = batch.loads(parts)
        tokens = [sum(lengths[place] for place in part) for part in parts]
        squares = [sum(lengths[place] ** 2 for place in part) for part in parts]
        self.load += max(loads)
        self.tokens += _last(tokens, batch.speeds)
        self.squares += _last(squares, batch.speeds)
        self.most_tokens = max(self.most_tokens, *tokens)
        self.most_sequences = max(self.most_sequences, *map(len, parts))
        self.rank_load = _added(self.rank_load, loads)
        self.rank_tokens = [int(one) for one in _added(self.rank_tokens, tokens)]
        self.rank_sequences = [int(one) for one in _added(self.rank_sequences, list(map(len, parts)))]


@dataclass(slots=True)
class _Found:
    """What dividing all batches found.

    Attributes:
        before, after: Of the two divisions.
        mean, mean_tokens, mean_squares: What all ranks would take if everything were divisible at will.
        bound: What no division is below.
        optimum: What the best one takes, as far as that is known.
        by_method: Method -> what the last ranks take.
        tried: Methods that some batch needed.
        assignment: By batch and by rank the places of sequences.
        ruled_by_one: Batches in which the longest sequence alone, on the fastest rank, takes longer than the mean.
        steps_left: Of the search for the best division.
    """

    before: _Sums = field(default_factory=_Sums)
    after: _Sums = field(default_factory=_Sums)
    mean: float = 0.0
    mean_tokens: float = 0.0
    mean_squares: float = 0.0
    bound: float = 0.0
    optimum: float | Unknown = 0.0
    by_method: dict[str, float] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    assignment: list[list[list[int]]] = field(default_factory=list)
    ruled_by_one: int = 0
    steps_left: int = _STEPS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is divided, over whom, and by what."""

    lengths: Sequence[int]
    source: str
    costs: Sequence[float]
    cost: BalanceCost
    speeds: Sequence[float]
    measured: RankSpeeds | None
    options: BalanceOptions

    @property
    def batch_size(self) -> int:
        """Sequences of a full batch."""
        return self.options.batch_size or len(self.lengths)

    @property
    def enough_share(self) -> float:
        """How far over the bound is good enough: of many batches the last bit is not looked for."""
        return _ENOUGH_OF_MANY if len(self.lengths) > _MANY_BATCHES * self.batch_size else 0.0


def balance_lengths(
    lengths: str | Sequence[int],
    options: BalanceOptions,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Balance:
    """Divide sequences over ranks.

    Args:
        lengths: A file, `-` for standard input; or the lengths.
        options: How.
        progress: Hears (what is being done, how much of it is, how much there is).

    Raises:
        UsageError: An option is wrong, or there are fewer sequences than ranks.
        InputError: A file cannot be read, or holds no lengths; or a trace does not tell the speeds of its ranks.
    """
    given, source = _lengths(lengths, options)
    cost, described = _cost(options)
    speeds, measured = _speeds(options, progress)
    asked = _Asked(
        lengths=given,
        source=source,
        costs=cost.of_all(given),
        cost=described,
        speeds=speeds,
        measured=measured,
        options=options,
    )
    smallest = min(asked.batch_size, len(given))
    if smallest < len(speeds):
        fewer = f"{format_count(smallest, 'sequence')} of a batch cannot go to {len(speeds)} ranks"
        msg = f"{fewer}: a rank without one would leave the others waiting. Give fewer --ranks, or a larger --batch"
        raise UsageError(msg)
    return _document(asked, _divide_all(asked, progress))


def _lengths(lengths: str | Sequence[int], options: BalanceOptions) -> tuple[list[int], str]:
    if isinstance(lengths, str):
        from longpole.readers.lengths import read_lengths

        return _some(read_lengths(lengths, options.key), lengths), lengths
    return _some(whole_lengths(lengths), "lengths"), ""


def _some(lengths: list[int], source: str) -> list[int]:
    if any(lengths):
        return lengths
    msg = f"{source}: expected tokens to divide, found only sequences of none"
    raise InputError(msg)


def _cost(options: BalanceOptions) -> tuple[LengthCost, BalanceCost]:
    """Return what sequences cost, and how that is described.

    Raises:
        UsageError: More than one cost is given, or a model without a convention.
    """
    named = [name for name in ("cost", "crossover", "model") if getattr(options, name) is not None]
    if len(named) > 1:
        msg = f"expected one of --cost, --crossover and --model; found --{' and --'.join(named)}"
        raise UsageError(msg)
    if options.convention is not None and options.model is None:
        msg = "--convention says how the FLOPs of a --model are counted; found no --model"
        raise UsageError(msg)
    if options.model is not None:
        return _model_cost(options.model, options.convention or "")
    if options.crossover is not None:
        cost = by_crossover(options.crossover)
        formula = f"s + s²/{options.crossover:,.9g}"
        return cost, BalanceCost(by="crossover", formula=formula, unit="token equivalents")
    if options.cost == "square":
        return BY_SQUARE, BalanceCost(by="square", formula="s²", unit="pairs of tokens")
    if options.cost not in (None, "tokens"):
        msg = f"--cost: expected one of {', '.join(COSTS)}; found {options.cost!r}"
        raise UsageError(msg)
    return BY_TOKENS, BalanceCost(by="tokens", formula="s", unit="tokens")


def _model_cost(name: str, convention_name: str) -> tuple[LengthCost, BalanceCost]:
    from longpole.costs.conventions import convention_of

    convention = convention_of(convention_name)
    model = _model(name)
    described = BalanceCost(
        by="flops",
        formula=f"s·({convention.formula.text})",
        unit="FLOPs",
        model=model.name,
        convention=convention.name,
    )
    return ModelCost(model, convention), described


def _model(name: str) -> Architecture:
    from pathlib import Path

    from longpole.costs.architecture import read_config
    from longpole.costs.presets import preset

    return read_config(Path(name)) if name.endswith(".json") else preset(name)


def _speeds(
    options: BalanceOptions, progress: Callable[[str, int, int], None]
) -> tuple[list[float], RankSpeeds | None]:
    """Return the speed of each rank, and what was measured.

    Raises:
        UsageError: The options contradict one another, or say nothing of how many ranks there are.
        InputError: The trace cannot be read, or does not tell the speeds.
    """
    if options.speeds and options.trace:
        msg = "expected --speed or --from, found both; the one gives the speeds, the other measures them"
        raise UsageError(msg)
    measured = _measured(options, progress) if options.trace else None
    if measured is not None:
        speeds = [rank.speed for rank in measured.ranks]
    elif options.speeds:
        speeds = list(options.speeds)
    elif options.ranks is None:
        msg = "over how many ranks is not said: give --ranks N, --speed with one number for each, or --from a trace"
        raise UsageError(msg)
    else:
        speeds = [1.0] * options.ranks
    if options.ranks is not None and not 0 < options.ranks <= _RANKS_MAX:
        msg = f"--ranks: expected 1 to {_RANKS_MAX:,}, found {options.ranks}"
        raise UsageError(msg)
    if options.ranks not in (None, len(speeds)):
        msg = f"--ranks {options.ranks}: there are speeds of {len(speeds)} ranks"
        raise UsageError(msg)
    return speeds, measured


def _measured(options: BalanceOptions, progress: Callable[[str, int, int], None]) -> RankSpeeds:
    from longpole.digest.jobs import choose_run
    from longpole.digest.rank_speeds import rank_speeds
    from longpole.pipeline.reading import ReportOptions, read_digests
    from longpole.settings import read_settings

    report = options.report or ReportOptions()
    settings = read_settings(report.settings)
    digests, _ = read_digests(options.trace, report, settings, progress)
    return rank_speeds(choose_run(digests, report.job, settings).digests, settings)


def _divide_all(asked: _Asked, progress: Callable[[str, int, int], None]) -> _Found:
    """Divide batch after batch; the last one may be smaller, and is left out where it cannot go round."""
    size, whole = asked.batch_size, len(asked.lengths)
    found = _Found()
    for begin in range(0, whole, size):
        batch = Batch(asked.costs[begin : begin + size], asked.speeds, asked.options.equal_counts)
        if len(batch.costs) >= batch.ranks:
            _divide(batch, begin, asked, found)
            progress("sequences", min(begin + size, whole), whole)
    return found


def _divide(batch: Batch, begin: int, asked: _Asked, found: _Found) -> None:
    lengths = asked.lengths[begin : begin + len(batch.costs)]
    balanced = balance(batch, enough_share=asked.enough_share)
    best = in_rotation(batch, _settle(batch, balanced, found), len(found.assignment))
    found.before.add(batch, BEFORE[asked.options.before](batch), lengths)
    found.after.add(batch, best, lengths)
    together = sum(batch.speeds)
    found.mean += batch.mean_load
    found.mean_tokens += sum(lengths) / together
    found.mean_squares += sum(tokens**2 for tokens in lengths) / together
    found.bound += balanced.bound
    alone = max(batch.costs) / max(batch.speeds)
    found.ruled_by_one += alone > batch.mean_load * (1 + _NOTHING)
    reached = dict(balanced.by_method) | {"exact": batch.longest_load(best)}
    so_far = reached["longest_first"]
    for method in _TRIED:
        so_far = reached.get(method, so_far)
        found.by_method[method] = found.by_method.get(method, 0.0) + so_far
    found.tried |= balanced.by_method.keys()
    found.assignment.append([[begin + place for place in part] for part in best])


def _settle(batch: Batch, balanced: Balanced, found: _Found) -> Parts:
    """Return the best division; where the batch is small, look for the optimum, and say whether it was found."""
    if isinstance(found.optimum, Unknown):
        return balanced.parts
    if balanced.meets_bound:
        found.optimum += balanced.load
        return balanced.parts
    if len(batch.costs) > SEQUENCES_MAX:
        why = f"it is looked for among {SEQUENCES_MAX} sequences of a batch at most"
        found.optimum = Unknown(f"the best division is not known: {why}; the bound says how far off it can be")
        return balanced.parts
    found.tried.add("exact")
    searched = optimum(batch, balanced.parts, balanced.bound, steps_max=found.steps_left)
    found.steps_left -= searched.steps
    if searched.parts is None:
        found.optimum = Unknown("the best division is not known: looking for it took too many steps")
        return balanced.parts
    found.optimum += batch.longest_load(searched.parts)
    return [sorted(part) for part in searched.parts]


def _last(amounts: Sequence[float], speeds: Sequence[float]) -> float:
    return max(amount / speed for amount, speed in zip(amounts, speeds, strict=True))


def _added(sums: Sequence[float], more: Sequence[float]) -> list[float]:
    return [one + other for one, other in zip(sums or [0.0] * len(more), more, strict=True)]


def _document(asked: _Asked, found: _Found) -> Balance:
    options, tried = asked.options, [name for name in _TRIED if name in found.tried]
    before = _load(options.before, found.before, found)
    after = _load(_first_as_good(tried, found), found.after, found)
    faster = 1 - after.load / before.load
    speeds_from = "given" if options.speeds else "equal"
    return Balance(
        longpole=package_version(),
        source=asked.source,
        says=_says(before, after, faster),
        cost=asked.cost,
        speeds_from=speeds_from if asked.measured is None else " ".join(options.trace),
        equal_counts=options.equal_counts,
        sequences=len(asked.lengths),
        tokens=sum(asked.lengths),
        longest_tokens=max(asked.lengths),
        median_tokens=float(median(asked.lengths)),
        batch_size=asked.batch_size,
        batches=len(found.assignment),
        before=before,
        after=after,
        faster_share=faster,
        methods=[
            BalanceMethod(
                method=name, load=found.by_method[name], over_bound_share=found.by_method[name] / found.bound - 1
            )
            for name in tried
        ],
        bound=found.bound,
        optimum=found.optimum,
        ranks=_ranks(asked, found),
        assignment=found.assignment,
        notes=_notes(asked, found, before, after),
    )


def _first_as_good(tried: Sequence[str], found: _Found) -> str:
    """Return the first method that reached what the last one reached."""
    reached = found.by_method[tried[-1]]
    return next(name for name in tried if found.by_method[name] <= reached * (1 + 1e-12))


def _load(method: str, sums: _Sums, found: _Found) -> BalanceLoad:
    return BalanceLoad(
        method=method,
        load=sums.load,
        over_mean=sums.load / found.mean,
        wait_share=1 - found.mean / sums.load,
        tokens_over_mean=sums.tokens / found.mean_tokens,
        squares_over_mean=sums.squares / found.mean_squares,
        most_tokens=sums.most_tokens,
        most_sequences=sums.most_sequences,
    )


def _says(before: BalanceLoad, after: BalanceLoad, faster: float) -> str:
    """Say how even it was, how even it can be, and what that buys."""
    was = f"{METHOD_WORDS[before.method]}, the last rank has {before.over_mean:.2f} times the mean"
    was += f" and the ranks wait {before.wait_share:.0%} of the time"
    if faster < _NOTHING:
        return f"{was}; no other division is better"
    can = f"balanced, it has {after.over_mean:.2f} times the mean"
    return f"{was}; {can}, and steps take {faster:.1%} less, as far as they are this cost"


def _ranks(asked: _Asked, found: _Found) -> list[BalanceRank]:
    measured = [rank.measured for rank in asked.measured.ranks] if asked.measured is not None else None
    numbers = [rank.rank for rank in asked.measured.ranks] if asked.measured is not None else range(len(asked.speeds))
    before, after = found.before, found.after
    return [
        BalanceRank(
            rank=number,
            speed=asked.speeds[place],
            measured_speed=None if measured is None else measured[place],
            sequences_before=before.rank_sequences[place],
            sequences_after=after.rank_sequences[place],
            tokens_before=before.rank_tokens[place],
            tokens_after=after.rank_tokens[place],
            wait_share_before=1 - before.rank_load[place] / before.load,
            wait_share_after=1 - after.rank_load[place] / after.load,
        )
        for place, number in enumerate(numbers)
    ]


def _notes(asked: _Asked, found: _Found, before: BalanceLoad, after: BalanceLoad) -> list[str]:
    """Say what was taken for granted, and what a division by cost changes besides."""
    notes = []
    left_out = len(asked.lengths) - sum(found.after.rank_sequences)
    if left_out:
        notes.append(f"the last {format_count(left_out, 'sequence')} cannot go to all ranks: left out")
    if found.ruled_by_one:
        notes.append(_alone_note(found))
    if asked.measured is not None:
        notes.append(_speed_note(asked.measured))
    if after.most_tokens > before.most_tokens:
        more = f"{after.most_tokens:,} tokens instead of {before.most_tokens:,}"
        notes.append(f"a rank now has up to {more} in a batch: cut them into micro-batches by tokens, or memory grows")
    if not asked.options.equal_counts:
        notes.append(
            "ranks get unequal numbers of sequences: divide the summed loss by the tokens of the whole batch, for a"
            " mean of the ranks' means would weigh sequences by their company"
        )
    return notes


def _alone_note(found: _Found) -> str:
    batches = len(found.assignment)
    where = (
        "the longest sequence" if batches == 1 else f"in {found.ruled_by_one} of {batches} batches the longest sequence"
    )
    return (
        f"{where} alone takes longer than the mean of the ranks, and no division helps against that: a larger batch, a"
        " shorter longest sequence, or one that is divided over ranks itself (context parallelism) does"
    )


def _speed_note(measured: RankSpeeds) -> str:
    same = sum(rank.speed == 1.0 for rank in measured.ranks)
    unsure = (
        f"; {same} of {len(measured.ranks)} do not differ surely from the median rank and count as 1" if same else ""
    )
    counted = f"speeds are computation per time in {format_count(measured.units, 'unit')} that all ranks have"
    known = {
        "items": "and the items that the program says it processed",
        "input sizes": "of the same work, by the sizes of operators' inputs",
        "kernel counts": "of the same work, as far as equal numbers of kernels show that: shapes were not recorded",
    }[measured.basis]
    return f"{counted} {known}{unsure}"


def balance_sequences(
    lengths: str | PathLike[str] | Sequence[int],
    *,
    ranks: int | None = None,
    speeds: Sequence[float] = (),
    batch_size: int | None = None,
    cost: str = "tokens",
    equal_counts: bool = False,
) -> Balance:
    """Divide sequences over ranks so that the last rank is done as early as can be, and say what that is better by.

    Args:
        lengths: A file of lengths, or tokens of each sequence (a list, an array, a tensor).
        ranks: How many ranks; not needed where their speeds are given.
        speeds: Of each rank, in proportion.
        batch_size: Sequences of a global batch over all ranks; all at once unless given.
        cost: `tokens` or `square` (attention's).
        equal_counts: Whether all ranks get as many sequences, give or take one.

    Raises:
        UsageError: An argument is wrong, or there are fewer sequences than ranks.
        InputError: The file cannot be read, or something in it is no length.
    """
    options = BalanceOptions(ranks=ranks, speeds=speeds, batch_size=batch_size, cost=cost, equal_counts=equal_counts)
    is_file = isinstance(lengths, str) or hasattr(lengths, "__fspath__")
    return balance_lengths(os.fspath(lengths) if is_file else lengths, options)  # type: ignore[arg-type]
