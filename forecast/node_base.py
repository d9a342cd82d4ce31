"""What a node uses besides its scheduled pods: kubelet, daemons, the log collector, and owners that run once, by the
hour.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import Days, DayType
from forecast.history import History
from forecast.run_forecast import RECENT_DAYS, mean_by_day_type, one_kind_until_shown
from forecast.spread import smooth_slots

_WINDOW_DAYS = 28


@dataclass(frozen=True, slots=True)
class NodeBase:
    """profile: (n_nodes, n_resources, 4, 48), std: (n_nodes, n_resources, 48), base units; 0 where never measured."""

    profile: Floats
    std: Floats


def usage_beside_pods(node_usage: AnyFloats, node_pod_usage: AnyFloats) -> Floats:
    """Node total - pods, at least 0; NaN where either is unknown: (n_nodes, n_resources, ...) like both arguments.

    If no pod of the cluster was ever seen to use a resource (network, log if the runtime does not report it), its base
    is the whole node. For all others a slot whose pods went unmeasured says nothing.
    """
    pods = node_pod_usage.astype(np.float64)
    # Not isfinite: a node without pods has a sum of 0 even in a resource that is never measured.
    per_pod = (pods > 0).any(axis=(0, *range(2, pods.ndim)))  # (n_resources,)
    pods[:, ~per_pod] = 0.0
    return np.maximum(node_usage - pods, 0.0)


def fit_node_base(node_usage: AnyFloats, node_pod_usage: AnyFloats, capacity: AnyFloats, days: Days) -> NodeBase:
    """Mean and scatter of (node total - pods) per day type and slot.

    Slots whose pods went unmeasured do not count; nodes without any other get the others' share of capacity.

    node_usage, node_pod_usage : (n_nodes, n_resources, n_days, 48)
    capacity                   : (n_nodes, n_resources)
    """
    recent = slice(-_WINDOW_DAYS, None)
    base = usage_beside_pods(node_usage[:, :, recent], node_pod_usage[:, :, recent])
    types = days.day_type[recent]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nodes or resources without data
        overall = np.nanmean(base, axis=2)  # (n_nodes, n_resources, 48)
        profile = np.stack(
            [np.nanmean(base[:, :, types == t], axis=2) if (types == t).any() else overall for t in DayType], axis=2
        )
        profile = np.where(np.isfinite(profile), profile, overall[:, :, None])
        std = np.nanstd(base, axis=2)
        share = np.nanmedian(profile / capacity[:, :, None, None], axis=0)  # (n_resources, 4, 48)
    lent = np.nan_to_num(share[None] * capacity[:, :, None, None])
    profile = smooth_slots(np.where(np.isfinite(profile), profile, lent))
    return NodeBase(
        profile=np.fmin(profile, capacity[:, :, None, None]),  # NaN is no limit
        std=smooth_slots(np.nan_to_num(std)),
    )


# What owners that run once bring to nodes: expected by the hour, as a part of a node's base load.
#
# No pod of theirs that is there now says anything about tonight, and those to come have no node yet. What they bring is
# expected of each node by day type and half hour, as its share of what the cluster had of it. `NodeBase` takes it up,
# so every reader of a model has it. While services and nodes are learned, what these pods used is taken off the nodes.


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
