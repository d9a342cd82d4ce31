"""QoS balance: every node carries the same mix of guaranteed, burstable and best-effort pods as the cluster.

A node of guaranteed pods alone has nothing that can be throttled or evicted when it gets tight, a node of best-effort
pods alone loses them all. Source: the BalancedQosPriority paper, score = 10 * |1 - (Pn - Pc)|. Floating point until
the final normalisation: rounded to whole points, a node of 30 pods would not see one more.
"""

from __future__ import annotations

import numpy as np

from forecast.arrays import AnyFloats, Floats
from scorer.scores import MAX_NODE_SCORE

_HIGHEST = 20.0  # Pn - Pc lies within -1..1


def qos_balance_score(on_node: AnyFloats, in_cluster: AnyFloats, qos: int) -> Floats:
    """Score nodes by how far the pod's QoS class is under-represented there.

        raw   = 10 * |1 - (Pn - Pc)|, 0..20
        score = 5 * raw

    Pn = share of the pod's class on the node, Pc = in the cluster; a node without anything counts as Pn = Pc, which
    gives 50. Pass pod counts for the paper's score; pass predicted memory, and every node keeps its part of the memory
    that can be freed by evicting best-effort and burstable pods, however unequal the pods are.

    on_node    : (n_nodes, 3) amounts per class: guaranteed, burstable, best effort
    in_cluster : (3,) the same over the whole cluster
    qos        : the pod's class, 0..2
    Returns (n_nodes,) in [0, 100], higher is better.
    """
    total = on_node[:, 0] + on_node[:, 1] + on_node[:, 2]
    all_pods = float(in_cluster.sum())
    in_cluster_share = float(in_cluster[qos]) / all_pods if all_pods > 0 else 0.0
    occupied = total > 0
    on_node_share = np.where(occupied, on_node[:, qos] / np.where(occupied, total, 1.0), in_cluster_share)
    raw = 10.0 * np.abs(1.0 - (on_node_share - in_cluster_share))
    return np.asarray(raw / _HIGHEST * MAX_NODE_SCORE)
