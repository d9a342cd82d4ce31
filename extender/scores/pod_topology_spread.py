"""PodTopologySpread: constraints with whenUnsatisfiable ScheduleAnyway, and those every scheduler applies by default.

Source: framework/plugins/podtopologyspread/scoring.go. A pod without constraints whose controller is a ReplicaSet,
StatefulSet or ReplicationController is spread over hostnames (skew 3) and zones (skew 5). Which pods then count,
kube-scheduler reads from the selectors of that controller and of the pod's Services; here it is the pods of the same
controller, those that its selector chooses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from extender.filters.filter import ClusterView
from extender.filters.spread_counts import SpreadNodes, labelled_nodes, matching_pods
from extender.index.node_labels import ABSENT
from extender.index.owned_pods import is_spread_by_default
from extender.index.topology import PodsByRow
from extender.scores.normalize import MAX_NODE_SCORE
from forecast.arrays import Bools, Floats, Ints
from scorer.cluster.constraints import TopologySpreadConstraint
from scorer.cluster.objects import PodInfo

__all__ = ["SYSTEM_DEFAULTS", "PodTopologySpread"]

HOSTNAME: Final = "kubernetes.io/hostname"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, hard=False, selector=None),
    TopologySpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", hard=False, selector=None),
)


class PodTopologySpread:
    """Few matching pods in the node's domains are good; domains of which there are many weigh more (ln)."""

    name = "PodTopologySpread"

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """Nodes that lack a key of the pod's own constraints have 0; all have 0 where there is no constraint."""
        has_own = bool(pod.constraints.spread)
        soft: Sequence[TopologySpreadConstraint] = [one for one in pod.constraints.spread if not one.hard]
        if not has_own and is_spread_by_default(pod):
            soft = SYSTEM_DEFAULTS
        if not soft or not len(rows):
            return np.zeros(len(rows), dtype=np.int64)
        # Nodes without a zone are spread over by hostname, unless the pod itself asks for zones.
        nodes = labelled_nodes([one.topology_key for one in soft] if has_own else [], view)
        is_candidate = nodes[rows]
        policies = SpreadNodes(pod.constraints, view)
        raw = np.zeros(len(rows))
        for constraint in soft:
            pods = matching_pods(constraint, pod, view) if has_own else view.index.groups.owned.pods_of(pod.owner_uid)
            if constraint.topology_key == HOSTNAME:
                counts, n_domains = _per_node(pods, view, rows), int(is_candidate.sum())
            else:
                is_counted = policies.counted(constraint, nodes)[pods.rows]
                pods = PodsByRow(pods.rows[is_counted], pods.amounts[is_counted])
                counts, n_domains = _per_domain(constraint.topology_key, pods, view, rows, rows[is_candidate])
            labelled = view.index.labels.column(constraint.topology_key).values[rows] != ABSENT
            raw += np.where(labelled, counts * math.log(n_domains + 2) + (constraint.max_skew - 1), 0.0)
        return _normalised(raw, is_candidate)


def _per_node(pods: PodsByRow, view: ClusterView, rows: Ints) -> Ints:
    """(n_nodes,) matching pods on each node itself, policies or not."""
    counts = np.zeros(view.n_rows, dtype=np.int64)
    np.add.at(counts, pods.rows, pods.amounts)
    return np.asarray(counts[rows])


def _per_domain(key: str, pods: PodsByRow, view: ClusterView, rows: Ints, candidates: Ints) -> tuple[Ints, int]:
    """(n_nodes,) matching pods in the node's domain, and number of domains among the candidates.

    Nodes without the label, where they are let in, are a domain together: that of the empty value.
    """
    column = view.index.labels.column(key)
    domains = np.where(column.values == ABSENT, column.number_of.get("", len(column.names)), column.values)
    sums = np.zeros(len(column.names) + 1, dtype=np.int64)
    np.add.at(sums, domains[pods.rows], pods.amounts)
    occurs = np.zeros(len(sums), dtype=bool)
    occurs[domains[candidates]] = True
    return np.asarray(sums[domains[rows]]), int(occurs.sum())


def _normalised(raw: Floats, counted: Bools) -> Ints:
    """100 * (max + min - score) / max over nodes that count, in whole numbers; 0 for the others."""
    whole = np.trunc(raw)
    whole += np.sign(raw) * (np.abs(raw - whole) >= 0.5)  # math.Round of Go: halves away from zero
    scores = whole.astype(np.int64)
    if not counted.any():
        return np.zeros(len(raw), dtype=np.int64)
    most, least = max(int(scores[counted].max()), 0), int(scores[counted].min())
    if not most:
        return np.where(counted, MAX_NODE_SCORE, 0)
    return np.where(counted, MAX_NODE_SCORE * (most + least - scores) // most, 0)
