"""What a node can do physically, in the five resources: read from the node, in columns with a row per node, and in one
log line.
"""

from __future__ import annotations

import json
import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from base.errors import InputError
from cluster.predicted.array_rows import grown
from forecast.assumed_capacity import SAME_SIZE
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY, RESOURCES
from kube.objects.objects import ANNOTATION_PREFIX, NodeInfo
from kube.objects.quantity import parse_quantity

CAPACITY_ANNOTATION = ANNOTATION_PREFIX + "capacity"
_NAMES = {resource.name: index for index, resource in enumerate(RESOURCES)}
_MOST_SIZES = 1000
_MOST_MISTAKES = 5

logger = logging.getLogger(__name__)
_UNREAD_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What is taken for the capacity of one node.

    amount   : (n_resources,) base units, NaN = neither known nor assumed
    assumed  : (n_resources,) whether the trainer assumed it
    mistakes : what cannot be read of the node's annotation, one sentence each
    """

    amount: Floats
    assumed: Bools
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadCapacity:
    """A node whose capacity annotation has entries that cannot be read, and what is wrong with them."""

    node: str
    mistakes: tuple[str, ...]


class KnownCapacities:
    """Looks capacities up in the order above."""

    def __init__(self, model: PeakModel | None, defaults: Mapping[str, float] | None = None) -> None:
        """defaults : by resource name, base units"""
        self._defaults = amounts_row(defaults or {})
        nodes = () if model is None else model.nodes
        none = np.empty((0, len(RESOURCES)))
        capacity = none if model is None else model.node_capacity.astype(np.float64)
        assumed = none > 0 if model is None else model.node_capacity_assumed > 0
        self._known = _ByNode(nodes, np.where(assumed, np.nan, capacity), capacity[:, CPU])
        self._assumed = _ByNode(nodes, np.where(assumed, capacity, np.nan), capacity[:, CPU])

    def of(self, node: NodeInfo) -> Floats:
        """Returns the capacities of a node, assumed ones included: (n_resources,), NaN = not a limit."""
        return self.look_up(node).amount

    def look_up(self, node: NodeInfo) -> NodeCapacity:
        """Returns the capacities of a node, which of them are assumed, and what is wrong with its annotation."""
        capacity = np.full(len(RESOURCES), np.nan)
        for name, index in (("cpu", CPU), ("memory", MEMORY)):
            capacity[index] = node.capacity.get(name, node.allocatable.get(name, np.nan))
        cpu = float(capacity[CPU])
        self._known.fill(capacity, node.name, cpu)
        capacity = np.where(np.isfinite(capacity), capacity, self._defaults)
        said = read_amounts(node.annotations.get(CAPACITY_ANNOTATION, ""))
        for name, amount in said.by_name.items():
            capacity[_NAMES[name]] = amount
        unknown = ~np.isfinite(capacity)
        self._assumed.fill(capacity, node.name, cpu)
        return NodeCapacity(capacity, unknown & np.isfinite(capacity), said.mistakes)


class _ByNode:
    """Capacities of the nodes of a model, by name and by size."""

    def __init__(self, nodes: tuple[str, ...], capacity: Floats, cpu: AnyFloats) -> None:
        """capacity: (n_nodes, n_resources); cpu: (n_nodes,) cores"""
        self._row_of = {name: row for row, name in enumerate(nodes)}
        self._capacity, self._cpu = capacity, cpu
        self._like: dict[float, Floats] = {}

    def fill(self, capacity: Floats, name: str, cpu: float) -> None:
        """Fill the gaps of (n_resources,) in place: from the node itself, else from the nodes with as much CPU."""
        row = self._row_of.get(name)
        if row is not None:
            np.copyto(capacity, self._capacity[row], where=~np.isfinite(capacity))
        if not np.isfinite(capacity).all():
            np.copyto(capacity, self._of_nodes_like(cpu), where=~np.isfinite(capacity))

    def _of_nodes_like(self, cpu: float) -> Floats:
        """Median capacities of the nodes with as much CPU: (n_resources,). Kept: sizes are few."""
        found = self._like.get(cpu)
        if found is None:
            like = np.abs(self._cpu - cpu) <= SAME_SIZE * cpu  # NaN = like none
            found = np.full(len(RESOURCES), np.nan)
            if like.any():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # a resource that is no limit anywhere
                    found = np.asarray(np.nanmedian(self._capacity[like], axis=0))
            if len(self._like) < _MOST_SIZES:
                self._like[cpu] = found
        return found


@dataclass(frozen=True, slots=True)
class Amounts:
    """What an annotation such as {"cpu": "500m", "disk": "20M"} says.

    by_name  : base units by resource name, of the entries that can be read
    mistakes : what is wrong with the others, one sentence each
    """

    by_name: Mapping[str, float]
    mistakes: tuple[str, ...] = ()


def read_amounts(annotation: str) -> Amounts:
    """Returns the entries of an annotation that can be read, and what is wrong with the others; raises nothing."""
    if not annotation:
        return Amounts({})
    try:
        document = json.loads(annotation)
    except (ValueError, RecursionError):  # too deeply nested: any client may write an annotation
        return Amounts({}, (f'annotation {annotation[:80]!r} is not JSON: write for instance {{"cpu": "500m"}}',))
    if not isinstance(document, dict):
        return Amounts({}, (f'annotation {annotation[:80]!r} is no JSON object: write for instance {{"cpu": "500m"}}',))
    amounts: dict[str, float] = {}
    mistakes: list[str] = []
    for name, quantity in document.items():
        try:
            amounts[name] = _amount(name, quantity)
        except InputError as error:
            mistakes.append(str(error))
    return Amounts(amounts, tuple(mistakes[:_MOST_MISTAKES]))


def _amount(name: str, quantity: object) -> float:
    """Returns one entry in base units. Raises InputError: an unknown resource, not a quantity, or below 0."""
    if name not in _NAMES:
        raise InputError(f"annotation names the resource {name[:80]!r}: known are {', '.join(_NAMES)}")
    amount = parse_quantity(str(quantity))
    if not (math.isfinite(amount) and amount >= 0):
        raise InputError(f"annotation gives {name} the amount {str(quantity)[:80]!r}: it must be 0 or more")
    return amount


def amounts_in(annotation: str) -> Mapping[str, float]:
    """Returns the amounts of an annotation by resource name; empty for an empty one.

    Raises InputError for the first entry that cannot be read: not a JSON object, an unknown resource, not a quantity,
    or below 0.
    """
    amounts = read_amounts(annotation)
    if amounts.mistakes:
        raise InputError(amounts.mistakes[0])
    return amounts.by_name


def amounts_row(amounts: Mapping[str, float]) -> Floats:
    """Amounts by resource name as a row, NaN where none is given: (n_resources,)."""
    row = np.full(len(RESOURCES), np.nan)
    for name, amount in amounts.items():
        row[_NAMES[name]] = amount
    return row


class CapacityColumns:
    """What each node can do, which of that the trainer assumed, and annotations with mistakes.

    amount  : (n_rows, n_resources) base units, NaN = not a limit
    assumed : (n_rows, n_resources)
    """

    def __init__(self) -> None:
        self.amount: Floats = np.full((0, len(RESOURCES)), np.nan)
        self.assumed: Bools = np.zeros((0, len(RESOURCES)), dtype=bool)
        self._unread: dict[int, UnreadCapacity] = {}

    def ensure(self, n_rows: int) -> None:
        """Make room for at least `n_rows`."""
        self.amount, self.assumed = grown(self.amount, n_rows, np.nan), grown(self.assumed, n_rows, False)

    def put(self, row: int, node: str, known: NodeCapacity) -> None:
        """Keep what is known of the node in a row."""
        self.clear(row)
        self.amount[row], self.assumed[row] = known.amount, known.assumed
        if known.mistakes:
            self._unread[row] = UnreadCapacity(node, known.mistakes)

    def put_all(self, rows: Ints | list[int], amount: Floats, assumed: Bools) -> None:
        """Keep other capacities for nodes whose annotations are as they were; amount, assumed: of all rows."""
        self.amount[rows], self.assumed[rows] = amount[rows], assumed[rows]

    def clear(self, row: int) -> None:
        """Forget the node in a row."""
        self.amount[row], self.assumed[row] = np.nan, False
        self._unread.pop(row, None)

    def unread(self) -> tuple[UnreadCapacity, ...]:
        """Returns the nodes whose capacity annotation has entries that cannot be read; its other entries are in use.

        In the order of their rows: a node that changes in another way makes no difference.
        """
        return tuple(self._unread[row] for row in sorted(self._unread))


class CapacityLog:
    """Remembers what it said last."""

    def __init__(self) -> None:
        self._gaps = ""
        self._unread: tuple[UnreadCapacity, ...] = ()
        self._beyond: tuple[str, ...] = ()

    def tell_gaps(self, gaps: str) -> None:
        """Log which resources have no capacity. gaps: see forecast.assumed_capacity, "" = none."""
        if gaps and gaps != self._gaps:
            logger.warning(gaps)
        self._gaps = gaps

    def tell_unread(self, unread: Sequence[UnreadCapacity]) -> None:
        """Log which capacity annotations have entries that cannot be read."""
        if unread and tuple(unread) != self._unread:
            logger.warning(
                "%d nodes have a capacity annotation with entries that cannot be read; the other entries count",
                len(unread),
                extra={"nodes": "; ".join(f"{one.node}: {'; '.join(one.mistakes)}" for one in unread[:_UNREAD_SHOWN])},
            )
        self._unread = tuple(unread)

    def tell_beyond(self, pods: Sequence[str]) -> None:
        """Log which pods request or declare more than any node could give them."""
        if pods and tuple(pods) != self._beyond:
            logger.warning(
                "%d pods request or declare more than their node has, or than any node: they count as what it has; "
                "correct their requests or the annotation virtual-request",
                len(pods),
                extra={"pods": ", ".join(pods[:_UNREAD_SHOWN])},
            )
        self._beyond = tuple(pods)
