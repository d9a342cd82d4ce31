"""What a node uses besides its scheduled pods: kubelet, daemons, the log collector.

Pods of DaemonSets belong here: no scheduler chooses their node, they come with it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import Days, DayType
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
