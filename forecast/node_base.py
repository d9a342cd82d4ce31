"""What a node uses beside its scheduled pods: kubelet, daemons, the log collector.

Pods of DaemonSets belong here: nobody places them, they come with the node.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from forecast.arrays import AnyFloats, Floats
from forecast.calendar import Days, DayType
from forecast.spread import smooth_slots

__all__ = ["NodeBase", "fit_node_base"]

_WINDOW_DAYS = 28


@dataclass(frozen=True, slots=True)
class NodeBase:
    """profile: (n_nodes, n_resources, 4, 48), std: (n_nodes, n_resources, 48), base units; 0 where never measured."""

    profile: Floats
    std: Floats


def fit_node_base(node_usage: AnyFloats, node_pod_usage: AnyFloats, capacity: AnyFloats, days: Days) -> NodeBase:
    """Mean and scatter of (node total - pods) per day type and slot.

    Nodes without data get the others' share of capacity.

    node_usage, node_pod_usage : (n_nodes, n_resources, n_days, 48)
    capacity                   : (n_nodes, n_resources)
    """
    recent = slice(-_WINDOW_DAYS, None)
    base = np.maximum(node_usage[:, :, recent].astype(np.float64) - np.nan_to_num(node_pod_usage[:, :, recent]), 0.0)
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
    return NodeBase(
        profile=smooth_slots(np.where(np.isfinite(profile), profile, lent)),
        std=smooth_slots(np.nan_to_num(std)),
    )
