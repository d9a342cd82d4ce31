"""Which nodes come first, as points of the extender protocol: it knows nothing but points.

    policy: pools --> rules: own machines, cards --> points that no score of another node makes up for

The nodes that come first in our own loops get ORDER_POINTS more than those that would come first without them, and so
on. kube-scheduler adds up and clamps nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.plugins import NodePreference
from placement.policies.policy import Policy
from scorer.scoring_policy import opts_out

ORDER_POINTS: Final = 100_000
"""More than all scores of a node come to."""

_MOST_PLACES: Final = 8
"""Nodes that come later than so are equal: kube-scheduler takes the best that it offered."""


def order_points(
    pod: PodInfo, view: ClusterView, rows: Ints, policy: Policy, preferences: Iterable[NodePreference]
) -> Ints:
    """Return points in addition to those of scores, (n_nodes,). A pod that opts out is placed by kube-scheduler's
    scores alone.

    rows        : (n_nodes,) of nodes that passed all filters; -1 = not known, which gets no points
    preferences : of the rules about nodes, in their order; see in_order
    """
    rest, places = np.unique(rows[rows >= 0]), list[Ints]()
    if opts_out(pod):
        return np.zeros(len(rows), dtype=np.int64)
    all_in_order = in_order(policy, preferences)
    while len(rest) and len(places) < _MOST_PLACES:
        first = _narrowed(pod, view, rest, all_in_order)
        places.append(first)
        rest = np.setdiff1d(rest, first, assume_unique=True)
    points = np.zeros(view.n_rows + 1, dtype=np.int64)  # the last entry is that of nodes that are not known
    behind = len(places) - (not len(rest))
    for place, of_place in enumerate(places):
        points[of_place] = ORDER_POINTS * (behind - place)
    return points[rows]


def in_order(policy: Policy, preferences: Iterable[NodePreference]) -> tuple[NodePreference, ...]:
    """Return all preferences for a pod, the strongest first, whatever places it: a node that is kept for it, then the
    order of the pools of its policy, then those of rules and profile.

    A node is kept only where the plan of the rebalancer has judged that it is the better one.
    """
    given = tuple(preferences)
    kept = tuple(one for one in given if one.before_pools)
    of_policy: tuple[NodePreference, ...] = () if policy.pools is None else (policy.pools,)
    return (*kept, *of_policy, *(one for one in given if not one.before_pools))


def _narrowed(pod: PodInfo, view: ClusterView, rows: Ints, preferences: Iterable[NodePreference]) -> Ints:
    """The rows among which scores decide."""
    for preference in preferences:
        if len(rows) < 2:
            break
        rows = preference.prefer(pod, 1, view, rows).rows
    return rows
