"""What a node can do physically, in the five resources: Kubernetes knows only CPU and memory.

1. the node's annotation forecast-scheduler.io/capacity, such as {"disk": "200M", "network": "1.25G", "log": "2M"}
2. CPU and memory of status.capacity
3. what the trainer found out of this node
4. what the trainer found out of nodes with as much CPU: their median
5. the defaults of the settings
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping

import numpy as np

from forecast.arrays import Floats
from forecast.errors import InputError
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY, RESOURCES
from scorer.cluster.objects import ANNOTATION_PREFIX, NodeInfo
from scorer.cluster.quantity import parse_quantity

__all__ = ["CAPACITY_ANNOTATION", "LARGEST", "KnownCapacities", "amounts_in"]

CAPACITY_ANNOTATION = ANNOTATION_PREFIX + "capacity"
_NAMES = {resource.name: index for index, resource in enumerate(RESOURCES)}
_SAME_SIZE = 0.01
_MOST_SIZES = 1000

LARGEST = np.array([1e6 if resource.unit == "cores" else 1e15 for resource in RESOURCES])
"""More of a resource than any machine has. Anybody may write any figure into a pod, and larger ones would drown all
others in sums that are kept up to date by adding and subtracting."""


class KnownCapacities:
    """Looks capacities up in the order above."""

    def __init__(self, model: PeakModel | None, defaults: Mapping[str, float] | None = None) -> None:
        """defaults : by resource name, base units"""
        self._defaults = amounts_row(defaults or {})
        self._row_of = {} if model is None else {name: row for row, name in enumerate(model.nodes)}
        self._like: dict[float, Floats] = {}
        self._known = np.empty((0, len(RESOURCES))) if model is None else model.node_capacity.astype(np.float64)

    def of(self, node: NodeInfo) -> Floats:
        """Capacities of a node: (n_resources,), NaN = not a limit as far as anybody knows."""
        capacity = np.full(len(RESOURCES), np.nan)
        for name, index in (("cpu", CPU), ("memory", MEMORY)):
            capacity[index] = node.capacity.get(name, node.allocatable.get(name, np.nan))
        cpu, row = float(capacity[CPU]), self._row_of.get(node.name)
        if row is not None:
            capacity = np.where(np.isfinite(capacity), capacity, self._known[row])
        if not np.isfinite(capacity).all():
            capacity = np.where(np.isfinite(capacity), capacity, self._of_nodes_like(cpu))
            capacity = np.where(np.isfinite(capacity), capacity, self._defaults)
        try:
            said = amounts_in(node.annotations.get(CAPACITY_ANNOTATION, ""))
        except InputError:
            said = {}  # a mistake in an annotation must not take the node away
        for name, amount in said.items():
            capacity[_NAMES[name]] = amount
        return capacity

    def _of_nodes_like(self, cpu: float) -> Floats:
        """Median capacities of the nodes the model knows with as much CPU: (n_resources,). Kept: sizes are few."""
        found = self._like.get(cpu)
        if found is None:
            like = np.abs(self._known[:, CPU] - cpu) <= _SAME_SIZE * cpu  # NaN = like none
            found = np.full(len(RESOURCES), np.nan)
            if like.any():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # a resource that is no limit anywhere
                    found = np.asarray(np.nanmedian(self._known[like], axis=0))
            if len(self._like) < _MOST_SIZES:
                self._like[cpu] = found
        return found


def amounts_in(annotation: str) -> dict[str, float]:
    """Amounts by resource name of an annotation such as {"cpu": "500m", "disk": "20M"}; empty for an empty one.

    Raises InputError: not a JSON object, an unknown resource, not a quantity, or below 0.
    """
    if not annotation:
        return {}
    try:
        document = json.loads(annotation)
    except (ValueError, RecursionError) as error:  # too deeply nested: anybody may write an annotation
        raise InputError(f'annotation {annotation[:80]!r} is not JSON: write for instance {{"cpu": "500m"}}') from error
    if not isinstance(document, dict):
        raise InputError(f'annotation {annotation[:80]!r} is no JSON object: write for instance {{"cpu": "500m"}}')
    amounts = {}
    for name, quantity in document.items():
        if name not in _NAMES:
            raise InputError(f"annotation names the resource {name!r}: known are {', '.join(_NAMES)}")
        amount = parse_quantity(str(quantity))
        if not (math.isfinite(amount) and amount >= 0):
            raise InputError(f"annotation gives {name} the amount {quantity!r}: it must be 0 or more")
        amounts[name] = amount
    return amounts


def amounts_row(amounts: Mapping[str, float]) -> Floats:
    """Amounts by resource name as a row, NaN where none is given: (n_resources,)."""
    row = np.full(len(RESOURCES), np.nan)
    for name, amount in amounts.items():
        row[_NAMES[name]] = amount
    return row
