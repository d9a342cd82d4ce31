"""The live cluster laid out for a plan: what its nodes are expected to use, the pods on them, and where each may go.

LiveTables --snapshot (under the lock)--> copies --lay_out--> Problem, and the names behind its rows
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from cluster.live_tables import LiveTables
from cluster.predicted.horizon import Horizon
from cluster.predicted.load_parts import NodeBases
from cluster.predicted.node_curves import NodeInputs, gather
from cluster.predicted.node_load import LoadInputs
from cluster.predicted.pod_profiles import ProfileKey, Profiles
from cluster.predicted.predicted_cluster import PredictedCluster
from forecast.model import PEAK_QUANTILES
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from rebalancer.planning.problem import Budget, PlannedPods, Problem

Item = TypeVar("Item", bound=Hashable)

_NODES_AT_ONCE = 250
_BOUND = PEAK_QUANTILES.index(0.95)


@dataclass(frozen=True, slots=True)
class TablesCopy:
    """Copies of the tables. Nodes are those that are there, in the order of `nodes`.

    horizon  : of the tables; slots: the half hours of it that the plan looks at
    capacity : (n_nodes, n_resources) NaN = not a limit, or only assumed: such a capacity makes no node hot
    free     : (n_nodes, n_kinds) allocatable less requested
    inputs   : of the curves, so many nodes at a time
    keys, replicas : (n_profiles,) of pods
    pods     : that count in the forecast, with their node, profile and service: (n_pods,) rows of `nodes`, `keys` and
               `services`
    requests : (n_pods, n_kinds)
    widen    : factor on the standard deviations, for a model past its time
    """

    horizon: Horizon
    slots: slice
    nodes: tuple[str, ...]
    capacity: Floats
    free: Floats
    inputs: tuple[NodeInputs, ...]
    keys: tuple[ProfileKey, ...]
    replicas: Floats
    profiles: Profiles
    bases: NodeBases
    pods: tuple[PodInfo, ...]
    node: Ints
    profile: Ints
    services: tuple[ServiceKey, ...]
    service: Ints
    requests: Floats
    widen: float

    @property
    def begins(self) -> datetime:
        """Start of the first half hour, local."""
        return self.horizon.start_of(self.slots.start)

    def with_errors(self, shifts: Mapping[str, Floats]) -> TablesCopy:
        """Return the same with more live error on some nodes. shifts: (n_resources,) by name, base units"""
        inputs = list(self.inputs)
        for name, shift in shifts.items():
            part, at = divmod(self.nodes.index(name), _NODES_AT_ONCE)
            error = inputs[part].error.copy()
            error[at] += shift
            inputs[part] = replace(inputs[part], error=error)
        return replace(self, inputs=tuple(inputs))

    def within(self, n_slots: int, ahead: int = 0) -> TablesCopy:
        """Return the same for so many half hours only. ahead: those that are left out before"""
        first = self.slots.start + ahead
        return replace(self, slots=slice(first, min(self.slots.stop, first + n_slots)))


@dataclass(frozen=True, slots=True)
class PredictedLoads:
    """(n_nodes, n_resources, n_slots) each, see Problem."""

    load: Floats32
    margin: Floats32


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A problem, and what its rows mean."""

    problem: Problem
    begins: datetime
    nodes: tuple[str, ...]
    pods: tuple[PodInfo, ...]
    services: tuple[ServiceKey, ...]
    namespaces: tuple[str, ...]

    def service_of(self, pod: int) -> ServiceKey:
        """Return the service of a pod by its row."""
        return self.services[int(self.problem.pods.service[pod])]


