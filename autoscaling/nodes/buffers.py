"""How much room the pods need that autoscaled services are expected to add before a new node could be there; as a
CapacityBuffer with its PodTemplate, or a Deployment of placeholder pods.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from autoscaling.autoscale_settings import BufferOptions
from autoscaling.services_ahead import BUFFER_LABEL, PodsAhead, ServicesAhead, is_placeholder, pods_ahead
from base.arrays import Floats, Ints
from kube.objects.constraints import NodeSelectorTerm, Requirement, Toleration
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

# How much room the pods need that autoscaled services are expected to add before a new node could be there.
#
#     ServicesAhead --pods_ahead--> pods to come --by what decides their node--> buffers: chunks as large as a large pod
#
# Pure. What is written of it is the business of buffer_hand.py.

NAME_PREFIX: Final = "forecast-buffer-"
_STEP_SECONDS: Final = 300.0
_CHUNK_QUANTILE: Final = 0.9

_DIGITS: Final = 2
"""Of the size of a chunk: it must not change with every new model."""

_BASIC: Final = ("cpu", "memory", "ephemeral-storage", "pods")

_GIVEN_TO_ALL: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that the API server lets every pod tolerate for a while (admission plugin DefaultTolerationSeconds)."""

Json = dict[str, Any]
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "forecast-scheduler"}
TEMPLATE_DIGEST: Final = f"{ANNOTATION_PREFIX}template-digest"


@dataclass(frozen=True, slots=True)
class NodeNeeds:
    """What decides which nodes a pod may use. further: what it requests besides cores and memory, such as GPUs."""

    scheduler_name: str
    node_selector: tuple[tuple[str, str], ...]
    required_node_terms: tuple[NodeSelectorTerm, ...] | None
    tolerations: tuple[Toleration, ...]
    further: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Buffer:
    """Room for pods of equal needs. Chunks are of one size, that of a large pod; 0 of them = nothing is expected.

    name : the same for the same needs, in every process
    """

    name: str
    needs: NodeNeeds
    cpu_cores: float
    memory_bytes: float
    chunks: int


def buffers(ahead: ServicesAhead, now: float, options: BufferOptions) -> tuple[Buffer, ...]:
    """One buffer for each kind of needs that autoscaled services have, by name; now: unix seconds."""
    n_steps = max(1, int(np.ceil(options.lead / _STEP_SECONDS)))
    return buffers_for(ahead, pods_ahead(ahead, now, now + options.lead * np.arange(1, n_steps + 1) / n_steps), options)


def buffers_for(ahead: ServicesAhead, coming: PodsAhead, options: BufferOptions) -> tuple[Buffer, ...]:
    """The same for known pods to come, at some moments within the time that a new node takes."""
    groups = _groups(ahead)
    wanted = {needs: _wanted(ahead, coming, rows, options.margin) for needs, rows in groups.items()}
    scale = _within(ahead, sum(wanted.values(), np.zeros(2)), options.most_share)
    found = [
        _buffer(needs, _large_pod(ahead, rows), wanted[needs] * scale, rounded_down=scale < 1)
        for needs, rows in groups.items()
    ]
    return tuple(sorted(found, key=lambda buffer: buffer.name))


def needs_of(pod: PodInfo) -> NodeNeeds:
    """What decides which nodes a pod may use."""
    said = pod.constraints
    return NodeNeeds(
        pod.scheduler_name,
        said.node_selector,
        said.required_node_terms,
        tuple(one for one in said.tolerations if one.key not in _GIVEN_TO_ALL),
        tuple(sorted((kind, amount) for kind, amount in pod.requests.items() if kind not in _BASIC and amount > 0)),
    )


def _groups(ahead: ServicesAhead) -> Mapping[NodeNeeds, Ints]:
    """Rows of the autoscaled services by their needs."""
    rows: dict[NodeNeeds, list[int]] = {}
    for row in np.flatnonzero(ahead.autoscaled & ~is_placeholder(ahead)).tolist():
        rows.setdefault(needs_of(ahead.examples[row]), []).append(row)
    return {needs: np.array(found, dtype=np.int64) for needs, found in rows.items()}


def _wanted(ahead: ServicesAhead, coming: PodsAhead, rows: Ints, margin: float) -> Floats:
    """Cores and bytes, (2,), that these services are expected to request in addition to what they do now.

    Pods that go make room for pods that come: only the sum counts. Errors of services are taken to be independent, so
    the error of the sum is the root of the sum of their squares.
    """
    requests = ahead.requests[rows]
    more = (coming.pods[rows] - ahead.replicas[rows][:, None]).T @ requests  # (n_moments, 2)
    error = np.sqrt(np.square(coming.std[rows]).T @ np.square(requests))
    return np.asarray(np.maximum(more + margin * error, 0.0).max(axis=0))


def _within(ahead: ServicesAhead, wanted: Floats, most_share: float) -> float:
    """The factor that brings all buffers together within the bound."""
    most = most_share * (ahead.replicas[:, None] * ahead.requests)[~is_placeholder(ahead)].sum(axis=0)
    beyond = wanted > most
    return float((most[beyond] / wanted[beyond]).min()) if beyond.any() else 1.0


