"""Objects for tests, with the fields that matter to the test named and the rest filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecast.service_key import NO_OWNER, Owner, ServiceKey
from kube.decoding.jobs import JobInfo
from kube.objects.objects import NodeInfo, PodInfo, PodPhase, QosClass, ReplicaSetInfo
from testing.objects import node_info, pod_info

GIB = 2.0**30


def node(name: str, *, cpu: float = 4.0, memory: float = 16 * GIB, **kinds: float) -> NodeInfo:
    allocatable = {"cpu": cpu, "memory": memory, "pods": 110.0, **kinds}
    return node_info(name, capacity={**allocatable, "cpu": cpu + 0.5}, allocatable=allocatable)


def pod(
    name: str,
    *,
    uid: str = "",
    namespace: str = "shop",
    node: str = "",
    owner: Owner = NO_OWNER,
    owner_uid: str = "",
    requests: Mapping[str, float] | None = None,
    labels: Mapping[str, str] | None = None,
    qos: QosClass = QosClass.BURSTABLE,
    phase: PodPhase = PodPhase.RUNNING,
    terminating: bool = False,
    created: float = 0.0,
) -> PodInfo:
    requests = {"cpu": 0.5, "memory": GIB} if requests is None else requests
    return pod_info(
        name,
        uid=uid or f"uid-{name}",
        namespace=namespace,
        node=node,
        labels=labels or {},
        owner=owner,
        owner_uid=owner_uid,
        requests=requests,
        nonzero_requests=(requests.get("cpu", 0.1), requests.get("memory", 200 * 2.0**20)),
        qos=qos,
        phase=phase,
        terminating=terminating,
        created=created,
    )


def replica_set(
    name: str,
    *,
    deployment: str = "",
    revision: int | None = 1,
    desired_replicas: int | None = None,
    created: float = 0.0,
) -> ReplicaSetInfo:
    return ReplicaSetInfo(
        uid=f"rs-{name}",
        namespace="shop",
        name=name,
        owner=Owner("Deployment", deployment) if deployment else NO_OWNER,
        revision=revision,
        desired_replicas=desired_replicas,
        created=created,
    )


def pod_of(replica_set: ReplicaSetInfo, name: str, **more: Any) -> PodInfo:
    return pod(
        f"{replica_set.name}-{name}",
        owner=Owner("ReplicaSet", replica_set.name),
        owner_uid=replica_set.uid,
        labels={"pod-template-hash": replica_set.name.rpartition("-")[2]},
        **more,
    )


def job(name: str, *, cron_job: str = "") -> JobInfo:
    service = ServiceKey("shop", "CronJob", cron_job) if cron_job else ServiceKey("shop", "Job", name)
    return JobInfo("shop", name, f"job-{name}", service)
