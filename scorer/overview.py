"""Answers from the overview of all nodes: the heat map."""

from __future__ import annotations

import numpy as np

from cluster.overview import Overview
from cluster.predicted.horizon import start_of_slot
from cluster.predicted.node_load import counted, hottest_first
from forecast.resources import resource_index
from scorer.answers import HeatMap

_SLOTS_PER_HOUR = 2


def heat_map_of(overview: Overview, resource: str | None, top: int) -> HeatMap:
    """The `top` hottest nodes of what is left of the horizon; resource None = whichever is highest."""
    columns = slice(None) if resource is None else [resource_index(resource)]
    by_resource = overview.hourly[:, columns]
    if resource is None:
        by_resource = np.where(counted(overview.capacity, overview.assumed)[:, :, None], by_resource, np.nan)
    share = np.where(np.isfinite(by_resource), by_resource, -np.inf).max(axis=1)
    share = np.where(np.isfinite(share), share, np.nan)
    coming = overview.horizon.slot // _SLOTS_PER_HOUR
    hottest = np.nan_to_num(share[:, coming:], nan=-1.0).max(axis=1, initial=-1.0)
    highest = np.nan_to_num(by_resource[:, :, coming:], nan=-1.0).max(axis=2, initial=-1.0).argmax(axis=1)
    assumed = overview.assumed[:, columns][np.arange(len(highest)), highest]
    order = hottest_first(np.where(hottest < 0, np.nan, hottest), overview.names)[:top]
    days, zone = overview.horizon.days, overview.horizon.zone
    hours = tuple(start_of_slot(days[hour // 24], hour % 24 * _SLOTS_PER_HOUR, zone) for hour in range(share.shape[1]))
    return HeatMap(
        resource=resource,
        hours=hours,
        nodes=tuple(overview.names[i] for i in order.tolist()),
        share=share[order].astype(np.float64).round(4),  # a hundredth of a percent
        n_nodes=len(overview.names),
        assumed=tuple(assumed[order].tolist()),
    )
