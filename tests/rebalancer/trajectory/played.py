"""Trajectories of the small cluster, by last week's curves, so that no model is fitted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from forecast.history import History, PodUsage
from forecast.hot_share import HOT_SHARE
from forecast.model import PeakModel
from rebalancer.rebalance_settings import RebalanceOptions
from rebalancer.trajectory.trajectories import RULES, MadeMover, Trajectories, TrajectoryOptions, trajectories
from tests.scorer.replay.small_cluster import small_cluster


def no_fit(history: History) -> PeakModel:
    raise AssertionError("last week's curves need no model")


def played(
    cluster: tuple[History, PodUsage] | None = None,
    *,
    seed: int = 0,
    days: int = 7,
    rules: Collection[str] = RULES,
    others: Mapping[str, MadeMover] = {},
    budget: float = 0.11,
    **options: Any,
) -> Trajectories:
    """Play the small cluster forward. budget: two of its 19 pods."""
    history, pods = small_cluster() if cluster is None else cluster
    rebalance = RebalanceOptions()
    return trajectories(
        history,
        pods,
        no_fit,
        seed=seed,
        days=days,
        options=TrajectoryOptions(forecast="last_week", **options),
        rebalance=rebalance.replace(budget=rebalance.budget.replace(share=budget)),
        rules=rules,
        others=others,
        hot=HOT_SHARE,
    )
