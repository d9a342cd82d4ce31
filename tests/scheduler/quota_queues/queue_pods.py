"""Jobs' pods, nodes, and heads of flows in a line each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from forecast.service_key import Owner
from kube.objects.objects import NodeInfo, PodInfo
from placement.plugins import FlowHead, SortedUnit
from tests.placement.small_cluster import node_of, pod_of

JOBS = "job-scheduler"
PROFILES = {"forecast-scheduler": "online", "gpu-scheduler": "gpu", JOBS: "job"}


def is_job(pod: PodInfo) -> bool:
    return pod.scheduler_name == JOBS


def a_job_pod(
    name: str,
    *,
    namespace: str = "default",
    node: str = "",
    job: str = "job",
    cpu: float = 1.0,
    memory: float = 1.0,
    priority: int = 0,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    further: Mapping[str, float] | None = None,
) -> PodInfo:
    """A pod of a Job that requests so much."""
    return replace(
        pod_of(name, labels, namespace=namespace, node=node, owner=Owner("Job", job), owner_uid=f"{namespace}/{job}"),
        scheduler_name=JOBS,
        requests={"cpu": cpu, "memory": memory, **(further or {})},
        nonzero_requests=(cpu, memory),
        annotations=annotations or {},
        priority=priority,
    )


def a_node(name: str, cpu: float, memory: float, **further: float) -> NodeInfo:
    """further: by resource name, with '__' for '/'."""
    extended = {key.replace("__", "/"): value for key, value in further.items()}
    return replace(node_of(name), allocatable={"cpu": cpu, "memory": memory, "pods": 110.0, **extended})


def a_head(
    flow: str,
    *,
    priority: int = 0,
    since: float = 0.0,
    due: float = math.inf,
    due_priority: int | None = None,
    waits_since: float = math.inf,
    n_pods: int = 1,
    pod: PodInfo | None = None,
) -> FlowHead:
    """due: of the unit that has to start first, which is another one than the first."""
    priority_of_due = priority if due_priority is None else due_priority
    return FlowHead(
        flow,
        SortedUnit(priority, since, f"first of {flow}", flow=flow),
        pod or a_job_pod("p", namespace=flow.partition("/")[2] or "default"),
        None if due == math.inf else SortedUnit(priority_of_due, since, f"due of {flow}", due, flow),
        waits_since,
        n_pods,
    )
