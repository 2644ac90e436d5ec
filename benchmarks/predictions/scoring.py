"""The arithmetic: one prediction against what was measured, and what many of them come to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PERIOD_LIMIT = 0.15  # of the measured period
SAVING_LIMIT = 0.20  # of the measured saving
NOTHING_LIMIT = 0.05  # of the period before: a smaller saving is none, and its sign says nothing
WORTHWHILE = 0.20  # of the period before: what two thirds of the pairs must save
GOAL_PERIOD, GOAL_SAVING, GOAL_WORTHWHILE = 0.9, 0.8, 2 / 3  # shares of the predictions, and of the pairs


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one what-if said.

    Attributes:
        predicted_ns: the period after the change; None where it gave none.
        saving_ns: the period's fall; None where it gave none.
        interval_ns: of the predicted period, as printed; None where no spread is known.
        replay_error: of the unchanged replay's median, signed; None where not known.
        why_not: why there is no prediction; empty where there is one.
    """

    predicted_ns: int | None = None
    saving_ns: int | None = None
    interval_ns: tuple[int, int] | None = None
    replay_error: float | None = None
    why_not: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One recording before a change, its prediction, and the recordings after the change.

    Attributes:
        pair: its name.
        change, kind: of the pair.
        round: of the recording before.
        before_ns: its period.
        targets_ns: the periods after the change, one a recording.
        answer: of the what-if.
    """

    pair: str
    change: str
    kind: str
    round: int
    before_ns: int
    targets_ns: tuple[int, ...]
    answer: Answer

    @property
    def target_ns(self) -> int:
        """Return the median of the periods after the change."""
        return round(median(self.targets_ns))

    @property
    def target_spread(self) -> float:
        """Return how far the periods after the change lie apart, as a share of their median."""
        return (max(self.targets_ns) - min(self.targets_ns)) / self.target_ns

    @property
    def saving_ns(self) -> int:
        """Return what the change has saved; negative where the period grew."""
        return self.before_ns - self.target_ns

    @property
    def saved_share(self) -> float:
        """Return that as a share of the period before."""
        return self.saving_ns / self.before_ns

    @property
    def no_change_error(self) -> float:
        """Return the error of the prediction that nothing changes."""
        return self.before_ns / self.target_ns - 1

    @property
    def period_error(self) -> float | None:
        """Return predicted over measured less 1: negative is optimistic. None without a prediction."""
        predicted_ns = self.answer.predicted_ns
        return None if predicted_ns is None else predicted_ns / self.target_ns - 1

    @property
    def saves_nothing(self) -> bool:
        """Say whether the measured saving is too small to have a sign."""
        return abs(self.saved_share) < NOTHING_LIMIT

    @property
    def saving_error(self) -> float | None:
        """Return predicted over measured saving less 1; None without a prediction, or where nothing was saved."""
        predicted_ns = self.answer.saving_ns
        return None if predicted_ns is None or self.saves_nothing else predicted_ns / self.saving_ns - 1

    @property
    def is_sign_right(self) -> bool | None:
        """Say whether gain, loss or neither was foretold; None without a prediction."""
        predicted_ns = self.answer.saving_ns
        if predicted_ns is None:
            return None
        if self.saves_nothing:
            return abs(predicted_ns) < NOTHING_LIMIT * self.before_ns
        return predicted_ns * self.saving_ns > 0

    @property
    def is_saving_close(self) -> bool | None:
        """Say whether the saving is within 20 % of the measured one, or foretold as none where there was none."""
        if self.saves_nothing:
            return self.is_sign_right
        error = self.saving_error
        return None if error is None else abs(error) <= SAVING_LIMIT

    @property
    def is_in_interval(self) -> bool:
        """Say whether the measured period lies in the printed interval; not where none was printed."""
        interval_ns = self.answer.interval_ns
        return interval_ns is not None and interval_ns[0] <= self.target_ns <= interval_ns[1]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a number of outcomes come to. Shares are of those that were answered, but for `worthwhile`.

    Attributes:
        asked, answered: how many outcomes; how many of them have a prediction.
        period_within: share within `PERIOD_LIMIT`.
        saving_within: share within `SAVING_LIMIT`.
        saving_or_interval: share within it, or with the measured period in the printed interval.
        sign_right: share whose sign is right.
        error_median, error_p90, error_max: of the period, absolute; P90 by nearest rank.
        bias: median of the signed error; negative is optimistic.
        optimistic: share with a negative error.
        saving_error_median: of the saving, signed, where something was saved.
        no_change_within, no_change_median, no_change_p90: the same figures of the prediction that nothing changes.
        worthwhile: share of all outcomes that saved `WORTHWHILE`.
    """

    asked: int
    answered: int
    period_within: float
    saving_within: float
    saving_or_interval: float
    sign_right: float
    error_median: float
    error_p90: float
    error_max: float
    bias: float
    optimistic: float
    saving_error_median: float
    no_change_within: float
    no_change_median: float
    no_change_p90: float
    worthwhile: float


