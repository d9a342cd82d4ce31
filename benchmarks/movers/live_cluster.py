"""What movers by live load see: usage of nodes and pods, as metrics show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from cluster.predicted.unknown_capacity import limited
from scorer.replay.recording import Recording
from scorer.replay.running_cluster import RunningCluster


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """Usage as share of capacity; 0 where a node has no limit.

    pods       : (n_pods,) those that run and may be evicted: no runs of Jobs
    node       : (n_pods,) rows of their nodes
    node_share : (n_nodes, n_resources)
    pod_usage  : (n_pods, n_resources) base units
    per_capacity : (n_nodes, n_resources) 1 / capacity; 0 = no limit
    """

    pods: Ints
    node: Ints
    node_share: Floats
    pod_usage: Floats
    per_capacity: Floats


def live_cluster(slot: int, cluster: RunningCluster, recording: Recording) -> LiveCluster:
    """The cluster as metrics show it at the beginning of a half hour."""
    pods = cluster.running
    pods = pods[~recording.ending[recording.service[pods]]]
    capacity = recording.known_capacity
    limits = limited(capacity)
    per_capacity = np.where(limits, 1.0 / np.where(limits, capacity, 1.0), 0.0)
    usage = recording.live[pods] if slot == 0 else recording.load[pods, :, slot - 1].astype(np.float64)
    return LiveCluster(pods, cluster.node[pods], cluster.state.live_usage * per_capacity, usage, per_capacity)
