"""One object: which fields are read and how, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from base.errors import InputError
from forecast.service_key import NO_OWNER, Owner, owner_from_references
from kube.decoding.decoding import Kind, decode_object, decode_pod
from kube.decoding.watched_kinds import UndecodableObject
from kube.objects.kubernetes_version import COMPARED
from kube.objects.objects import (
    ContainerRequests,
    DeviceAsk,
    NodeImage,
    NodeInfo,
    PodInfo,
    PodPhase,
    QosClass,
    ReplicaSetInfo,
    Taint,
)
from tests.kube.api_json import NODE, POD, changed, raw

GIB = 2.0**30


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_a_pod() -> None:
    pod = decode_pod(raw(POD))
    assert pod == PodInfo(
        uid="u1",
        namespace="shop",
        name="cart-7d9f-x2x4z",
        node="n1",
        labels={"app": "cart", "pod-template-hash": "7d9f"},
        annotations={"forecast-scheduler.io/policy": "spread"},
        owner=Owner("ReplicaSet", "cart-7d9f"),
        owner_uid="rs1",
        # The resize from 250m to 100m is not done yet, so the larger counts; the sidecar adds.
        requests={"cpu": 0.3, "memory": GIB, "nvidia.com/gpu": 1.0},
        nonzero_requests=(0.4, GIB + 2 * 200 * 2**20),
        limits={"nvidia.com/gpu": 1.0},
        qos=QosClass.BURSTABLE,
        phase=PodPhase.RUNNING,
        terminating=False,
        started=seconds("2026-11-21T16:00:07"),
        created=seconds("2026-11-21T16:00:00"),
        scheduler_name="ours",
        priority=1000,
        images=pod.images,
        containers=ContainerRequests(
            starting=(), running=({"cpu": 0.05}, {"nvidia.com/gpu": 1.0, "cpu": 0.25, "memory": GIB}, {})
        ),
        device_asks=(DeviceAsk("main", 1, "nvidia.com/gpu", 2, 1, is_starting=False),),
        acknowledged=True,
    )
    assert pod.owner == owner_from_references(POD["metadata"]["ownerReferences"])
    assert decode_pod(POD) == pod


def test_a_node() -> None:
    assert decode_object(Kind.NODES, raw(NODE))[0] == NodeInfo(
        name="n1",
        labels={"zone": "a"},
        annotations={},
        taints=(Taint("gpu", "", "NoSchedule"),),
        unschedulable=True,
        ready=True,
        capacity={"cpu": 4.0, "memory": 16 * GIB, "pods": 110.0},
        allocatable={"cpu": 3.92, "memory": 15 * GIB, "pods": 110.0},
        addresses=("10.0.0.1", "n1.local"),
        images=(NodeImage(("a",), 1),),
    )


def test_a_replica_set_by_its_metadata() -> None:
    metadata = {
        "name": "cart-7d9f",
        "namespace": "shop",
        "uid": "rs1",
        "creationTimestamp": "2026-11-21T16:00:00Z",
        "annotations": {
            "deployment.kubernetes.io/revision": "12",
            "deployment.kubernetes.io/desired-replicas": "3",
        },
        "ownerReferences": [{"kind": "Deployment", "name": "cart", "uid": "d", "controller": True}],
    }
    whole = {"kind": "PartialObjectMetadata", "metadata": metadata}
    created = seconds("2026-11-21T16:00:00")
    assert decode_object(Kind.REPLICA_SETS, raw(whole))[0] == ReplicaSetInfo(
        "rs1", "shop", "cart-7d9f", Owner("Deployment", "cart"), 12, 3, created
    )
    for revision in ("", "x", "-1", "1.5", "9" * 50, "٣", None):
        odd = changed(whole, "metadata.annotations", {"deployment.kubernetes.io/revision": revision})
        decoded, _ = decode_object(Kind.REPLICA_SETS, raw(odd))
        assert isinstance(decoded, ReplicaSetInfo) and decoded.revision is None


def test_what_go_writes_for_nothing_is_nothing() -> None:
    bare = decode_pod({"metadata": {"name": "x"}})
    assert (bare.uid, bare.namespace, bare.node, bare.owner) == ("default/x", "default", "", NO_OWNER)
    assert (bare.requests, bare.qos, bare.phase) == ({}, QosClass.BEST_EFFORT, PodPhase.PENDING)
    assert (bare.scheduler_name, bare.priority, bare.started, bare.created) == ("default-scheduler", 0, None, 0.0)
    metadata = {"name": "x", "labels": None, "annotations": None, "ownerReferences": None, "creationTimestamp": None}
    metadata |= {"namespace": None, "uid": None, "deletionTimestamp": None}
    names = ["nodeName", "schedulerName", "priority", "overhead", "resources", "containers", "initContainers"]
    states = [
        "phase",
        "reason",
        "qosClass",
        "startTime",
        "conditions",
        "containerStatuses",
        "initContainerStatuses",
        "resources",
        "nodeAllocatableResourceClaimStatuses",
    ]
    null = {"metadata": metadata, "spec": dict.fromkeys(names), "status": dict.fromkeys(states)}
    assert decode_pod(null) == bare
    assert decode_pod({"metadata": metadata, "spec": None, "status": None}) == bare
    node, _ = decode_object(
        Kind.NODES,
        raw(
            {
                "metadata": {"name": "n"},
                "spec": {"taints": None, "unschedulable": None},
                "status": dict.fromkeys(["capacity", "allocatable", "conditions", "addresses"]),
            }
        ),
    )
    assert node == NodeInfo("n", {}, {}, (), False, False, {}, {})


@pytest.mark.parametrize(
    ("path", "value", "check"),
    [
        ("metadata.deletionTimestamp", "2026-11-21T17:00:00Z", lambda p: p.terminating),
        ("status.phase", "Succeeded", lambda p: p.phase is PodPhase.SUCCEEDED),
        ("status.phase", "Odd", lambda p: p.phase is PodPhase.UNKNOWN),
        ("status.phase", "Succeeded", lambda p: p.finished is None),
        ("status.reason", "ProviderFailed", lambda p: p.status_reason == "ProviderFailed"),
        ("status.reason", None, lambda p: p.status_reason == ""),
        ("status.reason", "x" * 10_000, lambda p: p.status_reason == "x" * 64),
        ("status.qosClass", None, lambda p: p.qos is QosClass.BURSTABLE),
        ("status.qosClass", "BestEffort", lambda p: p.qos is QosClass.BEST_EFFORT),
        ("status.containerStatuses", None, lambda p: p.started == seconds("2026-11-21T16:00:01")),
        ("status.containerStatuses", [{"name": "main", "state": {"waiting": {}}}], lambda p: p.started is None),
        ("spec.nodeName", None, lambda p: p.node == ""),
        ("metadata.labels", {"a": None}, lambda p: p.labels == {"a": ""}),
        ("metadata.ownerReferences", [{"kind": "A", "name": "b", "uid": "c"}], lambda p: p.owner == NO_OWNER),
        ("metadata.annotations", {"forecast-scheduler.iox/y": "1"}, lambda p: p.annotations == {}),
        ("metadata.creationTimestamp", "2026-11-21T18:00:00.5+02:00", lambda p: p.created % 60 == 0.5),
        (
            "metadata.annotations",
            {"karpenter.sh/do-not-disrupt": "true", "karpenter.sh/other": "x", "forecast-scheduler.io/a": "1"},
            lambda p: p.annotations == {"karpenter.sh/do-not-disrupt": "true", "forecast-scheduler.io/a": "1"},
        ),
        (
            "metadata.annotations",
            {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "descheduler.alpha.kubernetes.io/evict": None},
            lambda p: sorted(p.annotations.values()) == ["", "false"],
        ),
        (
            "status.conditions",
            [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T16:00:30Z"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T16:00:02Z"},
            ],
            lambda p: (p.scheduled, p.ready) == (seconds("2026-11-21T16:00:02"), seconds("2026-11-21T16:00:30")),
        ),
        (
            "status.conditions",
            [
                {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-21T16:00:30Z"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": None},
            ],
            lambda p: p.scheduled is p.ready is None,
        ),
        ("spec.hostNetwork", True, lambda p: p.shares_host),
        ("spec.hostPID", True, lambda p: p.shares_host),
        ("spec.hostIPC", True, lambda p: p.shares_host),
        ("spec.hostNetwork", None, lambda p: not p.shares_host),
        (
            "spec.volumes",
            [
                {"name": "scratch", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
                {"name": "pages", "emptyDir": {"medium": "HugePages"}},
                {"name": "sock", "hostPath": {"path": "/run/x"}},
                {"name": "conf", "configMap": {"name": "c"}},
                {"name": "claim", "persistentVolumeClaim": {"claimName": "d"}},
            ],
            lambda p: p.local_volumes == ("scratch", "pages", "sock"),
        ),
        ("spec.overhead", {"cpu": "1"}, lambda p: p.requests["cpu"] == 1.3),
        ("spec.resources", {"requests": {"cpu": 2}}, lambda p: p.requests["cpu"] == 2.0),
        ("spec.containers.0.resources.requests", {"cpu": 1.5}, lambda p: p.requests["cpu"] == 1.55),
    ],
)
def test_fields_of_a_pod(path: str, value: Any, check: Callable[[PodInfo], bool]) -> None:
    assert check(decode_pod(raw(changed(POD, path, value))))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", None),
        ("metadata.name", ""),
        ("metadata.name", "a/b"),
        ("metadata.namespace", "a/b"),
        ("metadata.labels", ["a"]),
        ("metadata.labels", {"a": 1}),
        ("metadata.creationTimestamp", "yesterday"),
        ("metadata.creationTimestamp", "2026-11-21T16:00:00"),
        ("metadata.ownerReferences", [{"kind": "", "name": "b", "controller": True}]),
        ("metadata.ownerReferences", [{"kind": "A", "name": "b/c", "controller": True}]),
        ("metadata.ownerReferences", {}),
        ("spec", []),
        ("spec.nodeName", 3),
        ("spec.priority", 2**31),
        ("spec.priority", 10**400),
        ("spec.containers", {}),
        ("spec.containers.0.resources", []),
        ("spec.containers.0.resources.requests", {"cpu": "a lot"}),
        ("spec.containers.0.resources.requests", {"cpu": "-1"}),
        ("spec.containers.0.resources.requests", {"cpu": None}),
        ("spec.containers.0.resources.requests", {"cpu": True}),
        ("spec.containers.0.resources.requests", {"cpu": 10**400}),
        ("spec.overhead", {"cpu": []}),
        (
            "status.nodeAllocatableResourceClaimStatuses",
            [{"resourceClaimName": "a", "mapping": [{"name": "cpu", "quantity": "-1"}]}],
        ),
        ("status.containerStatuses", [{"state": {"running": {"startedAt": 5}}}]),
        ("status.containerStatuses", [{"state": {"terminated": {"finishedAt": "then"}}}]),
        ("status.reason", 5),
        ("kind", "Deployment"),
    ],
)
def test_nonsense_is_refused_by_name(path: str, value: Any) -> None:
    with pytest.raises(UndecodableObject, match=r"Pod.* cannot be read: ") as refused:
        decode_pod(raw(changed(POD, path, value)))
    assert isinstance(refused.value, InputError)


def ended(*times: str | None) -> list[dict[str, Any]]:
    started = {"startedAt": "2026-11-21T16:00:09Z"}
    return [
        {"name": f"c{i}", "state": {"terminated": started | ({"finishedAt": time} if time else {})}}
        for i, time in enumerate(times)
    ]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_is_over_with_its_last_container(phase: str) -> None:
    over = changed(POD, "status.phase", phase)
    statuses = ended("2026-11-21T16:10:00Z", "2026-11-21T16:30:00Z", None)
    one = changed(over, "status.containerStatuses", statuses)
    assert decode_pod(one).finished == seconds("2026-11-21T16:30:00")
    assert decode_pod(one).started == seconds("2026-11-21T16:00:09")
    sidecar = changed(one, "status.initContainerStatuses", ended("2026-11-21T16:31:00Z"))
    assert decode_pod(sidecar).finished == seconds("2026-11-21T16:31:00")
    null = changed(over, "status.containerStatuses", [{"state": {"terminated": {"finishedAt": None}}}])
    assert decode_pod(null).finished is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"state": {"running": {"startedAt": "2026-11-21T16:00:00Z"}}}, True),
        ({"state": {"running": {}}}, True),
        ({"state": {"terminated": {"exitCode": 0}}}, True),
        ({"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 1}}}, True),
        ({"state": {"waiting": {"reason": "PodInitializing"}}}, False),
        ({}, False),
    ],
)
def test_a_pod_prepares_while_its_init_containers_run(state: dict[str, Any], expected: bool) -> None:
    waiting = changed(POD, "status.containerStatuses", [{"name": "main", "state": {"waiting": {}}}])
    one = decode_pod(changed(waiting, "status.initContainerStatuses", [{"name": "init"} | state]))
    assert one.is_preparing is expected and one.started is None
    both = changed(POD, "status.initContainerStatuses", [{"name": "init"} | state])
    assert not decode_pod(both).is_preparing, "it has started"


@pytest.mark.parametrize(
    ("reason", "cores"),
    [
        ("Infeasible", (0.07, 0.02)),
        ("Deferred", (0.15, 0.15)),
    ],  # 1.36 includes the sidecar's 50m, which is not reported
)
def test_a_resize_that_is_refused_does_not_count(reason: str, cores: tuple[float, ...]) -> None:
    pod = changed(POD, "status.containerStatuses.0.resources", {"requests": {"cpu": "20m"}})
    pod = changed(pod, "status.conditions", [{"type": "PodResizePending", "status": "True", "reason": reason}])
    assert tuple(decode_pod(pod, version).requests["cpu"] for version in COMPARED[1:3]) == cores


def test_what_the_devices_of_claims_take_of_the_node_is_requested() -> None:
    """As kube-scheduler writes it (KEP-5517): once per claim, per pod, and per container that uses the claim."""
    overhead = {"name": "memory", "perPod": "1Gi", "perContainer": "512Mi"}
    claims = [
        {"resourceClaimName": "a", "mapping": [{"name": "cpu", "quantity": "2"}, {"name": "hugepages-2Mi"}]},
        {"resourceClaimName": "b", "containers": ["main", "proxy"], "overhead": [overhead], "mapping": None},
        {"resourceClaimName": "c", "mapping": [{"name": "cpu", "quantity": "500m"}]},
    ]
    pod = changed(POD, "status.containerStatuses", None)  # the kubelet has given nothing yet
    before = decode_pod(pod).requests
    found = decode_pod(changed(pod, "status.nodeAllocatableResourceClaimStatuses", claims)).requests
    assert found["cpu"] - before["cpu"] == pytest.approx(2.5)
    assert found["memory"] - before["memory"] == 2 * 2**30


def test_pods_of_one_service_share_what_they_have_in_common() -> None:
    one, other = decode_pod(raw(POD)), decode_pod(raw(changed(POD, "metadata.name", "cart-7d9f-other")))
    assert one.labels is other.labels
    assert one.requests is other.requests
    assert one.owner is other.owner


def test_the_claims_of_a_pod_are_those_named_and_those_made_from_templates() -> None:
    asked = [
        {"name": "own", "resourceClaimName": "a"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "unneeded", "resourceClaimTemplateName": "t"},
        {"name": "to-come", "resourceClaimTemplateName": "t"},
    ]
    made = [{"name": "made", "resourceClaimName": "cart-made-x7"}, {"name": "unneeded"}]
    pod = decode_pod(changed(changed(POD, "spec.resourceClaims", asked), "status.resourceClaimStatuses", made))
    claims = [(one.name, one.claim) for one in pod.resource_claims]
    assert claims == [("own", "a"), ("made", "cart-made-x7"), ("unneeded", None), ("to-come", "")]
    assert decode_pod(POD).resource_claims == ()
