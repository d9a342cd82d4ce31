"""Usage of pods that is measured on their nodes only, so that a replay can move it with the pods.

The model's peak weights say what a pod adds to a node (forecast.peak_weights). They were learned before the placement.
In each half hour they are moved with what the nodes really used (`complete_history`). What is left of a node's usage
stays on that node. This is the truth that every rule is judged by, the oracle included: it is as good as the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats
from forecast.history import History
from forecast.model import PeakModel
from forecast.peak_weights import PeakWeights, complete_history
from forecast.resources import RESOURCES
from scorer.replay.window import Window, flat

LARGEST_ERROR = 1.0
"""Standard error of a weight, as a share of it, up to which usage moves with the pod. Beyond, the weight may as well be
none, and what the pod uses stays on its node."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """How much of a resource a replay moves by regression, and how well that part is known.

    moved      : share of the nodes' usage in the window that moves with pods which were never measured
    error      : mean standard error of their weights, as a share of the weight, by moved usage
    identified : share of the moved usage whose weight is identified (error at most 20 %)
    """

    moved: float
    error: float
    identified: float

    def to_json(self) -> dict[str, float]:
        """The figures by name."""
        return {"moved": self.moved, "error": self.error, "identified": self.identified}


def attribute_usage(
    history: History, window: Window, model: PeakModel | None
) -> tuple[History, Mapping[str, Attribution]]:
    """The history until the end of the window with usage of pods that were never measured, and what that concerns.

    model : its weights know nothing of the window; None = no weights, and everything stays on its nodes
    The mapping is by resource, and empty where the pods of all services are measured.
    """
    if model is None:
        return history, {}
    until = history.before(window.first_day + len(window.days))
    with np.errstate(invalid="ignore"):
        known: Bools = np.isfinite(model.peak_weight).all(axis=(2, 3)) & (model.peak_weight_error <= LARGEST_ERROR)
    from_nodes = known & ~np.isfinite(until.usage_per_pod).any(axis=(2, 3))
    if not from_nodes.any():
        return history, {}
    # The published weight of a service that is not identified is its prior. Its curve keeps what the regression found,
    # so that the sums on nodes are right.
    found = model.usage_day_type + model.per_pod_cost
    weights = PeakWeights(
        weight=np.where((np.asarray(model.identified) > 0)[:, :, None, None], model.peak_weight, found),
        error=model.peak_weight_error,
        identified=np.asarray(model.identified) > 0,
        from_nodes=from_nodes,
        prior=model.peak_weight_prior,
        correction=model.correction,
        per_pod_cost=model.per_pod_cost,
        node_base=model.node_base,
        determined=np.full_like(model.peak_weight_error, np.nan),
    )
    completed = complete_history(until, weights)
    return completed, {
        RESOURCES[r].name: _attribution(completed, window, weights, int(r))
        for r in np.flatnonzero(from_nodes.any(axis=0))
    }


def _attribution(completed: History, window: Window, weights: PeakWeights, resource: int) -> Attribution:
    """Figures of one resource over the window."""
    slots = slice(window.history_slot, window.history_slot + window.n_slots)
    of_pod = np.nan_to_num(flat(completed.usage_per_pod)[:, resource, slots])
    usage: Floats = (of_pod * np.nan_to_num(flat(completed.replicas)[:, slots])).sum(axis=1, dtype=np.float64)
    usage = np.where(weights.from_nodes[:, resource], usage, 0.0)  # (n_services,)
    on_nodes = float(np.nansum(flat(completed.node_usage)[:, resource, slots], dtype=np.float64))
    error = np.nan_to_num(weights.error[:, resource].astype(np.float64))
    total = max(float(usage.sum()), np.finfo(np.float64).tiny)
    return Attribution(
        moved=float(usage.sum() / on_nodes) if on_nodes > 0 else 0.0,
        error=float((usage * error).sum() / total),
        identified=float(usage[weights.identified[:, resource]].sum() / total),
    )
