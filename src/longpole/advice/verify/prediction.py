"""What the replay predicted beside what was measured; a miss is named (DESIGN 3.11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole.advice.verify.effect import signed
from longpole.records.ledger import Unknown
from longpole.records.verdict import Predicted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.verdict import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A replayed prediction, as far as there is one.

    Attributes:
        changes: As options of `longpole whatif`.
        share: Predicted change of the median period as a share.
        error_share: Nine in ten recorded pairs of this kind of change were no further off.
    """

    changes: Sequence[str]
    share: float | Unknown
    error_share: float | Unknown


def compare_prediction(forecast: Forecast, effect: Effect, *, batch_changed: bool) -> Predicted:
    """Set a prediction beside the measured effect.

    Args:
        forecast: The prediction.
        effect: What was measured.
        batch_changed: Units hold other items after, which the replay knows nothing of.
    """
    if isinstance(forecast.share, Unknown):
        says = f"no prediction: {forecast.share.unknown}"
        return _unanswered(forecast, effect, forecast.share, says)
    if isinstance(effect.estimate, Unknown):
        says = f"predicted {signed(forecast.share)}; what came is not known"
        return _unanswered(forecast, effect, effect.estimate, says)
    miss = effect.estimate - forecast.share
    sure = isinstance(effect.interval, list)
    missed = sure and _is_missed(forecast, effect)
    says = f"predicted {signed(forecast.share)}, measured {signed(effect.estimate)} of time per item: "
    points = f"{abs(100 * miss):.0f} points"
    if not sure:
        says += "too few samples to tell whether that is a miss"
    elif not missed:
        says += "as far as prediction and measurement go, it came as predicted"
    elif miss > 0:
        says += f"the prediction promised {points} too much"
    else:
        says += f"it brought {points} more than was predicted"
    if batch_changed:
        says += "; the replay assumes the batch of before"
    if isinstance(forecast.error_share, Unknown):
        says += f"; how far such predictions are off is not known: {forecast.error_share.unknown}"
    return Predicted(list(forecast.changes), forecast.share, effect.estimate, miss, forecast.error_share, missed, says)


def _unanswered(forecast: Forecast, effect: Effect, why: Unknown, says: str) -> Predicted:
    return Predicted(
        changes=list(forecast.changes),
        predicted=forecast.share,
        measured=effect.estimate,
        miss=why,
        error_share=forecast.error_share,
        missed=False,
        says=says,
    )


def _is_missed(forecast: Forecast, effect: Effect) -> bool:
    """Tell whether the predicted change, give or take its known error, lies outside the measured interval."""
    assert not isinstance(forecast.share, Unknown)
    assert not isinstance(effect.estimate, Unknown)
    period = 1 + forecast.share
    room = period * forecast.error_share if isinstance(forecast.error_share, float) else effect.threshold
    assert isinstance(effect.interval, list)
    low, high = effect.interval
    return not low - room <= forecast.share <= high + room
