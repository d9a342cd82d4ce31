"""QoS balance: every node carries the same mix of guaranteed, burstable and best-effort pods as the cluster.

A node of guaranteed pods alone has nothing that can be throttled or evicted when it gets tight, a node of best-effort
pods alone loses them all. Source: the BalancedQosPriority paper, score = 10 * |1 - (Pn - Pc)|. Floating point until
the final normalisation: rounded to whole points, a node of 30 pods would not see one more.

A share of the pods that are there says nothing of how many there are. By it alone an empty node was as good as one that
has the mix of the cluster, and a few nodes took the pods of many: over 100 nodes and 3,000 pods the counts per class
varied more than at random (`python -m benchmarks.qos_balance`). So a node that has fewer pods than its size is judged
by the pods that it should have.
"""

from __future__ import annotations

import numpy as np

from base.arrays import AnyFloats, Floats
from cluster.predicted.unknown_capacity import limited
from scorer.scores import MAX_NODE_SCORE

_HIGHEST = 20.0  # Pn - Pc lies within -1..1


def qos_balance_score(on_node: AnyFloats, in_cluster: AnyFloats, qos: int, part: AnyFloats) -> Floats:
    """Score nodes by how far the pod's QoS class is under-represented there.

        raw   = 10 * |1 - (Pn - Pc)|, 0..20
        score = 5 * raw
        Pn    = amount of the pod's class on the node / max(amount of all classes there, part * amount in the cluster)

    Pc = share of the class in the cluster; a node without pods, of unknown size, counts as Pn = Pc, which gives 50.
    Pass pod counts for the paper's score; pass predicted memory, and every node keeps its part of the memory that can
    be freed by evicting best-effort and burstable pods, however unequal the pods are.

    on_node    : (n_nodes, 3) amounts per class: guaranteed, burstable, best effort
    in_cluster : (3,) the same over the whole cluster
    qos        : the pod's class, 0..2
    part       : (n_nodes,) of the cluster's allocatable that the node has, 0..1, see `part_of_cluster`
    Returns (n_nodes,) in [0, 100], higher is better.
    """
    all_pods = float(in_cluster.sum())
    in_cluster_share = float(in_cluster[qos]) / all_pods if all_pods > 0 else 0.0
    amount = np.maximum(on_node[:, 0] + on_node[:, 1] + on_node[:, 2], part * all_pods)
    judged = amount > 0
    on_node_share = np.where(judged, on_node[:, qos] / np.where(judged, amount, 1.0), in_cluster_share)
    raw = 10.0 * np.abs(1.0 - (on_node_share - in_cluster_share))
    return np.asarray(raw / _HIGHEST * MAX_NODE_SCORE)


def part_of_cluster(allocatable: AnyFloats, in_cluster: AnyFloats) -> Floats:
    """Return the part of the cluster that each node is: (n_nodes,) in [0, 1], the mean over CPU and memory.

    allocatable : (n_nodes, 2) cores and bytes; an unknown amount counts 0
    in_cluster  : (2,) of all nodes; 0 = unknown, and left out
    """
    counted = limited(in_cluster)
    own = np.where(limited(allocatable), allocatable, 0.0)[:, counted] / in_cluster[counted]
    return np.asarray(np.minimum(own.sum(axis=1) / max(int(counted.sum()), 1), 1.0))
