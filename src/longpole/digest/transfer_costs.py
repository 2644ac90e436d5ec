"""What an operation of another size would take: the first cost model there is for its kind and group (DESIGN 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.ranks.cost_model import fit_model, shipped_model
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.digest.across import Across
    from longpole.ranks.cost_model import Model
    from longpole.settings import Settings

    TransferCost: TypeAlias = Callable[[int, int], int | None]


class TransferCosts:
    """Prices operations of other sizes, and remembers by which models."""

    def __init__(self, across: Across | None, device_names: Mapping[int, str], settings: Settings) -> None:
        """Price the operations of a run.

        Args:
            across: They, matched and split; None where there are none.
            device_names: Rank -> model of its device.
            settings: From how many sizes a model is fitted.
        """
        self._across, self._device_names, self._settings = across, device_names, settings
        self._models: dict[tuple[int, int], Model | None] = {}

    def __call__(self, operation: int, size_bytes: int) -> int | None:
        """Return the time that the transfer of an operation would take with so many bytes, ns; None without a model."""
        if self._across is None:
            return None
        matched = self._across.matched
        kind, n = int(matched.kind[operation]), int(matched.first[operation + 1] - matched.first[operation])
        if (kind, n) not in self._models:
            self._models[kind, n] = _model(self._across, kind, n, self._device_names, self._settings)
        model = self._models[kind, n]
        if model is None:
            return None
        latency_ns, bytes_ns = model.parts_ns(np.array([size_bytes], np.int64))
        return round(latency_ns + model.gamma * size_bytes**0.5 + bytes_ns)

    def used(self) -> list[tuple[str, int, Model]]:
        """Return (kind, ranks, model) of what was priced so far."""
        return [(COLLECTIVE_KINDS[kind], n, model) for (kind, n), model in self._models.items() if model is not None]


def transfer_costs(across: Across | None, device_names: Mapping[int, str], settings: Settings) -> TransferCosts:
    """Return a function from (operation, bytes) to the time its transfer would take, ns, None without a model.

    Args:
        across: The run's operations, matched and split; None where there are none.
        device_names: Rank -> model of its device.
        settings: From how many sizes a model is fitted.
    """
    return TransferCosts(across, device_names, settings)


def _model(across: Across, kind: int, n: int, device_names: Mapping[int, str], settings: Settings) -> Model | None:
    matched, split = across.matched, across.split
    counts = np.diff(matched.first)
    alike = np.flatnonzero((matched.kind == kind) & (counts == n) & (split.how > 0))
    transfer_ns = np.array([split.transfer_ns[matched.first[m] : matched.first[m + 1]].max() for m in alike.tolist()])
    fitted = fit_model(matched.bytes[alike], transfer_ns.astype(np.int64), settings) if len(alike) else None
    if fitted is not None:
        return fitted
    recorded = across.recorded.find(COLLECTIVE_KINDS[kind], n) if across.recorded is not None else None
    if recorded is not None:
        return recorded
    names = {device_names.get(int(rank), "") for rank in matched.rank}
    return shipped_model(names.pop(), COLLECTIVE_KINDS[kind], n) if len(names) == 1 else None
