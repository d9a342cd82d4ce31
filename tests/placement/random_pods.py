"""Random pods: those that sit already, and probes that ask for a place in every way a pod can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from testing.servers.cluster_objects import Manifest, pod
from tests.placement.random_constraints import (
    random_node_affinity,
    random_node_selector,
    random_pod_affinity,
    random_spread,
    random_tolerations,
)
from tests.placement.random_labels import NAMESPACES, often, random_labels
from tests.placement.random_nodes import CARD, HUGE_PAGES

Json = dict[str, Any]

Volumes = Callable[[Random, str], list[Json]]
"""spec.volumes for a pod of a namespace."""

OVERHEAD_CLASS: Final = "with-overhead"
"""A RuntimeClass; admission copies its overhead into the pod."""

PROBE_CLASS: Final = "never-preempts"
"""A PriorityClass with preemptionPolicy Never."""

_OWNERS: Final = ("api", "jobs")
_IMAGES: Final = (
    "registry.example/app:1",
    "registry.example/app:2",
    "registry.example/base",
    "registry.example:5000/tools",
    "registry.example/nobody-has-it:1",
)
_CPU: Final = ("0", "1m", "100m", "250m", "0.5", "1", "1500m")
_MEMORY: Final = ("0", "1", "100Mi", "256M", "1Gi", "1.5Gi")
_LARGE_CPU: Final = ("2", "3500m", "4", "7800m", "7801m", "15800m")
_LARGE_MEMORY: Final = ("3Gi", "4Gi", "8G", "8000000001", "15Gi")


def random_sitting_pod(rng: Random, name: str, node: str, volumes: Volumes | None = None) -> Manifest:
    """A pod bound to a node; some are finished."""
    made = _pod(rng, name, large=0.05, ports=0.25)
    spec = made["spec"]
    spec["nodeName"] = node
    affinity: Json = {}
    if often(rng, 0.08):
        affinity["podAntiAffinity"] = random_pod_affinity(rng, required=0.6, apart=True)
    if often(rng, 0.1):
        affinity["podAffinity"] = random_pod_affinity(rng, required=0.5)
    if affinity:
        spec["affinity"] = affinity
    if volumes is not None and often(rng, 0.3):
        spec["volumes"] = volumes(rng, made["metadata"]["namespace"])
    what = rng.random()
    if what < 0.04:
        made["status"] = {"phase": rng.choice(("Succeeded", "Failed"))}
    elif what < 0.3:
        made["status"] = {"phase": "Running"}
    elif what < 0.4:
        made["status"] = {"phase": "Running"} | _resizing(rng, spec)
    return made


def random_probe(
    rng: Random,
    name: str,
    nodes: Sequence[str],
    volumes: Volumes | None = None,
    *,
    plain: bool = False,
    soft: bool = False,
) -> Manifest:
    """A pod to be placed, never by preemption, with one to three kinds of constraints beside what it requests.

    plain : these are constraints by other pods
    soft  : most are preferences
    """
    required = 0.1 if soft else 0.9
    made = _pod(rng, name, large=0.0 if plain else 0.1, ports=0.3)
    spec = made["spec"]
    spec["priorityClassName"] = PROBE_CLASS
    if often(rng, 0.02):
        spec["schedulingGates"] = [{"name": "example.com/not-yet"}]
    kinds = ["together", "apart", "spread"]
    if not plain:
        kinds += ["node", "tolerations"] if soft else ["selector", "node", "tolerations", "tolerations"]
    affinity: Json = {}
    for kind in rng.sample(kinds, rng.choice((1, 1, 1, 2, 3) if volumes is None else (0, 0, 1, 1, 2))):
        match kind:
            case "selector":
                spec["nodeSelector"] = random_node_selector(rng)
            case "node":
                affinity["nodeAffinity"] = random_node_affinity(rng, nodes, required=required)
            case "tolerations":
                spec["tolerations"] = random_tolerations(rng)
            case "together":
                affinity["podAffinity"] = random_pod_affinity(rng, required=required, wide=0.6)
            case "apart":
                affinity["podAntiAffinity"] = random_pod_affinity(rng, required=required, apart=True)
            case "spread":
                spec["topologySpreadConstraints"] = random_spread(rng, hard=required)
    if volumes is not None and often(rng, 0.7):
        spec["volumes"] = volumes(rng, made["metadata"]["namespace"])
    if affinity:
        spec["affinity"] = affinity
    if often(rng, 0.06):
        _needs_a_feature(rng, spec)
    if soft and often(rng, 0.1):
        _add_image_volume(rng, spec)
    return made


def replica_sets() -> tuple[Manifest, ...]:
    """Owners of random pods, two in each namespace; they select their own pods and no others."""
    return tuple(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"owner": name}},
                "template": {
                    "metadata": {"labels": {"owner": name}},
                    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
                },
            },
        }
        for namespace in NAMESPACES
        for name in _OWNERS
    )


def _pod(rng: Random, name: str, *, large: float, ports: float) -> Manifest:
    """Labels, owner, containers, what they request, ports of the node."""
    made = pod(name, namespace=rng.choice(NAMESPACES), labels=random_labels(rng))
    if often(rng, 0.5):
        owner = rng.choice(_OWNERS)
        of = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "controller": True}
        of["uid"] = f"uid-{made['metadata']['namespace']}-{owner}"
        made["metadata"]["ownerReferences"] = [of]
        made["metadata"]["labels"]["owner"] = owner
    spec = made["spec"]
    spec["containers"] = [_container(rng, f"main-{i}", large=large) for i in range(rng.choice((1, 1, 1, 2)))]
    if often(rng, 0.2):
        spec["initContainers"] = [
            _container(rng, f"init-{i}", large=large) | ({"restartPolicy": "Always"} if often(rng, 0.5) else {})
            for i in range(rng.choice((1, 2, 3)))
        ]
    if often(rng, 0.05):
        spec["hostNetwork"] = True
    if often(rng, ports):
        _add_ports(rng, spec)
    if often(rng, 0.07):
        spec["runtimeClassName"] = OVERHEAD_CLASS
    if often(rng, 0.08):
        _add_pod_level(rng, spec)
    return made


def _needs_a_feature(rng: Random, spec: Json) -> None:
    """Of the node, which has to declare it; other rules need none."""
    action = rng.choice(("RestartAllContainers", "RestartAllContainers", "Restart"))
    rule = {"action": action, "exitCodes": {"operator": "In", "values": [3]}}
    rng.choice(spec["containers"]).update(restartPolicy="Never", restartPolicyRules=[rule])


def _add_image_volume(rng: Random, spec: Json) -> None:
    image = {"reference": rng.choice(_IMAGES), "pullPolicy": "IfNotPresent"}
    spec.setdefault("volumes", []).append({"name": "image", "image": image})


def _resizing(rng: Random, spec: Json) -> Json:
    """Status of a pod that the kubelet gave other resources than it asks for now."""
    status: Json = {}
    for field, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        status[field] = [
            {"name": one["name"], "ready": True, "restartCount": 0, "image": "", "imageID": ""}
            | {"resources": {"requests": {"cpu": rng.choice(_CPU), "memory": rng.choice(_MEMORY)}}}
            | {"allocatedResources": {"cpu": rng.choice(_CPU), "memory": rng.choice(_MEMORY)}}
            for one in spec.get(containers, ())
        ]
    if often(rng, 0.3):
        reason = rng.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return status


def _container(rng: Random, name: str, *, large: float) -> Json:
    requests: Json = {}
    limits: Json = {}
    if often(rng, 0.7):
        requests["cpu"] = rng.choice(_LARGE_CPU if often(rng, large) else _CPU)
    if often(rng, 0.6):
        requests["memory"] = rng.choice(_LARGE_MEMORY if often(rng, large) else _MEMORY)
    if often(rng, 0.1):
        requests["ephemeral-storage"] = rng.choice(("1Gi", "40Gi", "99Gi"))
    if often(rng, 0.1):
        limits["cpu"] = "16"  # without a request, that is the request
    if often(rng, 0.08):
        limits[CARD] = rng.choice(("0", "1", "2"))
    if often(rng, 0.01):
        limits["example.com/nobody-has-it"] = rng.choice(("0", "1"))
    if often(rng, 0.03):
        limits[HUGE_PAGES] = rng.choice(("2Mi", "64Mi"))
        requests.setdefault("memory", "1Mi")
    return {"name": name, "image": rng.choice(_IMAGES), "resources": {"requests": requests, "limits": limits}}


def _add_ports(rng: Random, spec: Json) -> None:
    used: set[int] = set()
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        if often(rng, 0.3):
            continue
        number = rng.choice((8080, 9000))
        if number in used:
            continue  # the API server refuses one port twice in a pod
        used.add(number)
        port: Json = {"containerPort": number}
        # With hostNetwork the API server fills the port of the node in.
        if not spec.get("hostNetwork"):
            port["hostPort"] = number
        if often(rng, 0.4):
            port["protocol"] = rng.choice(("TCP", "UDP", "SCTP"))
        if often(rng, 0.4):
            port["hostIP"] = rng.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1", "::"))
        container["ports"] = [port]


def _add_pod_level(rng: Random, spec: Json) -> None:
    """Requests of the pod as a whole: at least those of its containers, which the API server checks."""
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        container["resources"]["requests"] = {
            name: {"cpu": "100m", "memory": "64Mi"}.get(name, value)
            for name, value in container["resources"]["requests"].items()
        }
        container["resources"]["limits"].pop("cpu", None)
        container["resources"]["limits"].pop(HUGE_PAGES, None)
    level: Json = {}
    if often(rng, 0.8):
        level["cpu"] = rng.choice(("1", "2", "4"))
    if often(rng, 0.6) or not level:
        level["memory"] = rng.choice(("512Mi", "2Gi"))
    spec["resources"] = {"requests": level}
