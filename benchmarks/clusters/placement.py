"""Where kube-scheduler would have put the pods: the placement a built history records.

LeastAllocated + BalancedAllocation (change form) on CPU and memory requests behind the fit filter, as in
kube-scheduler v1.36 (pkg/scheduler/framework/plugins/noderesources). Replay has its own, complete version; this one
only has to leave a believable past.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Floats, Ints


def native_scores(requested: Floats, request: Floats, allocatable: Floats) -> Floats:
    """(n_nodes,) LeastAllocated + BalancedAllocation for one pod, 0..200, higher is better.

    requested, allocatable : (n_nodes, 2) CPU cores, memory bytes;  request : (2,)
    """
    before = np.minimum(requested / allocatable, 1.0)
    after = np.minimum((requested + request) / allocatable, 1.0)
    least = 100.0 * (1.0 - after).mean(axis=1)
    # With two resources the standard deviation is half their distance.
    deviation_before = np.abs(before[:, 0] - before[:, 1]) / 2
    deviation_after = np.abs(after[:, 0] - after[:, 1]) / 2
    balanced = 50.0 + (50.0 + 100.0 * (deviation_before - deviation_after)) / 2
    scores: Floats = np.floor(least) + np.floor(balanced)
    return scores


def place_natively(
    rng: np.random.Generator,
    requests: Floats,
    allocatable: Floats,
    first: Ints,
    end: Ints,
    *,
    placed: Ints | None = None,
) -> Ints:
    """(n_pods,) node of every pod, placed in order of birth (random among those born together), freed at death.

    requests    : (n_pods, 2)
    first, end  : (n_pods,) life of the pod in slots, end exclusive
    placed      : (n_pods,) node of pods that already have one, -1 = to be placed
    """
    n_pods = len(requests)
    order = np.lexsort((rng.random(n_pods), first))
    by_end = np.argsort(end, kind="stable")
    requested = np.zeros_like(allocatable)
    node_of = np.full(n_pods, -1, dtype=np.int64)
    gone = 0
    for pod in order:
        while gone < n_pods and end[by_end[gone]] <= first[pod]:
            dead = by_end[gone]
            if node_of[dead] >= 0:
                requested[node_of[dead]] -= requests[dead]
            gone += 1
        if placed is not None and placed[pod] >= 0:
            node_of[pod] = placed[pod]
            requested[placed[pod]] += requests[pod]
            continue
        fits: Bools = (requested + requests[pod] <= allocatable + 1e-9).all(axis=1)
        if not fits.any():
            raise ValueError(f"pod {pod} fits on no node: the cluster's requests are too large for its nodes")
        scores = np.where(fits, native_scores(requested, requests[pod], allocatable), -1.0)
        best = np.flatnonzero(scores == scores.max())
        node = int(best[rng.integers(len(best))])
        node_of[pod] = node
        requested[node] += requests[pod]
    return node_of
