"""Score PodTopologySpread: constraints with whenUnsatisfiable ScheduleAnyway and those that every scheduler applies
by default, kept up to date while like pods are placed one after the other.

Source: framework/plugins/podtopologyspread/scoring.go. A pod without constraints whose controller is a ReplicaSet,
StatefulSet or ReplicationController is spread over hostnames (skew 3) and zones (skew 5). Which pods then count,
kube-scheduler reads from the selectors of that controller and of the pod's Services; here it is the pods of the same
controller, those that its selector chooses.

Source: framework/plugins/podtopologyspread/scoring.go. Nodes of one *kind* have the same score: they are in the same
domains, have as many matching pods of their own, and are labelled alike. There are few kinds however many nodes, so a
landing pod costs a look at the kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.constraints import TopologySpreadConstraint
from kube.objects.labels import selector_matches
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.filters.pod_topology_spread import SpreadNodes, labelled_nodes, matching_pods
from placement.index.domain_sums import PodsByRow
from placement.index.node_labels import ABSENT
from placement.index.pods_by_labels import is_spread_by_default
from placement.scores.node_score import MAX_NODE_SCORE, NodeScore

HOSTNAME: Final = "kubernetes.io/hostname"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, hard=False, selector=None),
    TopologySpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", hard=False, selector=None),
)


def soft_constraints(pod: PodInfo) -> Sequence[TopologySpreadConstraint]:
    """Those of the pod; if it has none, soft or hard, and its controller is spread by default, those of the system."""
    if pod.constraints.spread:
        return [one for one in pod.constraints.spread if not one.hard]
    return SYSTEM_DEFAULTS if is_spread_by_default(pod) else ()


@dataclass(slots=True)
class _Constraint:
    """One constraint over the nodes: (n_nodes,) each.

    value    : of hostnames the node's own matching pods, else the number of its domain
    labelled : the node has the key
    counted  : a pod that lands there counts
    sums     : (n_domains,) matching pods; empty for hostnames
    grows_by : pods that one more like pod counts as: 1 if it matches itself, else 0
    """

    max_skew: int
    is_hostname: bool
    value: Ints
    labelled: Bools
    counted: Bools
    sums: Ints
    grows_by: int


class SoftSpread:
    """Nodes are positions in `rows`. kind: (n_nodes,) of each node at the beginning, an index into `scores()`."""

    def __init__(self, pod: PodInfo, view: ClusterView, rows: Ints) -> None:
        """rows: of the nodes that passed all filters. The pod has soft constraints."""
        constraints, is_candidate = _constraints(pod, view, rows)
        self.kind, first = _kinds(constraints, is_candidate)
        self._constraints = constraints
        # By kind of node, in plain lists: there are few kinds, and one is looked at at a time.
        self._values = [one.value[first].tolist() for one in constraints]
        self._labelled = [one.labelled[first].tolist() for one in constraints]
        self._counted = [one.counted[first].tolist() for one in constraints]
        self._sums = [one.sums.tolist() for one in constraints]
        self._is_candidate = is_candidate[first].tolist()
        self._all_candidates = all(self._is_candidate)
        self._nodes = np.bincount(self.kind, minlength=len(first)).tolist()  # those that can still be chosen
        self._weights: list[float] = []
        self._parts: list[list[float]] = []  # by constraint and value: what it adds to the raw score
        self._whole: list[int] = []
        self._after: dict[int, int] = {}  # kind that a node is of once another pod has landed there
        self._kinds_in: list[dict[int, list[int]]] = [{} for _ in constraints]  # by domain
        for kind in range(len(first)):
            self._enter(kind)
        self._weigh()

    def scores(self) -> list[int]:
        """(n_kinds,) 0..100, higher is better; nodes that lack a key of the pod's own constraints have 0."""
        whole = self._whole
        eligible = [whole[kind] for kind, is_eligible in enumerate(self._eligible()) if is_eligible]
        most, least = max(max(eligible, default=0), 0), min(eligible, default=0)
        if not eligible:
            return [0] * len(whole)
        if not most:
            return [MAX_NODE_SCORE if is_in else 0 for is_in in self._is_candidate]
        reach = most + least
        if self._all_candidates:
            return [MAX_NODE_SCORE * (reach - one) // most for one in whole]
        candidates = zip(whole, self._is_candidate, strict=True)
        return [MAX_NODE_SCORE * (reach - one) // most if is_in else 0 for one, is_in in candidates]

    def land(self, kind: int) -> int:
        """A like pod has landed on a node of this kind; returns the kind that the node is of now."""
        after = self._after.get(kind)
        if after is None:
            after = self._after[kind] = self._kind_after(kind)
            self._whole[after] = self._whole_of(after)
        self._nodes[kind] -= 1
        self._nodes[after] += 1
        for number, one in enumerate(self._constraints):
            if not one.is_hostname and one.grows_by and self._counted[number][kind]:
                domain = self._values[number][kind]
                self._sums[number][domain] += 1
                self._parts[number][domain] = self._part(number, domain)
                for other in self._kinds_in[number][domain]:
                    self._whole[other] = self._whole_of(other)
        return after

    def drop(self, kind: int) -> None:
        """A node of this kind can no longer be chosen."""
        self._nodes[kind] -= 1
        self._weigh()

    def _weigh(self) -> None:
        """Domains of which there are many weigh more."""
        weights = []
        for number, one in enumerate(self._constraints):
            if one.is_hostname:
                n_domains = sum(nodes for nodes, is_in in zip(self._nodes, self._is_candidate, strict=True) if is_in)
            else:
                n_domains = len({v for v, kind in zip(self._values[number], self._eligible(), strict=True) if kind})
            weights.append(math.log(n_domains + 2))
        if weights != self._weights:
            self._weights = weights
            self._parts = [
                [self._part(number, value) for value in range(max(self._values[number], default=0) + 1)]
                for number in range(len(self._constraints))
            ]
            self._whole = [self._whole_of(kind) for kind in range(len(self._nodes))]

    def _eligible(self) -> list[bool]:
        """By kind: whether there are nodes of it that can be chosen and have all keys."""
        if self._all_candidates:
            return [nodes > 0 for nodes in self._nodes]
        return [nodes > 0 and is_in for nodes, is_in in zip(self._nodes, self._is_candidate, strict=True)]

    def _part(self, number: int, value: int) -> float:
        one = self._constraints[number]
        count = value if one.is_hostname else self._sums[number][value]
        return count * self._weights[number] + (one.max_skew - 1)

    def _whole_of(self, kind: int) -> int:
        """math.Round of Go: halves away from zero."""
        raw = 0.0
        for labelled, parts, values in zip(self._labelled, self._parts, self._values, strict=True):
            if labelled[kind]:
                raw += parts[values[kind]]
        whole = int(raw)
        return whole + 1 if raw - whole >= 0.5 else whole

    def _kind_after(self, kind: int) -> int:
        if not any(one.is_hostname and one.grows_by for one in self._constraints):
            return kind
        after = len(self._nodes)
        for number, one in enumerate(self._constraints):
            grows = one.grows_by if one.is_hostname else 0
            value = self._values[number][kind] + grows
            self._values[number].append(value)
            self._parts[number] += [self._part(number, more) for more in range(len(self._parts[number]), value + 1)]
            self._labelled[number].append(self._labelled[number][kind])
            self._counted[number].append(self._counted[number][kind])
        self._is_candidate.append(self._is_candidate[kind])
        self._nodes.append(0)
        self._whole.append(0)
        self._enter(after)
        return after

    def _enter(self, kind: int) -> None:
        for number, one in enumerate(self._constraints):
            if not one.is_hostname:
                self._kinds_in[number].setdefault(self._values[number][kind], []).append(kind)


def _constraints(pod: PodInfo, view: ClusterView, rows: Ints) -> tuple[list[_Constraint], Bools]:
    """Over the nodes, and (n_nodes,) which of these are candidates."""
    soft, has_own = soft_constraints(pod), bool(pod.constraints.spread)
    # Nodes without a zone are spread over by hostname, unless the pod itself asks for zones.
    nodes = labelled_nodes([one.topology_key for one in soft] if has_own else [], view)
    policies = SpreadNodes(pod.constraints, view)
    found = []
    for constraint in soft:
        column = view.index.labels.column(constraint.topology_key)
        is_hostname = constraint.topology_key == HOSTNAME
        if has_own:
            pods = matching_pods(constraint, pod, view)
            selector = constraint.selector
            grows = int(bool(selector and selector.requirements) and selector_matches(selector, pod.labels))
        else:
            pods, grows = view.index.groups.owned.pods_of(pod.owner_uid), 1
        if is_hostname:
            counted = np.ones(view.n_rows, dtype=bool)
            value, sums = _per_node(pods, view, rows), np.zeros(0, dtype=np.int64)
        else:
            counted = policies.counted(constraint, nodes)
            # Nodes without the label, where they are let in, are a domain together: that of the empty value.
            domains = np.where(column.values == ABSENT, column.number_of.get("", len(column.names)), column.values)
            is_counted = counted[pods.rows]
            sums = np.zeros(len(column.names) + 1, dtype=np.int64)
            np.add.at(sums, domains[pods.rows[is_counted]], pods.amounts[is_counted])
            value = domains[rows]
        labelled = column.values[rows] != ABSENT
        found.append(_Constraint(constraint.max_skew, is_hostname, value, labelled, counted[rows], sums, grows))
    return found, nodes[rows]


def _per_node(pods: PodsByRow, view: ClusterView, rows: Ints) -> Ints:
    """(n_nodes,) matching pods on each node itself, policies or not."""
    counts = np.zeros(view.n_rows, dtype=np.int64)
    np.add.at(counts, pods.rows, pods.amounts)
    return np.asarray(counts[rows])


def _kinds(constraints: Sequence[_Constraint], is_candidate: Bools) -> tuple[Ints, Ints]:
    """(n_nodes,) kind of each node, and (n_kinds,) a position of a node of each kind."""
    code = is_candidate.astype(np.int64)
    for one in constraints:
        code = 4 * code + 2 * one.labelled + one.counted
        code = _renumbered(code * (int(one.value.max(initial=0)) + 1) + one.value)
    first = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    return code, first


def _renumbered(code: Ints) -> Ints:
    """Whole numbers from 0 on, without gaps where that is cheap, in their order."""
    highest = int(code.max(initial=0))
    if highest > 16 * len(code) + 1024:
        return np.unique(code, return_inverse=True)[1]
    occurs = np.zeros(highest + 1, dtype=np.int64)
    occurs[code] = 1
    return np.asarray((np.cumsum(occurs) - 1)[code])


class PodTopologySpreadScore(NodeScore):
    """Few matching pods in the node's domains are good; domains of which there are many weigh more (ln)."""

    name = "PodTopologySpread"

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """Nodes that lack a key of the pod's own constraints have 0; all have 0 where there is no constraint."""
        if not soft_constraints(pod) or not len(rows):
            return np.zeros(len(rows), dtype=np.int64)
        spread = SoftSpread(pod, view, rows)
        return np.array(spread.scores(), dtype=np.int64)[spread.kind]
