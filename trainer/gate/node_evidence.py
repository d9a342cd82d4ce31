"""Evidence on resources that only nodes are measured for, such as log bytes of a collector: daily peaks of nodes.

The usage of a single pod is unknown there, so the comparison is of what placement acts upon: the load of each node from
the pods that really ran on it that day, as `PeakModel` sums it up, with the calibrated z for both quantiles.
"""

from __future__ import annotations

from datetime import date

import numpy as np

from forecast.arrays import Bools, Floats
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import peak_at
from forecast.history import History
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.node_forecast import known_runs, node_forecast, nodes_understood, rows_among
from forecast.resources import RESOURCES


def node_only(history: History, n_days: int) -> Bools:
    """Resources of which nodes were measured and no pod was, over the last days: (n_resources,)."""
    pods = np.isfinite(history.usage_per_pod[:, :, -n_days:]).any(axis=(0, 2, 3))
    nodes = np.isfinite(history.node_usage[:, :, -n_days:]).any(axis=(0, 2, 3))
    return np.asarray(nodes & ~pods)


def node_peaks_of(model: PeakModel, history: History, days: tuple[date, ...]) -> Floats:
    """What a model says about the history's nodes: (n_nodes, n_resources, n_days, n_quantiles), NaN = nothing.

    It says nothing about nodes that it does not know, nor on days when a pod of a service sat on them that it knows no
    usage of.
    """
    node = rows_among(history.nodes, model.nodes)
    service = rows_among(history.services, model.services)
    peaks = np.full((len(node), len(RESOURCES), len(days), len(PEAK_QUANTILES)), np.nan)
    for position, day in enumerate(days):
        begin = history.days.index(day) * SLOTS_PER_DAY
        runs = history.placements.between(begin, begin + SLOTS_PER_DAY)
        understood = nodes_understood(model, runs, service, node, day)
        for r, load in enumerate(node_forecast(model, known_runs(runs, service, node), (day,))):
            known = understood[:, r]
            for q in range(len(PEAK_QUANTILES)):
                peaks[known, r, position, q] = peak_at(load, float(model.node_z[r, q]))[node[known], 0]
    return peaks
