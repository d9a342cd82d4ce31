"""Which PodGroup a pod belongs to and in which role, and the PodGroup that the annotations of a pod ask for. No I/O.

A controller, such as a Job, says in the annotations of its pod template how many of its pods are needed at once. The
loop that leads creates the PodGroup (group_creator.py); its owner reference has it deleted with the controller. Pods
are members by their owner and the annotation, without a label.

    label scheduling.x-k8s.io/pod-group          the PodGroup of that name
    annotation forecast-scheduler.io/min-member  the PodGroup that is created for the pod's owner
    spec.schedulingGroup.podGroupName            the native PodGroup of that name

The first that applies decides. The native group comes last: with the gate WorkloadWithJob the Job controller puts the
pods of every Job into one that asks for nothing (policy `basic`), and what the owner asked for would be lost.

https://github.com/kubernetes-sigs/scheduler-plugins/blob/master/kep/42-podgroup-coscheduling/README.md
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from base.errors import InputError
from forecast.service_key import NO_OWNER, Owner, owner_of_replica_set
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.pod_groups.group_apis import NATIVE, OURS, group_key
from placement.pod_groups.minima import MIN_PER_ROLE, Minima, of_annotations
from placement.pod_groups.pod_group import PodGroupInfo

MIN_MEMBER: Final = f"{ANNOTATION_PREFIX}min-member"

CREATED_FOR: Final = f"{ANNOTATION_PREFIX}created-for"
"""On a PodGroup that was created so: "Job/train". Only such a group follows the annotation."""

_MOST: Final = 2**31 - 1
_LONGEST_NAME: Final = 253
_HASH_DIGITS: Final = 10

GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"

OLDER_GROUP_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
"""Of scheduler-plugins before its API group was renamed; read where the other is not there."""

ROLE: Final = f"{ANNOTATION_PREFIX}role"


def owner_of(pod: PodInfo) -> Owner:
    """The controller whose pods are one group: of a ReplicaSet of a Deployment the Deployment, so that new pods of a
    rollout join those that run."""
    return owner_of_replica_set(pod.owner, pod.labels) if pod.owner.kind == "ReplicaSet" else pod.owner


def name_of_owner(pod: PodInfo) -> str:
    """Name of the PodGroup of a pod with the annotation: "train.job"; of a pod without controller "train-0.pod"."""
    owner = owner_of(pod)
    if owner == NO_OWNER:
        owner = Owner("Pod", pod.name)
    name = f"{owner.name}.{owner.kind.lower()}"
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{name[: _LONGEST_NAME - _HASH_DIGITS - 1].rstrip('.-')}-{digest}"


def minima_of(pod: PodInfo) -> Minima:
    """What the pod's annotations ask for. Raises InputError that names the annotation and the way out."""
    text = pod.annotations[MIN_MEMBER]
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) and 1 <= int(text) <= _MOST):
        raise InputError(f"{MIN_MEMBER}: must be a whole number from 1 to {_MOST}, found {text[:60]!r}")
    if pod.owner == NO_OWNER:
        raise InputError(
            f"{MIN_MEMBER}: the pod has no controller: create a PodGroup and name it in the label "
            "scheduling.x-k8s.io/pod-group"
        )
    return Minima(int(text), of_annotations(pod.annotations))


def supposed_group(pod: PodInfo) -> PodGroupInfo:
    """The group as it will be once it is created, for dry runs. Raises InputError."""
    return PodGroupInfo(
        namespace=pod.namespace,
        name=(name := name_of_owner(pod)),
        uid=f"{pod.namespace}/{name}",
        generation=1,
        created=pod.created,
        minima=minima_of(pod),
        is_by_annotation=True,
    )


def manifest_of(pod: PodInfo, minima: Minima, reference: Mapping[str, Any]) -> dict[str, Any]:
    """The PodGroup to create. reference: apiVersion, kind, name and uid of the controller that it is deleted with."""
    return {
        "apiVersion": OURS.version,
        "kind": "PodGroup",
        "metadata": {
            "namespace": pod.namespace,
            "name": name_of_owner(pod),
            "annotations": {CREATED_FOR: f"{reference['kind']}/{reference['name']}", **_roles(minima)},
            "ownerReferences": [{key: reference[key] for key in ("apiVersion", "kind", "name", "uid")}],
        },
        "spec": {"minMember": minima.members},
    }


def patch_of(minima: Minima, group: PodGroupInfo) -> dict[str, Any]:
    """What makes an existing group ask for this (RFC 7396). Not of another version than was read."""
    annotations = {MIN_PER_ROLE: None, **_roles(minima)}
    return {
        "metadata": {"resourceVersion": group.version, "annotations": annotations},
        "spec": {"minMember": minima.members},
    }


def _roles(minima: Minima) -> dict[str, str]:
    return {MIN_PER_ROLE: json.dumps(dict(minima.by_role))} if minima.by_role else {}


def group_of(pod: PodInfo) -> str | None:
    """Key of its PodGroup, which is in its own namespace; None = it is in none."""
    labels = pod.labels
    name = labels.get(GROUP_LABEL) or labels.get(OLDER_GROUP_LABEL)
    if not name and MIN_MEMBER in pod.annotations:
        name = name_of_owner(pod)
    if name:
        return group_key(pod.namespace, name)
    return group_key(pod.namespace, pod.scheduling_group, NATIVE) if pod.scheduling_group else None


def role_of(pod: PodInfo) -> str:
    """'' = none."""
    return pod.labels.get(ROLE) or pod.annotations.get(ROLE, "")
