"""How many nights of a budget mend a cluster, and which settings would do it in fewer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rebalancer.planning.move_curve import MoveCurve
from rebalancer.rebalance_settings import BudgetOptions


@dataclass(frozen=True, slots=True)
class NightsNeeded:
    """
    moves     : that mend the cluster (MoveCurve.needed)
    per_night : that the budget allows, and `limit`, the setting that says so
    nights    : of so many moves each, at best; None = the budget allows none
    in_one    : settings with which one night does it; only those that have to be raised
    """

    moves: int
    per_night: int
    limit: str
    nights: int | None
    in_one: Mapping[str, float]


def nights_needed(curve: MoveCurve, n_pods: int, budget: BudgetOptions) -> NightsNeeded:
    """Return how long a cluster of so many pods takes. Pods rest after a move, so that it may take longer."""
    per_night = budget.total(n_pods)
    limit = "share" if per_night < budget.most else "most"
    nights = math.ceil(curve.needed / per_night) if per_night else None
    return NightsNeeded(
        curve.needed, per_night, f"rebalance.budget.{limit}", nights, dict(_raised(curve, n_pods, budget))
    )


def _raised(curve: MoveCurve, n_pods: int, budget: BudgetOptions) -> Iterator[tuple[str, float]]:
    if curve.needed > budget.total(n_pods):
        if budget.most < curve.needed:
            yield "rebalance.budget.most", curve.needed
        share = math.ceil(1000 * curve.needed / n_pods) / 1000
        if share > budget.share:
            yield "rebalance.budget.share", share
    for name in ("per_service", "per_namespace", "per_node"):
        needed = getattr(curve, name)
        if needed > getattr(budget, name):
            yield f"rebalance.budget.{name}", needed
