"""Recommendations as manifests: patches of pod templates, and VerticalPodAutoscaler objects that only show them.

Requests of a pod are shared out to its containers in the proportion of today's requests, so both need to know the
containers of a pod. Containers without a request of a resource keep none, unless no container has one: then the first
gets all. A request is never above the limit of its container: what is beyond it is cut off, and the command says of
which services.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from autoscaling.requests.pod_resources import PodContainers, Requests, total
from autoscaling.requests.recommending import Recommendation
from autoscaling.requests.rounding import cpu_text, memory_text
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey

API_VERSIONS: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Rollout": "argoproj.io/v1alpha1",
}
"""Kinds of owners whose pod template is at spec.template."""


def container_requests(found: Recommendation, containers: PodContainers) -> tuple[Requests, bool]:
    """Requests of each container, and whether a limit cut one."""
    wanted = {"cpu": found.request[CPU], "memory": found.request[MEMORY]}
    shared: dict[str, dict[str, float]] = {name: {} for name in containers.requests}
    is_cut = False
    for resource, amount in wanted.items():
        if amount <= 0:
            continue
        whole = total(containers.requests, resource)
        for number, (name, now) in enumerate(containers.requests.items()):
            share = now.get(resource, 0.0) / whole if whole > 0 else float(number == 0)
            if share <= 0:
                continue
            limit = containers.limits[name].get(resource, math.inf)
            is_cut |= amount * share > limit * (1 + 1e-9)
            shared[name][resource] = min(amount * share, limit)
    return shared, is_cut


def cut_by_limits(
    found: Iterable[Recommendation], containers: Mapping[ServiceKey, PodContainers]
) -> tuple[ServiceKey, ...]:
    """Return the services of which a container's limit is below what it should request: its manifest requests less."""
    return tuple(one.service for one, _, is_cut in _known(found, containers) if is_cut)


def patches(
    found: Iterable[Recommendation], containers: Mapping[ServiceKey, PodContainers]
) -> Iterator[dict[str, Any]]:
    """Strategic merge patches, each with what it patches: `kubectl patch --patch-file` takes one alone."""
    for one, requests, _ in _known(found, containers):
        template = {"spec": {"containers": _containers(requests)}}
        yield _object(one.service, API_VERSIONS[one.service.kind]) | {"spec": {"template": template}}


def vertical_pod_autoscalers(
    found: Iterable[Recommendation], containers: Mapping[ServiceKey, PodContainers], now: datetime
) -> Iterator[dict[str, Any]]:
    """Objects of autoscaling.k8s.io/v1 with updateMode Off. `kubectl apply` drops the status: apply it as such."""
    since = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for one, requests, _ in _known(found, containers):
        kind, name = one.service.kind, one.service.name
        metadata = {"name": f"{kind.lower()}-{name}", "namespace": one.service.namespace}
        shown = [
            {"containerName": each["name"], "target": each["resources"]["requests"]} for each in _containers(requests)
        ]
        provided = {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": since}
        yield {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": metadata,
            "spec": {
                "targetRef": {"apiVersion": API_VERSIONS[kind], "kind": kind, "name": name},
                "updatePolicy": {"updateMode": "Off"},
            },
            "status": {"recommendation": {"containerRecommendations": shown}, "conditions": [provided]},
        }


def _known(
    found: Iterable[Recommendation], containers: Mapping[ServiceKey, PodContainers]
) -> Iterator[tuple[Recommendation, Requests, bool]]:
    """Those with a recommendation, a pod template and containers that are known; see container_requests."""
    for one in found:
        if one.because is None and one.service.kind in API_VERSIONS and one.service in containers:
            yield one, *container_requests(one, containers[one.service])


def _object(service: ServiceKey, version: str) -> dict[str, Any]:
    metadata = {"name": service.name, "namespace": service.namespace}
    return {"apiVersion": version, "kind": service.kind, "metadata": metadata}


def _containers(requests: Requests) -> list[dict[str, Any]]:
    texts = {"cpu": cpu_text, "memory": memory_text}
    return [
        {"name": name, "resources": {"requests": {resource: texts[resource](value) for resource, value in one.items()}}}
        for name, one in requests.items()
        if one
    ]
