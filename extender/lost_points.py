"""Points of the extender that nodes lose by what a policy says of them, whatever scores say."""

from __future__ import annotations

import numpy as np

from extender.filters.filter import ClusterView
from extender.policies.policy import Policy
from forecast.arrays import Ints
from scorer.cluster.objects import PodInfo
from scorer.opt_out import opts_out

__all__ = ["POOL_POINTS", "lost_for_devices", "lost_in_protocol"]

POOL_POINTS = 100_000
"""Between a pool of nodes and the next: more than all scores of a node come to."""


def lost_for_devices(pod: PodInfo, view: ClusterView, policy: Policy) -> Ints | None:
    """(n_rows,) because their devices are kept for others; None = nothing."""
    if policy.avoided is None or opts_out(pod):
        return None
    return np.where(policy.avoided.reserved_for_others(pod, view), policy.avoided_points, 0)


def lost_in_protocol(pod: PodInfo, view: ClusterView, policy: Policy) -> Ints | None:
    """(n_rows,) the same, and what puts pools of nodes into their order: the protocol knows nothing but points."""
    lost = lost_for_devices(pod, view, policy)
    if policy.pools is None or opts_out(pod):
        return lost
    order = POOL_POINTS * policy.pools.places(view)
    return order if lost is None else order + lost
