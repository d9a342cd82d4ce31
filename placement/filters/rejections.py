"""Rejections only where there are nodes to reject: a filter that rejects none says nothing."""

from __future__ import annotations

import numpy as np

from base.arrays import Bools
from placement.filters.filter import ClusterView, Rejection


def found(
    nodes: Bools,
    view: ClusterView,
    reason: str,
    *,
    preemptible: bool,
    by_requests: bool = False,
    about_pod: bool = False,
) -> tuple[Rejection, ...]:
    """One rejection of these nodes, (n_rows,); none if there is no node among them. See Rejection."""
    nodes = nodes & view.state.alive
    return (Rejection(nodes, reason, preemptible, by_requests, about_pod),) if nodes.any() else ()


def every_node(view: ClusterView, reason: str) -> tuple[Rejection, ...]:
    """All nodes, for a reason that evicting pods does not change."""
    return found(np.ones(view.n_rows, dtype=bool), view, reason, preemptible=False)
