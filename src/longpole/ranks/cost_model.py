"""What a collective should take: alpha + gamma * sqrt(S) + S / rate, the first model that exists (DESIGN 3.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longpole.costs import collective_time as costs
from longpole.costs.collective_time import KINDS, ONCE
from longpole.hardware.nccl_fits import all_fits, system_of
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longpole.settings import Settings


@dataclass(frozen=True, slots=True)
class Model:
    """A cost model.

    Attributes:
        alpha_ns: What an operation of no size takes.
        gamma: In ns per square root of a byte.
        rate: In bytes per ns (decimal GB/s).
        source: `fit`, `record` or `shipped`.
        says: Which record or shipped fit, empty for a fit to the run itself.
        error_share: Median |model / measured - 1| over what it was fitted to, None where not known.
    """

    alpha_ns: float
    gamma: float
    rate: float
    source: str
    says: str = ""
    error_share: float | None = None

    def parts_ns(self, sizes: NDArray[np.int64]) -> tuple[float, float]:
        """Return what latency and bytes take of operations of these sizes, in ns."""
        return self.alpha_ns * len(sizes), float(sizes.sum()) / self.rate if self.rate > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RecordedModels:
    """Models of a record that the user gives: measured on the machine itself, or read from nccl-tests.

    Attributes:
        models: (kind, ranks) -> model.
        device: Model of the device that was measured, `cpu` for the host, empty where not known.
        nodes: Machines that took part, None where not known.
        path: The record's file.
    """

    models: Mapping[tuple[str, int], Model]
    device: str
    nodes: int | None
    path: str

    def find(self, kind: str, n: int) -> Model | None:
        """Return the model of a kind among n ranks, None where that was not measured."""
        return self.models.get((kind, n))

    def key(self) -> str:
        """Return a text that differs where the models do."""
        return repr(sorted(self.models.items()))


def bus_factor(kind: str, n: int | None) -> float | None:
    """Return bus bandwidth over algorithm bandwidth for n ranks, None where not defined.

    Source: nccl-tests, doc/PERFORMANCE.md: 2(n-1)/n for all-reduce, (n-1)/n for its halves and all-to-all, else 1.

    >>> bus_factor("all_reduce", 16), bus_factor("all_gather", 4), bus_factor("broadcast", 8), bus_factor("barrier", 8)
    (1.875, 0.75, 1.0, None)
    """
    if kind in ONCE:
        return 1.0
    return costs.bus_factor(kind, n) if kind in KINDS and n else None


def fit_model(sizes: NDArray[np.int64], transfer_ns: NDArray[np.int64], settings: Settings) -> Model | None:
    """Fit the model to transfers of several sizes, None where they are too few or too close.

    The median of each size is fitted, by relative residuals under a soft-L1 loss, so that one disturbed size does not
    bend the curve; no coefficient is negative.

    Args:
        sizes: `[N]` int64 bytes, positive.
        transfer_ns: `[N]` int64 ns, positive.
        settings: From how many sizes, over how many decades.
    """
    usable = (sizes > 0) & (transfer_ns > 0)
    distinct = np.unique(sizes[usable])
    if len(distinct) < settings.cost_min_sizes or distinct[-1] < distinct[0] * 10**settings.cost_min_decades:
        return None
    from scipy.optimize import least_squares, nnls

    medians = np.array([np.median(transfer_ns[usable & (sizes == size)]) for size in distinct.tolist()])
    size = distinct.astype(np.float64)
    design = np.stack([np.ones(len(size)), np.sqrt(size), size], axis=1) / medians[:, None]
    scale = design.max(axis=0)
    start, _ = nnls(design / scale, np.ones(len(size)))

    def residuals(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(design / scale @ coefficients - 1.0)

    fitted = least_squares(residuals, start, bounds=(0, np.inf), loss="soft_l1", f_scale=0.1).x / scale
    if fitted[2] <= 0:
        return None
    return Model(float(fitted[0]), float(fitted[1]), 1.0 / float(fitted[2]), "fit")


def shipped_model(device_name: str, kind: str, n: int) -> Model | None:
    """Return the shipped fit for a device, kind and number of ranks of one node, None where there is none."""
    system = system_of(device_name)
    fit = all_fits().get((system or "", kind, n))
    if fit is None:
        return None
    says = f"{system}, {kind}, {n} ranks of one node"
    alpha_ns, gamma = round(fit.alpha_s * NS_PER_S, 6), round(fit.gamma_s * NS_PER_S, 9)
    rate = fit.bytes_per_s / NS_PER_S
    return Model(alpha_ns, gamma, rate, "shipped", says, fit.error_share)
