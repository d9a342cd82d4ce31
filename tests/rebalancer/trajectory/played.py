"""Trajectories of the small cluster, by one model of the days before the first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from forecast.history import History, PodUsage
from forecast.hot_share import HOT_SHARE
from forecast.model import PeakModel
from rebalancer.rebalance_settings import RebalanceOptions
from rebalancer.trajectory.trajectories import RULES, MakeMover, Trajectories, TrajectoryOptions, trajectories
from testing.fitted_models import fitted
from tests.scorer.replay.small_cluster import small_cluster

_MODELS: dict[date, PeakModel] = {}


def fit_once(history: History) -> PeakModel:
    """Of the small cluster as it is by itself: by its last day."""
    if history.days[-1] not in _MODELS:
        _MODELS[history.days[-1]] = fitted(history)
    return _MODELS[history.days[-1]]


def played(
    cluster: tuple[History, PodUsage] | None = None,
    *,
    seed: int = 0,
    days: int = 7,
    rules: Collection[str] = RULES,
    others: Mapping[str, MakeMover] = {},
    budget: float = 0.11,
    **options: Any,
) -> Trajectories:
    """Play the small cluster forward. budget: two of its 19 pods."""
    history, pods = small_cluster() if cluster is None else cluster
    rebalance = RebalanceOptions()
    return trajectories(
        history,
        pods,
        fit_once,
        seed=seed,
        days=days,
        options=TrajectoryOptions(fit_nights=14, **options),
        rebalance=rebalance.replace(budget=rebalance.budget.replace(share=budget)),
        rules=rules,
        others=others,
        hot=HOT_SHARE,
    )
