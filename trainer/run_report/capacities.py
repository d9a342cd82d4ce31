"""Capacities of a model that are not configured: which were learned for which kind of node, and which are missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from base.arrays import Floats
from forecast.assumed_capacity import ASSUMED_RESOURCES, MARGIN, kinds_of_nodes
from forecast.capacity_gaps import capacity_gaps, resources_measured
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU, RESOURCES
from trainer.amounts import amount

_DAYS_LOOKED_AT = 7


@dataclass(frozen=True, slots=True)
class AssumedCapacity:
    """What nodes of one kind are taken to be able to do, in base units.

    cpu_cores : of the smallest of the nodes
    sustained : the rate that the busiest of them sustained (forecast.assumed_capacity)
    """

    resource: str
    cpu_cores: float
    nodes: int
    sustained: float
    capacity: float


@dataclass(frozen=True, slots=True)
class Capacities:
    """assumed: by resource and kind; gaps: one line about resources that have no capacity, "" = there are none."""

    assumed: tuple[AssumedCapacity, ...]
    gaps: str

    def lines(self) -> list[str]:
        """Returns one line per resource with an assumed capacity, then the gaps."""
        found = []
        for name in dict.fromkeys(one.resource for one in self.assumed):
            unit = next(resource.unit for resource in RESOURCES if resource.name == name)
            kinds = "; ".join(
                f"{amount(one.capacity, unit)} on {one.nodes} nodes of {one.cpu_cores:g} cores"
                for one in self.assumed
                if one.resource == name
            )
            found.append(f"capacity of {name} assumed, {MARGIN:g} x what such nodes sustained: {kinds}")
        return [*found, *([self.gaps] if self.gaps else [])]

    def to_json(self) -> dict[str, Any]:
        return {"assumed": [asdict(one) for one in self.assumed], "gaps": self.gaps or None}


def capacities_of(model: PeakModel, history: History) -> Capacities:
    """Returns the assumed capacities of a model and the gaps on nodes that were measured in the last week."""
    kinds = kinds_of_nodes(model.node_capacity[:, CPU])
    assumed = []
    for resource in ASSUMED_RESOURCES:
        for kind in range(kinds.max(initial=-1) + 1):
            nodes = np.flatnonzero((kinds == kind) & (model.node_capacity_assumed[:, resource] > 0))
            if len(nodes):
                capacity = float(model.node_capacity[nodes[0], resource])
                cores = float(model.node_capacity[nodes, CPU].min())
                name = RESOURCES[resource].name
                assumed.append(AssumedCapacity(name, cores, len(nodes), capacity / MARGIN, capacity))
    there = np.asarray(np.isfinite(history.node_usage[:, :, -_DAYS_LOOKED_AT:]).any(axis=(1, 2, 3)))
    return Capacities(tuple(assumed), capacity_gaps(_as_the_scorer_has_it(model)[there], resources_measured(model)))


def _as_the_scorer_has_it(model: PeakModel) -> Floats:
    """Capacities with those of nodes with as much CPU in the gaps: (n_nodes, n_resources)."""
    capacity = model.node_capacity.astype(np.float64)
    kinds = kinds_of_nodes(capacity[:, CPU])
    for kind in range(kinds.max(initial=-1) + 1):
        for resource in ASSUMED_RESOURCES:
            of_kind = capacity[kinds == kind, resource]
            if np.isfinite(of_kind).any():
                capacity[kinds == kind, resource] = np.where(np.isnan(of_kind), np.nanmedian(of_kind), of_kind)
    return capacity
