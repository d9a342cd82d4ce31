"""Evidence on resources that only nodes are measured for, such as log bytes of a collector: daily peaks of nodes.

Nobody knows what came of a single pod there, so what is compared is what placement acts upon: the load of each node
from the pods that really ran on it that day, as `PeakModel` sums it up, with the calibrated z for both quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np

from forecast.arrays import Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import peak_at
from forecast.history import History, Placements
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.node_forecast import node_forecast
from forecast.resources import RESOURCES

__all__ = ["node_only", "node_peaks_of"]


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
    node = _rows(history.nodes, model.nodes)
    service = _rows(history.services, model.services)
    peaks = np.full((len(node), len(RESOURCES), len(days), len(PEAK_QUANTILES)), np.nan)
    for position, day in enumerate(days):
        begin = history.days.index(day) * SLOTS_PER_DAY
        runs = history.placements.between(begin, begin + SLOTS_PER_DAY)
        told = (node[runs.node] >= 0) & (service[runs.service] >= 0)
        known_runs = Placements(
            runs.pod[told], service[runs.service[told]], node[runs.node[told]], runs.first[told], runs.end[told]
        )
        finite: Bools = np.all(np.isfinite(model.usage((day,))), axis=(2, 3))  # (n_model_services, n_resources)
        for r, load in enumerate(node_forecast(model, known_runs, (day,))):
            # A model that knows nothing of any pod has all of the load in its base.
            with_usage = finite[:, r] if finite[:, r].any() else np.ones(len(finite), dtype=np.bool_)
            unknown = ~np.append(with_usage, False)[service]  # the last one: services it does not know
            known = node >= 0
            known[runs.node[unknown[runs.service]]] = False
            for q in range(len(PEAK_QUANTILES)):
                peaks[known, r, position, q] = peak_at(load, float(model.node_z[r, q]))[node[known], 0]
    return peaks


def _rows(wanted: Sequence[object], names: Sequence[object]) -> Ints:
    """Where each of `wanted` stands among `names`, -1 = nowhere."""
    row = {name: index for index, name in enumerate(names)}
    return np.array([row.get(name, -1) for name in wanted], dtype=np.int64)