def summarize(outcomes: Sequence[Outcome]) -> Summary | None:
    """Sum outcomes up.

    Args:
        outcomes: any number.

    Returns:
        The summary; none where no outcome has a prediction. The no-change predictor answers for the same outcomes.
    """
    answered = [one for one in outcomes if one.period_error is not None]
    if not answered:
        return None
    errors = [one.period_error for one in answered if one.period_error is not None]
    sizes = [abs(error) for error in errors]
    unchanged = [abs(one.no_change_error) for one in answered]
    saving_errors = [one.saving_error for one in answered if one.saving_error is not None]
    return Summary(
        asked=len(outcomes),
        answered=len(answered),
        period_within=share_of(size <= PERIOD_LIMIT for size in sizes),
        saving_within=share_of(bool(one.is_saving_close) for one in answered),
        saving_or_interval=share_of(bool(one.is_saving_close) or one.is_in_interval for one in answered),
        sign_right=share_of(bool(one.is_sign_right) for one in answered),
        error_median=median(sizes),
        error_p90=nearest_rank(sizes, 0.9),
        error_max=max(sizes),
        bias=median(errors),
        optimistic=share_of(error < 0 for error in errors),
        saving_error_median=median(saving_errors) if saving_errors else math.nan,
        no_change_within=share_of(size <= PERIOD_LIMIT for size in unchanged),
        no_change_median=median(unchanged),
        no_change_p90=nearest_rank(unchanged, 0.9),
        worthwhile=share_of(one.saved_share >= WORTHWHILE for one in outcomes),
    )


def share_of(flags: Any) -> float:
    """Return the share of true values among at least one."""
    values = list(flags)
    return sum(values) / len(values)


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share of all values do not exceed.

    Examples:
        >>> nearest_rank([5, 1, 4, 2, 3, 6, 7, 8, 9, 10], 0.9)
        9
    """
    return sorted(values)[math.ceil(share * len(values)) - 1]


def read_answer(document: Mapping[str, Any]) -> Answer:
    """Take the prediction out of a document of `longpole whatif --json`.

    Args:
        document: of the schema `longpole.whatif/1`.

    Returns:
        The prediction; without one where the document refuses, or does not know the period.
    """
    replay = document.get("replay")
    error = replay.get("error_of_median") if isinstance(replay, dict) else None
    replay_error = float(error) if isinstance(error, (int, float)) else None
    predicted_ns, saving_ns = document.get("predicted_period_ns"), document.get("saving_ns")
    if document.get("refused"):
        return Answer(why_not=f"refused: {say(document['refused'])}", replay_error=replay_error)
    if not isinstance(predicted_ns, int) or not isinstance(saving_ns, int):
        return Answer(why_not=f"not known: {say(predicted_ns)}", replay_error=replay_error)
    return Answer(
        predicted_ns=predicted_ns,
        saving_ns=saving_ns,
        interval_ns=find_interval(predicted_ns, document.get("what_if_error")),
        replay_error=replay_error,
    )


def find_interval(predicted_ns: int, spread: Any) -> tuple[int, int] | None:
    """Say where the period lies if this prediction is no worse than nine in ten of its kind.

    An error e means predicted = (1 + e) · measured, so measured = predicted / (1 + e) with e from −P90 to P90.

    Args:
        predicted_ns: the period.
        spread: `what_if_error` of the document.

    Returns:
        The interval; none where no spread is known.

    Examples:
        >>> find_interval(30, {"p90_share": 0.2})
        (25, 38)
    """
    share = spread.get("p90_share") if isinstance(spread, dict) else None
    if not isinstance(share, (int, float)) or not 0 <= share < 1:
        return None
    return round(predicted_ns / (1 + share)), round(predicted_ns / (1 - share))


def say(reason: Any) -> str:
    """Put a reason, of whatever form the document has it in, into words of one line."""
    if isinstance(reason, dict):
        return " ".join(str(reason.get(key)) for key in ("unknown", "why", "code") if reason.get(key))
    if isinstance(reason, list):
        return "; ".join(say(one) for one in reason)
    return " ".join(str(reason).split())
