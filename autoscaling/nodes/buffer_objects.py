"""Buffers as objects of the API server: a CapacityBuffer with its PodTemplate, or a Deployment of placeholder pods.

Source: kubernetes/autoscaler, cluster-autoscaler/apis/capacitybuffer (v1alpha1 and v1beta1 have the same fields here).
A digest of the template lies beside it, so that what the API server filled in need not be compared.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from autoscaling.nodes.buffers import Buffer, NodeNeeds
from autoscaling.nodes.options import BufferOptions
from autoscaling.nodes.pods_ahead import BUFFER_LABEL
from kube.objects.constraints import NodeSelectorTerm, Requirement
from kube.objects.objects import ANNOTATION_PREFIX

Json = dict[str, Any]

MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "forecast-scheduler"}
OURS: Final = f"app.kubernetes.io/managed-by=forecast-scheduler,{BUFFER_LABEL}"
"""Label selector of all objects that are written."""

TEMPLATE_DIGEST: Final = f"{ANNOTATION_PREFIX}template-digest"


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
