"""What owners that run once bring to nodes: expected by the hour, as a part of a node's base load.

No pod of theirs that is there now says anything about tonight, and those to come have no node yet. What they bring is
expected of each node by day type and half hour, as its share of what the cluster had of it. `NodeBase` takes it up, so
every reader of a model has it. While services and nodes are learned, what these pods used is taken off the nodes.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from base.arrays import Floats
from forecast.calendar import Days
from forecast.history import History
from forecast.node_base import NodeBase
from forecast.run_forecast import RECENT_DAYS, mean_by_day_type, one_kind_until_shown
from forecast.spread import smooth_slots


def without_one_offs(history: History) -> History:
    """The history as if the pods of groups had not been on its nodes; what is known of their services stays."""
    if history.one_off_usage is None:
        return history
    is_group = np.array([service.is_group for service in history.services], dtype=np.bool_)
    # Where their usage is unknown (NaN), so is the rest of the node.
    return replace(
        history,
        node_usage=np.maximum(history.node_usage - history.one_off_usage, 0.0),
        node_pod_usage=np.maximum(history.node_pod_usage - history.one_off_usage, 0.0),
        placements=history.placements.of(~is_group),
        one_off_usage=None,
    )


def with_one_offs(base: NodeBase, history: History, days: Days) -> NodeBase:
    """The base load of nodes with what groups of one-off owners are expected to bring.

        expected(n, type, slot) = share(n) x mean over the days of the type of what all nodes had in the slot

    The cluster's mean, since that of one node on a few Saturdays is chance. Its error is how far the node was from it.

    history : with `one_off_usage`
    days    : of the history
    """
    used = history.one_off_usage
    if used is None:
        return base
    used = used[:, :, -RECENT_DAYS:].astype(np.float64)  # (n_nodes, n_resources, n_recent, 48)
    known = np.isfinite(used)
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # resources that are not measured
        # A gap of single nodes is filled with the mean of the others.
        total = np.nanmean(used, axis=0) * len(used)  # (n_resources, n_recent, 48)
        of_node = np.nanmean(used, axis=(2, 3))  # (n_nodes, n_resources)
    since = np.zeros(len(total), dtype=np.int64)
    of_type = one_kind_until_shown(total, mean_by_day_type(total, since, days), days)  # (n_resources, 4, 48)
    of_node = np.nan_to_num(of_node)
    share = of_node / np.maximum(of_node.sum(axis=0), np.finfo(np.float64).tiny)
    expected: Floats = share[:, :, None, None] * of_type  # (n_nodes, n_resources, 4, 48)
    wrong = np.where(known, used - expected[:, :, days.day_type[-used.shape[2] :]], 0.0)
    variance = (wrong**2).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
    return NodeBase(
        profile=base.profile + expected,
        std=np.sqrt(base.std**2 + smooth_slots(variance)),
    )