def snapshot(tables: LiveTables, n_slots: int) -> TablesCopy | None:
    """Copy what a plan for the next half hours needs; None = there is no forecast. n_slots: from the next one on."""
    with tables.reading() as cluster:
        predicted, state = cluster.predicted, cluster.state
        if predicted is None:
            return None
        horizon = predicted.horizon
        rows = [row for row in np.flatnonzero(state.alive).tolist() if predicted.name_of(row)]
        position = np.full(max(state.n_rows, predicted.load.n_nodes), -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        capacity = np.where(predicted.capacity_assumed, np.nan, predicted.capacity)[rows]
        pods, node, profile = _seated(predicted, state.pods, position)
        services, service = _numbered([state.service_key(pod) for pod in pods])
        used, column = np.unique(profile, return_inverse=True)
        first = horizon.slot + 1
        return TablesCopy(
            horizon=horizon,
            slots=slice(first, min(first + n_slots, horizon.n_slots)),
            nodes=tuple(predicted.name_of(row) for row in rows),
            capacity=capacity,
            free=state.allocatable[rows] - state.requested[rows],
            inputs=tuple(
                gather(predicted, rows[start : start + _NODES_AT_ONCE], as_believed=False)
                for start in range(0, len(rows), _NODES_AT_ONCE)
            ),
            keys=tuple(predicted.keys[number] for number in used.tolist()),
            replicas=np.array([predicted.replicas_used(number) for number in used.tolist()], dtype=np.float64),
            profiles=predicted.profiles,
            bases=predicted.bases,
            pods=pods,
            node=node,
            profile=column.reshape(-1),
            services=services,
            service=service,
            requests=np.array([state.request_vector(pod) for pod in pods]).reshape(len(pods), len(state.kinds)),
            widen=tables.widen(horizon),
        )


def predicted_loads(copied: TablesCopy) -> PredictedLoads:
    """Return what the nodes of a snapshot are expected to use."""
    n_slots = copied.slots.stop - copied.slots.start
    load = np.zeros((len(copied.nodes), len(RESOURCES), n_slots), dtype=np.float32)
    margin = np.zeros_like(load)
    start = 0
    for inputs in copied.inputs:
        curves = _load(copied, inputs).curves(copied.slots)
        part = slice(start, start + len(inputs.names))
        load[part] = curves.mean()
        margin[part] = np.maximum(curves.curve(_BOUND) - curves.mean(), 0.0)
        start = part.stop
    return PredictedLoads(load, margin)


def _load(copied: TablesCopy, nodes: NodeInputs) -> LoadInputs:
    return LoadInputs(copied.profiles, copied.bases, copied.horizon, nodes, copied.widen)


def load_with_moves(copied: TablesCopy, rows: Sequence[int], moved: Sequence[tuple[int, int]] = ()) -> LoadInputs:
    """What the load of some nodes is made of, with pods on other nodes. moved: rows of pods and of the targets"""
    position = {row: at for at, row in enumerate(rows)}
    numbers: dict[ProfileKey, int] = {}
    replicas: list[float] = []
    pairs: list[tuple[int, int, int]] = []

    def add(row: int, key: ProfileKey, of: float, pods: int) -> None:
        if row in position:
            if key not in numbers:
                replicas.append(of)
            pairs.append((position[row], numbers.setdefault(key, len(numbers)), pods))

    parts = [(copied.inputs[row // _NODES_AT_ONCE], row, row % _NODES_AT_ONCE) for row in rows]
    for inputs, row, at in parts:
        for pair in np.flatnonzero(inputs.node == at).tolist():
            profile = int(inputs.profile[pair])
            add(row, inputs.keys[profile], float(inputs.replicas[profile]), int(inputs.pods[pair]))
    for pod, target in moved:
        profile = int(copied.profile[pod])
        for row, pods in ((int(copied.node[pod]), -1), (target, 1)):
            add(row, copied.keys[profile], float(copied.replicas[profile]), pods)
    table = np.array(pairs, dtype=np.int64).reshape(-1, 3)
    nodes = NodeInputs(
        names=tuple(copied.nodes[row] for row in rows),
        capacity=np.array([inputs.capacity[at] for inputs, _, at in parts]).reshape(-1, len(RESOURCES)),
        assumed=np.array([inputs.assumed[at] for inputs, _, at in parts], dtype=bool).reshape(-1, len(RESOURCES)),
        error=np.array([inputs.error[at] for inputs, _, at in parts]).reshape(-1, len(RESOURCES)),
        node=table[:, 0],
        profile=table[:, 1],
        pods=table[:, 2],
        keys=tuple(numbers),
        replicas=np.array(replicas, dtype=np.float64),
    )
    return _load(copied, nodes)


def lay_out(
    copied: TablesCopy,
    loads: PredictedLoads,
    *,
    cost_of: Callable[[PodInfo], float],
    may_go: Callable[[PodInfo], Collection[str]],
    budget_of: Callable[[tuple[ServiceKey, ...], tuple[str, ...]], Budget],
    hot: float,
    left: Callable[[PodInfo], frozenset[str]] = lambda pod: frozenset(),
) -> LaidOut:
    """Make a problem of a snapshot and its loads.

    cost_of   : see PodColumns.cost
    may_go    : names of the nodes that a pod may go to, by all filters but those of resources; asked for one pod of
                each controller
    budget_of : from services and namespaces, in the order of the rows of the budget
    hot       : share of its capacity above which a node is hot
    left      : names of nodes that a pod was moved away from, and may not return to
    """
    namespaces, namespace = _numbered([pod.namespace for pod in copied.pods])
    cost = np.array([cost_of(pod) for pod in copied.pods], dtype=np.float64)
    shape, allowed = _shapes(copied, cost, may_go, left)
    pods = PlannedPods(
        node=copied.node,
        profile=copied.profile,
        requests=copied.requests,
        service=copied.service,
        namespace=namespace,
        shape=shape,
        cost=cost,
    )
    problem = Problem(
        load=loads.load,
        margin=loads.margin,
        capacity=copied.capacity,
        free=copied.free,
        usage=copied.profiles.mean_of(copied.keys, copied.replicas, copied.horizon.days)[:, :, copied.slots],
        pods=pods,
        allowed=allowed,
        budget=budget_of(copied.services, namespaces),
        hot=hot,
    )
    return LaidOut(problem, copied.begins, copied.nodes, copied.pods, copied.services, namespaces)


def _seated(
    predicted: PredictedCluster, known: dict[str, PodInfo], position: Ints
) -> tuple[tuple[PodInfo, ...], Ints, Ints]:
    """Return pods that count in the forecast, with the position of their node and their profile."""
    found = [
        (pod, int(position[placed.node]), placed.profile)
        for uid, placed in predicted.placed.items()
        if placed.weight and placed.node < len(position) and (pod := known.get(uid)) is not None
    ]
    found = sorted((one for one in found if one[1] >= 0), key=lambda one: one[0].uid)
    table = np.array([(node, profile) for _, node, profile in found], dtype=np.int64).reshape(-1, 2)
    return tuple(pod for pod, _, _ in found), table[:, 0], table[:, 1]


def _shapes(
    copied: TablesCopy,
    cost: AnyFloats,
    may_go: Callable[[PodInfo], Collection[str]],
    left: Callable[[PodInfo], frozenset[str]],
) -> tuple[Ints, Bools]:
    """Return the row of `allowed` of each pod, and the rows: one for each controller whose pods may move."""
    owners = [pod.owner_uid or pod.uid for pod in copied.pods]
    keys, shape = _numbered([(owner, left(pod)) for owner, pod in zip(owners, copied.pods, strict=True)])
    row_of = {name: row for row, name in enumerate(copied.nodes)}
    allowed = np.zeros((len(keys), len(copied.nodes)), dtype=np.bool_)
    nodes_of: dict[str, Collection[str]] = {}
    asked: set[int] = set()
    for position in np.flatnonzero(np.isfinite(cost)).tolist():
        number, owner = int(shape[position]), owners[position]
        if number in asked:
            continue
        asked.add(number)
        if owner not in nodes_of:
            nodes_of[owner] = may_go(copied.pods[position])
        names = (name for name in nodes_of[owner] if name not in keys[number][1])
        allowed[number, [row_of[name] for name in names if name in row_of]] = True
    return shape, allowed


def _numbered(items: Sequence[Item]) -> tuple[tuple[Item, ...], Ints]:
    """Return the distinct items in the order of their first appearance, and the position of each there."""
    number: dict[Item, int] = {}
    positions = [number.setdefault(item, len(number)) for item in items]
    return tuple(number), np.array(positions, dtype=np.int64)
