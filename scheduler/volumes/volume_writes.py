"""What is to be written so that the claims of a pod get their volumes on its node: free volumes, or new ones.

Source: FindPodVolumes and AssumePodVolumes in framework/plugins/volumebinding/binder.go. The same rules as the filter's
(placement/filters/volume_binding.py), for one node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kube.objects.objects import PodInfo
from kube.objects.storage_objects import ClaimInfo, ClaimReference, VolumeInfo
from placement.filters.filter import ClusterView
from placement.filters.pod_claims import claim_of
from placement.filters.volume_binding import VolumeBinding, is_waiting
from placement.filters.volume_matching import VolumeMatching, smallest_first


@dataclass(frozen=True, slots=True)
class ChosenVolume:
    """A claim gets a volume that exists. chosen: as it will be, referring to the claim; None = it does already."""

    claim: ClaimInfo
    volume: VolumeInfo
    chosen: VolumeInfo | None


@dataclass(frozen=True, slots=True)
class ChosenNode:
    """A claim gets a volume made for a node. chosen: as it will be, naming the node; None = it does already."""

    claim: ClaimInfo
    chosen: ClaimInfo | None


@dataclass(frozen=True, slots=True)
class VolumeChoice:
    """For the claims of one pod that wait."""

    pod: PodInfo
    node: str
    existing: tuple[ChosenVolume, ...]
    to_provision: tuple[ChosenNode, ...]

    @property
    def all(self) -> tuple[ChosenVolume | ChosenNode, ...]:
        """Those with a volume first."""
        return (*self.existing, *self.to_provision)


def volume_choice(pod: PodInfo, node: str, view: ClusterView) -> VolumeChoice | str | None:
    """Under the lock of the tables. None = no claim of the pod waits; a text = why it cannot have its volumes there."""
    waiting = _waiting(pod, view)
    if not waiting:
        return None
    row = view.state.row_of.get(node)
    if row is None or view.state.nodes[row] is None:
        return f"node {node} is gone"
    # Pods that were placed since the filter was asked may have taken what this one was to get.
    for rejection in VolumeBinding().filter(pod, view):
        if rejection.nodes[row]:
            return rejection.reason
    candidates = np.zeros(view.n_rows, dtype=bool)
    candidates[row] = True
    matching = VolumeMatching(view, candidates)
    existing = []
    to_provision = [_on_node(claim, node) for claim in waiting if claim.selected_node is not None]
    for claim in smallest_first(claim for claim in waiting if claim.selected_node is None):
        if name := matching.volume(claim, row):
            existing.append(_with_volume(claim, view.index.storage.volumes[name]))
        else:
            to_provision.append(_on_node(claim, node))
    return VolumeChoice(pod, node, tuple(existing), tuple(to_provision))


def _waiting(pod: PodInfo, view: ClusterView) -> list[ClaimInfo]:
    """Each once, though several volumes of the pod may name it."""
    classes, found = view.index.storage.classes, dict[str, ClaimInfo]()
    for volume in pod.volumes:
        claim = None if volume.disk else claim_of(pod, volume, view)
        if claim is not None and is_waiting(claim, classes.get(claim.storage_class)):
            found[claim.name] = claim
    return list(found.values())


def _with_volume(claim: ClaimInfo, volume: VolumeInfo) -> ChosenVolume:
    reference = ClaimReference(claim.namespace, claim.name, claim.uid)
    return ChosenVolume(claim, volume, None if volume.claim == reference else replace(volume, claim=reference))


def _on_node(claim: ClaimInfo, node: str) -> ChosenNode:
    return ChosenNode(claim, None if claim.selected_node == node else replace(claim, selected_node=node))
