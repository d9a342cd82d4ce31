"""What is to be written so that the claims of a pod get their volumes on its node, and how far the volumes have come:
bound all, failed, or not yet.

Source: checkBindings in framework/plugins/volumebinding/binder.go. What the watch has brought counts, not what is
assumed, and only from the state on that our own writing led to.

Source: FindPodVolumes and AssumePodVolumes in framework/plugins/volumebinding/binder.go. The same rules as the filter's
(placement/filters/volume_binding.py), for one node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kube.binding.binding_steps import BindingResult, BindingVerdict
from kube.objects.objects import PodInfo
from kube.objects.storage_objects import ClaimReference, VolumeClaimInfo, VolumeInfo
from kube.objects.watched_objects import is_older
from placement.filters.filter import ClusterView
from placement.filters.pod_claims import claim_of
from placement.filters.volume_binding import VolumeBinding, VolumeMatching, is_waiting, reachable, smallest_first
from placement.status import SUCCESS, Code, Status
from scheduler.binding.outcome import bind_status

# What is to be written so that the claims of a pod get their volumes on its node: free volumes, or new ones.
#
# Source: FindPodVolumes and AssumePodVolumes in framework/plugins/volumebinding/binder.go. The same rules as the
# filter's (placement/filters/volume_binding.py), for one node.

NAME = "VolumeBinding"

Versions = Mapping[str, str]
"""resourceVersions of what we have written, by "volume name" or "namespace/name" of the claim."""


@dataclass(frozen=True, slots=True)
class ChosenVolume:
    """A claim gets a volume that exists. chosen: as it will be, referring to the claim; None = it does already."""

    claim: VolumeClaimInfo
    volume: VolumeInfo
    chosen: VolumeInfo | None


@dataclass(frozen=True, slots=True)
class ChosenNode:
    """A claim gets a volume made for a node. chosen: as it will be, naming the node; None = it does already."""

    claim: VolumeClaimInfo
    chosen: VolumeClaimInfo | None


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


def _waiting(pod: PodInfo, view: ClusterView) -> list[VolumeClaimInfo]:
    """Each once, though several volumes of the pod may name it."""
    classes, found = view.index.storage.classes, dict[str, VolumeClaimInfo]()
    for volume in pod.volumes:
        claim = None if volume.disk else claim_of(pod, volume, view)
        if claim is not None and is_waiting(claim, classes.get(claim.storage_class)):
            found[claim.name] = claim
    return list(found.values())


def _with_volume(claim: VolumeClaimInfo, volume: VolumeInfo) -> ChosenVolume:
    reference = ClaimReference(claim.namespace, claim.name, claim.uid)
    return ChosenVolume(claim, volume, None if volume.claim == reference else replace(volume, claim=reference))


def _on_node(claim: VolumeClaimInfo, node: str) -> ChosenNode:
    return ChosenNode(claim, None if claim.selected_node == node else replace(claim, selected_node=node))


def progress(choice: VolumeChoice, written: Versions, view: ClusterView) -> Status | None:
    """Under the lock of the tables. None = not yet."""
    known = view.state.pods.get(choice.pod.uid)
    if known is None or known.terminating:
        gone = "the pod does not exist any more"
        return bind_status(NAME, BindingResult(BindingVerdict.GONE, gone))
    row = view.state.row_of.get(choice.node)
    if row is None or view.state.nodes[row] is None:
        return _failed(f"node {choice.node} is gone")
    is_over = True
    for one in choice.all:
        found = (
            _of_volume(one, written, view) if isinstance(one, ChosenVolume) else _of_node(one, choice, written, view)
        )
        for step in (found, _of_claim(one.claim, row, view)):
            if isinstance(step, Status):
                return step
            is_over &= step
    return SUCCESS if is_over else None


def _of_volume(one: ChosenVolume, written: Versions, view: ClusterView) -> Status | bool:
    """Whether the volume is as it was chosen; False = that is still to be seen."""
    volume = view.index.storage.volume_as_seen(one.volume.name)
    if volume is None:
        return _failed(f"persistentvolume {one.volume.name} is gone")
    if is_older(volume.resource_version, written.get(volume.name, "")):
        return False
    if volume.claim is None or not volume.claim.uid:
        return _failed(f"ClaimRef got reset for pv {volume.name}")
    if volume.claim.uid != one.claim.uid:
        return _failed(f"persistentvolume {volume.name} is another claim's")
    return True


def _of_node(one: ChosenNode, choice: VolumeChoice, written: Versions, view: ClusterView) -> Status | bool:
    """Whether the claim still is for the node; False = that is still to be seen."""
    key = (one.claim.namespace, one.claim.name)
    claim = view.index.storage.claim_as_seen(key)
    if claim is None or claim.uid != one.claim.uid:
        return False  # see _of_claim
    if is_older(claim.resource_version, written.get("/".join(key), "")):
        return False
    if claim.selected_node != choice.node:
        if claim.selected_node is None:
            view.index.storage.failures.add(claim.uid, choice.node)
        return _failed(f"provisioning failed for PVC {claim.name}")
    return True


def _of_claim(chosen: VolumeClaimInfo, row: int, view: ClusterView) -> Status | bool:
    """Whether it is bound, to a volume within reach of the node."""
    storage = view.index.storage
    claim = storage.claim_as_seen((chosen.namespace, chosen.name))
    if claim is None or claim.uid != chosen.uid:
        return _failed(f"persistentvolumeclaim {chosen.name} is gone")
    volume = storage.volume_as_seen(claim.volume) if claim.volume else None
    if volume is None:
        return False  # or it is on its way
    if not reachable(volume, view)[row]:
        return _failed(f"persistentvolume {volume.name} cannot be reached from the node")
    return claim.is_bound


def _failed(reason: str) -> Status:
    return Status(Code.ERROR, NAME, f"binding volumes: {reason}")
