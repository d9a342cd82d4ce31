"""Trainings, demand and options for the tests of the tide."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_demand import TideDemand
from profiles.gpu.tide.tide_plan import Training
from testing.constants import with_constants

NOON = datetime(2026, 5, 19, 12, tzinfo=UTC).timestamp()
SLOT = 1800.0
PLAIN = with_constants(TideOptions(), margin=0.0, spread=0.0, notice=0.0, grace=600.0, dwell=3600.0, dead_band=0.0)


def training(key: str = "lab/StatefulSet/train", **changes: Any) -> Training:
    """Four replicas of two GPUs, from one to eight, ten minutes to drain."""
    made: dict[str, Any] = {"pool": 0, "gpus": 2.0, "replicas": 4, "least": 1, "most": 8, "lead": 600.0}
    return Training(key, **{**made, **changes})


def demand(
    need: Sequence[float] | Sequence[Sequence[float]],
    *,
    capacity: float | Sequence[float] = 16.0,
    waiting: float = 0.0,
    forecast: bool = True,
    now: float = NOON,
) -> TideDemand:
    """need: GPUs by half hours from now on, of one pool or of several; all of one service, shop/Deployment/rank."""
    of_pools = np.atleast_2d(np.array(need, dtype=np.float64))
    n_pools = len(of_pools)
    return TideDemand(
        starts=now + SLOT * np.arange(of_pools.shape[1] + 1),
        capacity=np.broadcast_to(np.array(capacity, dtype=np.float64), (n_pools,)),
        need=of_pools,
        expected=of_pools,
        waiting=np.full(n_pools, waiting),
        waits=("shop/Deployment/rank" if waiting else "",) * n_pools,
        services=("shop/Deployment/rank",),
        by_service=of_pools[None],
        unmoved=np.zeros(n_pools),
        forecast=forecast,
    )
