"""A built cluster on nodes of other sizes: the same pods and usage, placed anew where kube-scheduler would put them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.clusters.cluster import Cluster
from benchmarks.clusters.placement import place_natively
from benchmarks.clusters.replicated import NodeSizes


def on_nodes_of(cluster: Cluster, sizes: NodeSizes, rng: np.random.Generator) -> Cluster:
    """The cluster on as many nodes with the same capacity in all, which have these sizes.

    What nodes use beside their pods grows with their size.
    """
    units = sizes.units(len(cluster.nodes)) / sizes.units(len(cluster.nodes)).sum()  # (n_nodes,) shares of the cluster
    capacity = units[:, None] * cluster.capacity.sum(axis=0)
    allocatable = units[:, None] * cluster.allocatable.sum(axis=0)
    grown = capacity / cluster.capacity  # NaN where a resource is no limit
    base = cluster.base * np.where(np.isfinite(grown), grown, 1.0)[:, :, None]
    node_of = place_natively(rng, cluster.requests()[cluster.service_of], allocatable, cluster.first, cluster.end)
    return replace(
        cluster,
        capacity=capacity,
        allocatable=allocatable,
        base=base.astype(np.float32),
        node_of=node_of,
        comment=None,
    )
