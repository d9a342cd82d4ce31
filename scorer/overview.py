"""Answers from the overview of all nodes: the peak of a day, and the heat map."""

from __future__ import annotations

import numpy as np

from cluster.overview import Overview
from cluster.predicted.horizon import start_of_slot
from cluster.predicted.unknown_capacity import limited
from forecast.resources import RESOURCES, resource_index
from scorer.answers import HeatMap, Peak

_SLOTS_PER_HOUR = 2


def day_peak(overview: Overview, row: int, day: int) -> Peak | None:
    """The peak of a node on a day of the horizon, of the resource that comes closest to its capacity; None = none has
    one."""
    capacity = overview.capacity[row]
    limits = limited(capacity)
    if not limits.any():
        return None
    expected = overview.peak[row, :, 0, day]
    share = np.where(limits, expected / np.where(limits, capacity, 1.0), -np.inf)
    r = int(share.argmax())
    return Peak(
        resource=RESOURCES[r].name,
        unit=RESOURCES[r].unit,
        expected=float(expected[r]),
        bound=float(overview.peak[row, r, 1, day]),
        capacity=float(capacity[r]),
        share=float(share[r]),
        at=start_of_slot(overview.horizon.days[day], int(overview.peak_slot[row, r, day]), overview.horizon.zone),
        assumed=bool(overview.assumed[row, r]),
    )


def heat_map_of(overview: Overview, resource: str | None, top: int) -> HeatMap:
    """The `top` hottest nodes of what is left of the horizon; resource None = whichever is highest."""
    columns = slice(None) if resource is None else [resource_index(resource)]
    by_resource = overview.hourly[:, columns]
    share = np.where(np.isfinite(by_resource), by_resource, -np.inf).max(axis=1)
    share = np.where(np.isfinite(share), share, np.nan)
    coming = overview.horizon.slot // _SLOTS_PER_HOUR
    hottest = np.nan_to_num(share[:, coming:], nan=-1.0).max(axis=1, initial=-1.0)
    highest = np.nan_to_num(by_resource[:, :, coming:], nan=-1.0).max(axis=2, initial=-1.0).argmax(axis=1)
    assumed = overview.assumed[:, columns][np.arange(len(highest)), highest]
    order = np.argsort(-hottest, kind="stable")[:top]
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