def _large_pod(ahead: ServicesAhead, rows: Ints) -> Floats:
    """Cores and bytes, (2,), that nine of ten pods of some services do not exceed, by the pods of the days ahead.

    Chunks of the size of a mean pod lie scattered over nodes, and a large pod finds none where they make room for it.
    """
    weight = ahead.expected_replicas[rows].mean(axis=1)
    weight = weight if weight.any() else np.ones(len(rows))
    found = []
    for amounts in ahead.requests[rows].T:
        order = np.argsort(amounts, kind="stable")
        share = np.cumsum(weight[order]) / weight.sum()
        found.append(amounts[order][min(int(np.searchsorted(share, _CHUNK_QUANTILE)), len(order) - 1)])
    return _rounded(np.array(found))


def _rounded(amounts: Floats) -> Floats:
    """Up to two digits."""
    unit = 10.0 ** (np.floor(np.log10(np.maximum(amounts, 1e-9))) - (_DIGITS - 1))
    return np.asarray(np.where(amounts > 0, np.ceil(amounts / unit - 1e-9) * unit, 0.0))


def _buffer(needs: NodeNeeds, chunk: Floats, wanted: Floats, *, rounded_down: bool) -> Buffer:
    in_chunks = max((float(wanted[r] / chunk[r]) for r in range(2) if chunk[r] > 0), default=0.0)
    chunks = int(np.floor(in_chunks + 1e-9) if rounded_down else np.ceil(in_chunks - 1e-9))
    digest = hashlib.sha256(repr(needs).encode()).hexdigest()[:10]
    return Buffer(f"{NAME_PREFIX}{digest}", needs, float(chunk[0]), float(chunk[1]), chunks)


OURS: Final = f"app.kubernetes.io/managed-by=forecast-scheduler,{BUFFER_LABEL}"
"""Label selector of all objects that are written."""


def pod_template(buffer: Buffer, options: BufferOptions, *, placeholder: bool) -> Json:
    """The template of one chunk. placeholder: its pods are really created, and give way to all others."""
    needs = buffer.needs
    container = {
        "name": "placeholder",
        "image": options.image,
        "resources": {"requests": _requests(buffer), "limits": {kind: str(_whole(n)) for kind, n in needs.further}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec: Json = {
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # As the pod security standard "restricted" asks; 65535 is the user of the pause image.
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65535, "seccompProfile": {"type": "RuntimeDefault"}},
        "schedulerName": needs.scheduler_name,
        **_placing(needs),
    }
    if placeholder:
        spec["priorityClassName"] = options.priority_class
    return {"metadata": {"labels": _labels(buffer)}, "spec": spec}


def pod_template_object(buffer: Buffer, options: BufferOptions) -> Json:
    """The PodTemplate that a CapacityBuffer names."""
    template = pod_template(buffer, options, placeholder=False)
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": _metadata(buffer, template), "template": template}


def capacity_buffer(buffer: Buffer, version: str) -> Json:
    """A CapacityBuffer of so many chunks; version: of its API."""
    return {
        "apiVersion": f"autoscaling.x-k8s.io/{version}",
        "kind": "CapacityBuffer",
        "metadata": {"name": buffer.name, "labels": _labels(buffer)},
        "spec": {"podTemplateRef": {"name": buffer.name}, "replicas": buffer.chunks},
    }


def deployment(buffer: Buffer, options: BufferOptions) -> Json:
    """A Deployment of placeholder pods."""
    template = pod_template(buffer, options, placeholder=True)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(buffer, template),
        "spec": {
            "replicas": buffer.chunks,
            "revisionHistoryLimit": 0,
            # Chunks of the old and the new size together would order nodes that no pod needs.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {BUFFER_LABEL: buffer.name}},
            "template": template,
        },
    }


def digest_of(wanted: Mapping[str, Any]) -> str:
    """The digest of the template that an object carries; '' = it carries none."""
    return str(wanted["metadata"].get("annotations", {}).get(TEMPLATE_DIGEST, ""))


def _labels(buffer: Buffer) -> dict[str, str]:
    return {**MANAGED_BY, BUFFER_LABEL: buffer.name}


def _metadata(buffer: Buffer, template: Json) -> Json:
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:16]
    return {"name": buffer.name, "labels": _labels(buffer), "annotations": {TEMPLATE_DIGEST: digest}}


def _requests(buffer: Buffer) -> dict[str, str]:
    found = {kind: str(_whole(n)) for kind, n in buffer.needs.further}
    if buffer.cpu_cores > 0:
        found["cpu"] = f"{_whole(1000 * buffer.cpu_cores)}m"
    if buffer.memory_bytes > 0:
        found["memory"] = str(_whole(buffer.memory_bytes))
    return found


def _whole(amount: float) -> int:
    return math.ceil(amount - 1e-6)


def _placing(needs: NodeNeeds) -> Json:
    found: Json = {}
    if needs.node_selector:
        found["nodeSelector"] = dict(needs.node_selector)
    if needs.required_node_terms is not None:
        terms = [_term(term) for term in needs.required_node_terms]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        found["affinity"] = {"nodeAffinity": required}
    if needs.tolerations:
        found["tolerations"] = [
            {
                name: value
                for name, value in (("key", t.key), ("operator", t.operator), ("value", t.value), ("effect", t.effect))
                if value
            }
            for t in needs.tolerations
        ]
    return found


def _term(term: NodeSelectorTerm) -> Json:
    found: Json = {}
    if term.expressions:
        found["matchExpressions"] = _expressions(term.expressions)
    if term.fields:
        found["matchFields"] = _expressions(term.fields)
    return found


def _expressions(requirements: Sequence[Requirement]) -> list[Json]:
    return [
        {"key": one.key, "operator": one.operator.value, **({"values": list(one.values)} if one.values else {})}
        for one in requirements
    ]
