"""The cluster while a plan is made: loads, room and budgets, which each move changes and `move_back` undoes.

Resources that limit no node are left out, those that make nodes hot come first, memory last. `ceiling` says how high a
load may go: no node becomes hot that was not, and no memory overflows that did not, both with a part of the margin on
top. Where the limit is passed already, heat may stay or change places, since it is counted; memory may not grow.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from base.errors import InputError
from cluster.predicted.power_growth import MEMORY_LIMIT
from forecast.resources import RESOURCES
from rebalancer.planning.heat import n_hot_resources, node_heat, resources_that_count
from rebalancer.planning.problem import Problem

LAST_DIGITS: Final = 1e-9
"""Relative error of sums of requests."""

CALL: Final = 5_000
"""Figures that take as long as a call of numpy for one."""


class PlanTables:
    """share, margin, ceiling : (n_nodes, n_counted, n_slots) of capacity; of them the first n_hot make nodes hot
    inverse : (n_nodes, n_counted) 1 / capacity, 0 where it is no limit
    heat    : (n_nodes,)
    changed : (n_nodes,) how many moves have touched the node
    movable : (n_pods,) pods whose move has a finite cost
    """

    def __init__(self, problem: Problem, guarded_margin: float) -> None:
        check(problem)
        self.problem = problem
        self.resources = resources_that_count(problem)
        self.n_hot = n_hot_resources(self.resources)
        self.inverse = _inverse(problem, self.resources)
        self.share = self._shares(problem.load)
        self.margin = self._shares(problem.margin)
        self.ceiling = self._ceiling(guarded_margin)
        self.heat = np.concatenate([node_heat(*self.hot_part(rows), problem.hot) for rows in _parts(problem.n_nodes)])
        self.free = problem.free.astype(np.float64)
        self.changed = np.zeros(problem.n_nodes, dtype=np.int64)
        self.effort = 0.0
        """Figures of pods that were looked at so far."""
        self.log: list[int] = []
        """Nodes that moves have touched, in order."""
        self._budgets(problem)
        self.node_of = problem.pods.node.copy()
        self.moved = np.zeros(len(problem.pods), dtype=bool)
        order = np.argsort(problem.pods.node, kind="stable")
        starts = np.searchsorted(problem.pods.node[order], np.arange(problem.n_nodes + 1))
        self._order, self._starts = order, starts

    def spend(self, effort: float) -> None:
        """So many figures of pods were looked at, as good as."""
        self.effort += effort

    def look_at(self, movable: Bools) -> None:
        """(n_pods,) pods that may move from now on."""
        self.movable = movable

    def pods_on(self, node: int) -> Ints:
        """Return the pods that sit on a node and may still be moved away."""
        self.effort += CALL
        pods = self._order[self._starts[node] : self._starts[node + 1]]
        return np.asarray(pods[self.movable[pods] & ~self.moved[pods]])

    def hot_part(self, rows: Ints | slice) -> tuple[Floats32, Floats32]:
        """Return share and margin of nodes, of the resources that make them hot."""
        return self.share[rows, : self.n_hot], self.margin[rows, : self.n_hot]

    def usage(self, pods: Ints | int) -> Floats32:
        """Return the usage of pods, base units: (..., n_counted, n_slots)."""
        found = self.problem.usage[self.problem.pods.profile[pods]]
        self.effort += found.size + CALL
        if len(self.resources) == found.shape[-2] and self.resources == list(range(found.shape[-2])):
            return np.asarray(found, dtype=np.float32)
        return np.asarray(found[..., self.resources, :], dtype=np.float32)

    def may_leave(self, pod: int) -> bool:
        """Whether the budgets allow this move away."""
        pods = self.problem.pods
        return bool(
            self.left > 0
            and self.movable[pod]
            and not self.moved[pod]
            and self.left_of_service[pods.service[pod]] > 0
            and self.left_of_namespace[pods.namespace[pod]] > 0
            and self.left_away[pods.node[pod]] > 0
        )

    def open_targets(self, pod: int) -> Bools:
        """(n_nodes,) nodes that may take the pod now, by rules, requests and budgets."""
        self.effort += 2 * CALL + self.problem.n_nodes
        pods = self.problem.pods
        found = self.problem.allowed[pods.shape[pod]] & (self.left_to > 0)
        found &= fits(self.free, pods.requests[pod])
        found[self.node_of[pod]] = False
        return np.asarray(found)

    def make(self, pod: int, target: int) -> None:
        """Move the pod; the caller has asked `may_leave` and `open_targets`."""
        self._shift(pod, int(self.node_of[pod]), target)
        self._count(pod, int(self.node_of[pod]), target, 1)

    def move_back(self, pod: int) -> None:
        """Undo the move of a pod, of whatever moves were made since."""
        source = int(self.problem.pods.node[pod])
        self._shift(pod, int(self.node_of[pod]), source)
        self._count(pod, source, int(self.node_of[pod]), -1)

    def _shift(self, pod: int, source: int, target: int) -> None:
        both = np.array([source, target])
        usage = self.usage(pod)
        self.share[source] -= usage * self.inverse[source][:, None]
        self.share[target] += usage * self.inverse[target][:, None]
        self.heat[both] = node_heat(*self.hot_part(both), self.problem.hot)

    def _count(self, pod: int, source: int, target: int, sign: int) -> None:
        pods = self.problem.pods
        self.free[source] += sign * pods.requests[pod]
        self.free[target] -= sign * pods.requests[pod]
        self.left -= sign
        self.left_of_service[pods.service[pod]] -= sign
        self.left_of_namespace[pods.namespace[pod]] -= sign
        self.left_away[source] -= sign
        self.left_to[target] -= sign
        self.changed[[source, target]] += 1
        self.log += (source, target)
        self.moved[pod] = sign > 0
        self.node_of[pod] = target if sign > 0 else source

    def _shares(self, base_units: np.ndarray) -> Floats32:
        found = np.empty((self.problem.n_nodes, len(self.resources), base_units.shape[2]), dtype=np.float32)
        for i, r in enumerate(self.resources):
            np.multiply(base_units[:, r], self.inverse[:, i : i + 1], out=found[:, i], casting="same_kind")
        return found

    def _ceiling(self, guarded_margin: float) -> Floats32:
        ceiling, hot = self.share.copy(), self.problem.hot
        for i in range(len(self.resources)):
            guarded = np.float32(guarded_margin) * self.margin[:, i]
            guarded += self.share[:, i]
            if i < self.n_hot:
                ceiling[:, i] += np.where(guarded > hot, np.float32(np.inf), hot - guarded)
            else:
                ceiling[:, i] += np.maximum(MEMORY_LIMIT - guarded, 0)
        return ceiling

    def _budgets(self, problem: Problem) -> None:
        budget = problem.budget
        self.movable = np.isfinite(problem.pods.cost)
        self.left = budget.total
        self.left_of_service = budget.per_service.astype(np.int64)
        self.left_of_namespace = budget.per_namespace.astype(np.int64)
        self.left_away = np.full(problem.n_nodes, budget.per_node, dtype=np.int64)
        self.left_to = self.left_away.copy()


def fits(free: Floats, requests: Floats) -> Bools:
    """(n_nodes,) nodes whose free room takes the requests; what a pod does not request, no node lacks."""
    # Rows that were added and taken away again differ in the last digits.
    return np.asarray(((requests * (1 - LAST_DIGITS) <= free) | (requests == 0)).all(axis=-1))


def check(problem: Problem) -> None:
    """Raise InputError if the columns do not fit together or hold what no plan can be made from."""
    n_nodes, n_resources, n_slots = problem.load.shape
    if n_resources != len(RESOURCES) or n_slots == 0:
        raise InputError(
            f"load of the problem has {n_resources} resources and {n_slots} slots: "
            f"give it the {len(RESOURCES)} of forecast.resources, and at least one slot"
        )
    expected = {
        "margin": (problem.margin.shape, (n_nodes, n_resources, n_slots)),
        "capacity": (problem.capacity.shape, (n_nodes, n_resources)),
        "free": (problem.free.shape[:1], (n_nodes,)),
        "usage": (problem.usage.shape[1:], (n_resources, n_slots)),
        "allowed": (problem.allowed.shape[1:], (n_nodes,)),
        "pods.requests": (problem.pods.requests.shape, (len(problem.pods), problem.free.shape[1])),
    }
    for name, (found, wanted) in expected.items():
        if found != wanted:
            raise InputError(f"{name} of the problem has the axes {found}, {wanted} are needed: make it like `load`")
    for name, values in {"load": problem.load, "margin": problem.margin, "usage": problem.usage}.items():
        if not np.isfinite(values).all():
            raise InputError(f"{name} of the problem holds values that are not finite: fill in 0 where none is known")
    if (problem.capacity <= 0).any():
        raise InputError("a capacity of the problem is not above 0: write NaN where a resource is no limit")


def _inverse(problem: Problem, resources: list[int]) -> Floats32:
    capacity = problem.capacity[:, resources]
    return np.where(np.isnan(capacity), 0.0, 1 / capacity).astype(np.float32)


def _parts(n: int, size: int = 512) -> list[slice]:
    """So many rows at a time, so that what is computed on the way stays small."""
    return [slice(start, start + size) for start in range(0, n, size)] or [slice(0, 0)]
