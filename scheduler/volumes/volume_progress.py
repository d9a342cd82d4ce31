"""How far the volumes of a pod have come: bound all, failed, or not yet.

Source: checkBindings in framework/plugins/volumebinding/binder.go. What the watch has brought counts, not what is
assumed, and only from the state on that our own writing led to.
"""

from __future__ import annotations

from collections.abc import Mapping

from kube.binding.binding_steps import BindingResult, BindingVerdict
from kube.objects.resource_version import is_older
from kube.objects.storage_objects import ClaimInfo
from placement.filters.filter import ClusterView
from placement.filters.volume_binding import reachable
from placement.status import SUCCESS, Code, Status
from scheduler.binding.outcome import bind_status
from scheduler.volumes.volume_writes import ChosenNode, ChosenVolume, VolumeChoice

NAME = "VolumeBinding"

Versions = Mapping[str, str]
"""resourceVersions of what we have written, by "volume name" or "namespace/name" of the claim."""


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
        failures = view.index.storage.failures
        if claim.selected_node is None and failures is not None:
            failures.add(claim.uid, choice.node)
        return _failed(f"provisioning failed for PVC {claim.name}")
    return True


def _of_claim(chosen: ClaimInfo, row: int, view: ClusterView) -> Status | bool:
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
