"""Claims that a pod's volumes name, and what kube-scheduler says of those it cannot use."""

from __future__ import annotations

import json

import numpy as np

from kube.objects.constraints import PodVolume
from kube.objects.objects import PodInfo
from kube.objects.storage_objects import VolumeClaimInfo
from placement.filters.filter import ClusterView, Rejection


def claim_of(pod: PodInfo, volume: PodVolume, view: ClusterView) -> VolumeClaimInfo | None:
    """The claim of a volume; None = there is none (yet)."""
    return view.index.storage.claims.get((pod.namespace, volume.claim))


def nowhere(view: ClusterView, reason: str, *, preemptible: bool = False) -> tuple[Rejection, ...]:
    """The pod can go to no node."""
    return (Rejection(np.ones(view.n_rows, dtype=bool), reason, preemptible),)


def not_found(resource: str, name: str) -> str:
    """As NewNotFound in apimachinery/pkg/api/errors words it."""
    return f"{resource} {quoted(name)} not found"


def quoted(text: str) -> str:
    """As Go's %q."""
    return json.dumps(text, ensure_ascii=False)


def owner_mistake(pod: PodInfo, claim: VolumeClaimInfo) -> str:
    """Why the claim is not that of the pod's ephemeral volume; '' = it is (VolumeIsForPod in
    component-helpers/storage/ephemeral/ephemeral.go)."""
    if claim.owner_uid == pod.uid:
        return ""
    return f"PVC {claim.namespace}/{claim.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
