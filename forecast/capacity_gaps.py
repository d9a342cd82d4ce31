"""Which resources have no capacity, neither known nor assumed, in one line that says what mends it."""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Bools
from forecast.assumed_capacity import ASSUMED_RESOURCES
from forecast.model import PeakModel
from forecast.resources import RESOURCES


def capacity_gaps(capacity: AnyFloats, measured: Bools) -> str:
    """Returns one line that names the resources without a capacity and the settings that give them one; "" = none.

    capacity : (n_nodes, n_resources) base units, NaN = neither known nor assumed; 0 = declared to be no limit
    measured : (n_resources,) whether the model knows any usage of the resource
    """
    n_nodes = len(capacity)
    without = {r: int(np.isnan(capacity[:, r]).sum()) for r in ASSUMED_RESOURCES}
    found = [r for r, n in without.items() if n]
    if not found:
        return ""
    where = ", ".join(
        f"{RESOURCES[r].name} on {'all' if without[r] == n_nodes else f'{without[r]} of'} {n_nodes} nodes"
        + ("" if measured[r] else " (its usage is not measured)")
        for r in found
    )
    named = ", ".join(f"prometheus.{RESOURCES[r].name}_capacity" for r in found)
    return (
        f"no capacity is known or can be learned of {where}: there it is no limit and enters no score; set {named} "
        "(bytes/s of one node) or the annotation forecast-scheduler.io/capacity of the nodes"
    )


def resources_measured(model: PeakModel) -> Bools:
    """Returns whether a model knows any usage of each resource, of services or of nodes: (n_resources,)."""
    of_services = np.isfinite(model.usage_day_type).any(axis=(0, 2, 3))
    return np.asarray(of_services | np.asarray((model.node_base > 0).any(axis=(0, 2, 3))))
