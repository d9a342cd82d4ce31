"""How many of the same pods the real kube-scheduler and the rule `native` of the replay admit to the same nodes.

Pods come one after the other. One that fits nowhere waits, and later ones may still fit. The two break ties between
nodes at random, so their numbers differ by a few pods.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from autoscaling.requests.rounding import cpu_text
from base.arrays import Floats
from benchmarks.requests_admission import arrivals
from forecast.resources import RESOURCES
from scorer.replay.preparation import ties
from scorer.replay.recording import Recording
from scorer.replay.replay_rules import Native, ReplayedPod, ReplayState
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane

_SECONDS: Final = 300.0
_MORE: Final = 1.15


def compared(recording: Recording, requests: Floats, seed: int) -> tuple[int, int]:
    """Pods that the real kube-scheduler and the replay admit: of those there at the start, and copies of them.

    requests : (n_services, 2) of one pod. As many pods come as the nodes could have room for, and some more.
    """
    order = arrivals(recording, seed)
    of_pods = requests[recording.service[order[recording.birth[order] == 0]]]
    with np.errstate(divide="ignore"):
        fit = (recording.allocatable.sum(axis=0) / of_pods.mean(axis=0)).min()
    of_pods = of_pods[: int(_MORE * fit)]
    return admitted_by_kube_scheduler(recording.allocatable, of_pods), admitted_by_replay(
        recording.allocatable, of_pods, seed
    )


def admitted_by_replay(allocatable: Floats, requests: Floats, seed: int) -> int:
    """How many pods find room. allocatable: (n_nodes, 2); requests: (n_pods, 2) cores and bytes"""
    n_nodes, n_resources = len(allocatable), len(RESOURCES)
    capacity = np.full((n_nodes, n_resources), np.nan)
    state = ReplayState(capacity, allocatable, np.zeros((n_nodes, n_resources)), np.zeros((1, 2)))
    rule, nothing = Native(ties(seed)), np.zeros(n_resources)
    admitted = 0
    for row, asked in enumerate(requests):
        one = ReplayedPod(0, asked, nothing, row)
        before = state.overcommitted
        feasible = state.feasible(one)
        if state.overcommitted == before:
            state.add(one, rule.choose(one, feasible, state))
            admitted += 1
    return admitted


def admitted_by_kube_scheduler(allocatable: Floats, requests: Floats) -> int:
    """The same by the real one on a real API server. Raises TimeoutError if it does not decide about all pods."""
    with control_plane() as plane, ClusterWriter(plane, in_flight=1) as writer, KubeScheduler(plane) as scheduler:
        writer.create_many(
            node(f"n{row:04d}", cpu=f"{cores:.3f}", memory=str(int(count)), pods=10_000, reserved_cpu="0m")
            for row, (cores, count) in enumerate(allocatable.tolist())
        )
        writer.create_many(
            pod(f"p{row:05d}", cpu=cpu_text(cores), memory=str(int(count)))
            for row, (cores, count) in enumerate(requests.tolist())
        )
        deadline = time.monotonic() + _SECONDS
        while True:
            pods = writer.list_all("pods")
            bound = sum(1 for one in pods if one["spec"].get("nodeName"))
            waiting = sum(
                1
                for one in pods
                if any(c.get("reason") == "Unschedulable" for c in one.get("status", {}).get("conditions", []))
            )
            if bound + waiting >= len(requests):
                return bound
            if time.monotonic() > deadline:
                raise TimeoutError(f"{bound} bound, {waiting} waiting of {len(requests)}: {scheduler.end_of_log()}")
            time.sleep(0.5)
