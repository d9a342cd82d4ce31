"""Clusters built from public traces, written as history directories that every command can read.

    traces -> Curves -> pods (sizes, replicas, requests) -> placement -> Cluster -> history directory
    traces.py           pods.py, autoscaling.py             placement.py  cluster.py  history_directory.py

`replicated` builds the two benchmark clusters, `plain` the backtest's, `scenarios` changes a built one.
"""

from benchmarks.clusters.cluster import Cluster, Service
from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.plain import Trace, build_plain
from benchmarks.clusters.read_history import read_cluster
from benchmarks.clusters.replicated import NodeSizes, build_asd_cluster, build_bitbrains_cluster
from benchmarks.clusters.scenarios import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "Cluster",
    "NodeSizes",
    "Scenario",
    "Service",
    "Trace",
    "build_asd_cluster",
    "build_bitbrains_cluster",
    "build_plain",
    "read_cluster",
    "write_history",
]
