"""The volume filters node by node, written straight from the Go code under pkg/scheduler/framework/plugins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kube.decoding.decoding import ApiObject
from kube.objects.constraints import NodeSelectorTerm, PodVolume
from kube.objects.objects import NodeInfo, PodInfo
from kube.objects.selectors import requirement_matches, selector_matches
from kube.objects.storage_objects import (
    BindingMode,
    ClaimInfo,
    CsiDriverInfo,
    CsiNodeInfo,
    StorageCapacityInfo,
    StorageClassInfo,
    VolumeAttachmentInfo,
    VolumeInfo,
)
from placement.index.csi_translation import MIGRATED, disk_volume, translated_terms, volume_in_csi

Reasons = dict[str, bool]
"""Why not, and whether eviction may help."""

ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)


@dataclass
class SlowCluster:
    nodes: dict[str, NodeInfo] = field(default_factory=dict)
    pods: list[PodInfo] = field(default_factory=list)
    volumes: dict[str, VolumeInfo] = field(default_factory=dict)
    claims: dict[tuple[str, str], ClaimInfo] = field(default_factory=dict)
    classes: dict[str, StorageClassInfo] = field(default_factory=dict)
    csi_nodes: dict[str, CsiNodeInfo] = field(default_factory=dict)
    drivers: dict[str, CsiDriverInfo] = field(default_factory=dict)
    capacities: list[StorageCapacityInfo] = field(default_factory=list)
    attachments: list[VolumeAttachmentInfo] = field(default_factory=list)

    @classmethod
    def of(cls, objects: Iterable[ApiObject]) -> SlowCluster:
        cluster = cls()
        for item in objects:
            match item:
                case NodeInfo():
                    cluster.nodes[item.name] = item
                case PodInfo():
                    cluster.pods.append(item)
                case VolumeInfo():
                    cluster.volumes[item.name] = item
                case ClaimInfo():
                    cluster.claims[item.namespace, item.name] = item
                case StorageClassInfo():
                    cluster.classes[item.name] = item
                case CsiNodeInfo():
                    cluster.csi_nodes[item.name] = item
                case CsiDriverInfo():
                    cluster.drivers[item.name] = item
                case StorageCapacityInfo():
                    cluster.capacities.append(item)
                case VolumeAttachmentInfo():
                    cluster.attachments.append(item)
        return cluster

    def everywhere(self, reason: str, *, preemptible: bool = False) -> dict[str, Reasons]:
        return {name: {reason: preemptible} for name in self.nodes}

    # volumerestrictions/volume_restrictions.go

    def volume_restrictions(self, pod: PodInfo) -> dict[str, Reasons]:
        once: set[str] = set()
        for volume in pod.volumes:
            if volume.claim and not volume.is_ephemeral:
                claim = self.claims.get((pod.namespace, volume.claim))
                if claim is None:
                    return self.everywhere(f'persistentvolumeclaim "{volume.claim}" not found')
                if "ReadWriteOncePod" in claim.access_modes:
                    once.add(claim.name)
        in_use = any(
            other.namespace == pod.namespace and volume.claim in once and not volume.is_ephemeral
            for other in self.pods
            if other.node in self.nodes
            for volume in other.volumes
        )
        found: dict[str, Reasons] = {}
        for name in self.nodes:
            others = [volume for other in self.pods if other.node == name for volume in other.volumes]
            if any(_conflict(mine, theirs) for mine in pod.volumes for theirs in others):
                found.setdefault(name, {})["node(s) had no available disk"] = True
            elif in_use:
                found.setdefault(name, {})[
                    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use "
                    "by another pod"
                ] = True
        return found

    # nodevolumelimits/csi.go

    def node_volume_limits(self, pod: PodInfo) -> dict[str, Reasons]:
        for volume in pod.volumes:
            if volume.disk:
                continue
            claim = self.claims.get((pod.namespace, volume.claim))
            if claim is None:
                return self.everywhere(
                    f'looking up PVC {pod.namespace}/{volume.claim}: persistentvolumeclaim "{volume.claim}" not found'
                )
            if volume.is_ephemeral and claim.owner_uid != pod.uid:
                return self.everywhere(
                    f"PVC {pod.namespace}/{volume.claim} was not created for pod {pod.namespace}/{pod.name} "
                    "(pod is not owner)"
                )
        found = {}
        for name in self.nodes:
            csi_node = self.csi_nodes.get(name)
            new = self.attachable(pod, csi_node)
            required = {
                driver for driver in new.values() if driver in self.drivers and self.drivers[driver].is_required
            }
            if missing := sorted(required - (csi_node.drivers if csi_node else frozenset())):
                found[name] = {f"{missing[0]} CSI driver is not installed on the node": True}
                continue
            if not new or csi_node is None or not csi_node.limits:
                continue
            attached: dict[str, str] = {}
            for other in self.pods:
                if other.node == name:
                    attached |= self.attachable(other, csi_node)
            for unique in attached:
                new.pop(unique, None)
            for attachment in self.attachments:
                volume_of = self.volumes.get(attachment.volume)
                if attachment.node == name and volume_of and volume_of.source.plugin == "kubernetes.io/csi":
                    attached[f"{attachment.attacher}/{volume_of.source.handle}"] = attachment.attacher
            for driver in set(new.values()):
                total = list(attached.values()).count(driver) + list(new.values()).count(driver)
                if driver in csi_node.limits and total > csi_node.limits[driver]:
                    found[name] = {"node(s) exceed max volume count": True}
        return found

    def attachable(self, pod: PodInfo, csi_node: CsiNodeInfo | None) -> dict[str, str]:
        found: dict[str, str] = {}
        for volume in pod.volumes:
            if volume.disk:
                attached = disk_volume(volume.disk) if csi_node else None
            else:
                claim = self.claims.get((pod.namespace, volume.claim))
                attached = self.driver_and_handle(claim, csi_node) if claim else None
            if attached:
                found[f"{attached[0]}/{attached[1]}"] = attached[0]
        return found

    def driver_and_handle(self, claim: ClaimInfo, csi_node: CsiNodeInfo | None) -> tuple[str, str] | None:
        volume = self.volumes.get(claim.volume)
        if volume is None:
            storage_class = self.classes.get(claim.storage_class)
            if storage_class is None:
                return None
            handle, provisioner = f"random-{claim.namespace}/{claim.name}", storage_class.provisioner
            if provisioner in MIGRATED:
                return (MIGRATED[provisioner], handle) if csi_node else None
            return (provisioner, handle) if provisioner else None
        if volume.source.plugin != "kubernetes.io/csi" and csi_node is None:
            return None
        return volume_in_csi(volume)

    # volumezone/volume_zone.go

    def volume_zone(self, pod: PodInfo) -> dict[str, Reasons]:
        topologies: list[tuple[str, set[str]]] = []
        for volume in pod.volumes:
            if volume.disk or volume.is_ephemeral:
                continue
            claim = self.claims.get((pod.namespace, volume.claim))
            if claim is None:
                return self.everywhere(f'persistentvolumeclaim "{volume.claim}" not found')
            if not claim.volume:
                if not claim.storage_class:
                    return self.everywhere("PersistentVolumeClaim had no pv name and storageClass name")
                storage_class = self.classes.get(claim.storage_class)
                if storage_class is None:
                    return self.everywhere(f'storageclass.storage.k8s.io "{claim.storage_class}" not found')
                if storage_class.binding_mode is BindingMode.WAIT_FOR_FIRST_CONSUMER:
                    continue
                return self.everywhere("PersistentVolume had no name")
            persistent = self.volumes.get(claim.volume)
            if persistent is None:
                return self.everywhere(f'persistentvolume "{claim.volume}" not found')
            for key in ZONE_LABELS:
                if key in persistent.labels:
                    zones = {zone.strip() for zone in persistent.labels[key].split("__")}
                    if "" not in zones:
                        topologies.append((key, zones))
        found = {}
        for name, node in self.nodes.items():
            if not any(key in node.labels for key in ZONE_LABELS):
                continue
            for key, zones in topologies:
                general = key.replace("failure-domain.beta", "topology")
                value = node.labels.get(key, node.labels.get(general))
                if value is None or value not in zones:
                    found[name] = {"node(s) had no available volume zone": False}
        return found

    # volumebinding/volume_binding.go, binder.go

    def volume_binding(self, pod: PodInfo) -> dict[str, Reasons]:
        bound, waiting, immediate = list[ClaimInfo](), list[ClaimInfo](), False
        for volume in pod.volumes:
            if volume.disk:
                continue
            claim = self.claims.get((pod.namespace, volume.claim))
            if claim is None and volume.is_ephemeral:
                return self.everywhere(
                    f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{volume.claim}"'
                )
            if claim is None:
                return self.everywhere(f'persistentvolumeclaim "{volume.claim}" not found')
            if claim.is_lost:
                return self.everywhere(
                    f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
                )
            if claim.terminating:
                return self.everywhere(f'persistentvolumeclaim "{claim.name}" is being deleted')
            if volume.is_ephemeral and claim.owner_uid != pod.uid:
                return self.everywhere(
                    f"PVC {pod.namespace}/{volume.claim} was not created for pod {pod.namespace}/{pod.name} "
                    "(pod is not owner)"
                )
            storage_class = self.classes.get(claim.storage_class)
            delayed = storage_class and storage_class.binding_mode is BindingMode.WAIT_FOR_FIRST_CONSUMER
            if claim.is_bound:
                bound.append(claim)
            elif delayed and not claim.volume:
                waiting.append(claim)
            else:
                immediate = True
        if immediate:
            return self.everywhere("pod has unbound immediate PersistentVolumeClaims")
        found = {}
        for node in self.nodes.values():
            if reasons := self.find_pod_volumes(bound, waiting, node):
                found[node.name] = dict.fromkeys(reasons, False)
        return found

    def find_pod_volumes(self, bound: Sequence[ClaimInfo], waiting: Sequence[ClaimInfo], node: NodeInfo) -> list[str]:
        reasons = []
        for claim in bound:
            volume = self.volumes.get(claim.volume)
            if volume is None:
                reasons.append("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
                break
            csi_node = self.csi_nodes.get(node.name)
            is_migrated = csi_node is not None and volume.source.plugin in csi_node.migrated_plugins
            terms = translated_terms(volume) if is_migrated else volume.node_terms
            if not _terms_match(terms, node.labels):
                reasons.append("node(s) didn't match PersistentVolume's node affinity")
                break
        to_match, to_provision = [], []
        for claim in waiting:
            if claim.selected_node is None:
                to_match.append(claim)
            elif claim.selected_node != node.name:
                return [*reasons, "node(s) didn't find available persistent volumes to bind"]
            else:
                to_provision.append(claim)
        chosen: set[str] = set()
        for claim in sorted(to_match, key=lambda one: one.requested or 0):
            volume = self.find_matching_volume(claim, node, chosen)
            if volume is None:
                to_provision.append(claim)
            else:
                chosen.add(volume.name)
        for claim in to_provision:
            storage_class = self.classes[claim.storage_class]
            if storage_class.provisioner in ("", "kubernetes.io/no-provisioner") or not _terms_match(
                storage_class.allowed_topologies or None, node.labels
            ):
                return [*reasons, "node(s) didn't find available persistent volumes to bind"]
            if not self.has_enough_capacity(claim, storage_class, node):
                return [*reasons, "node(s) did not have enough free storage"]
        return reasons

    def find_matching_volume(self, claim: ClaimInfo, node: NodeInfo, chosen: set[str]) -> VolumeInfo | None:
        smallest: VolumeInfo | None = None
        for name in sorted(self.volumes):
            volume = self.volumes[name]
            if name in chosen or volume.storage_class != claim.storage_class:
                continue
            is_mine = volume.claim is not None and (
                (volume.claim.namespace, volume.claim.name) == (claim.namespace, claim.name)
                and volume.claim.uid in ("", claim.uid)
            )
            if volume.claim is not None and not is_mine:
                continue
            if volume.capacity < (claim.requested or 0) or volume.mode != claim.mode or volume.terminating:
                continue
            if volume.attributes_class != claim.attributes_class:
                continue
            valid = _terms_match(volume.node_terms, node.labels)
            if is_mine:
                return volume if valid else None
            if not volume.is_available or not valid or not claim.access_modes <= volume.access_modes:
                continue
            if claim.selector is not None and not selector_matches(claim.selector, volume.labels):
                continue
            if smallest is None or smallest.capacity > volume.capacity:
                smallest = volume
        return smallest

    def has_enough_capacity(self, claim: ClaimInfo, storage_class: StorageClassInfo, node: NodeInfo) -> bool:
        driver = self.drivers.get(storage_class.provisioner)
        if claim.requested is None or driver is None or not driver.reports_capacity:
            return True
        return any(
            capacity.storage_class == storage_class.name
            and capacity.largest is not None
            and math.ceil(capacity.largest) >= math.ceil(claim.requested)
            and selector_matches(capacity.topology, node.labels)
            for capacity in self.capacities
        )


def _conflict(mine: PodVolume, theirs: PodVolume) -> bool:
    if not mine.disk or not theirs.disk or mine.disk[0] != theirs.disk[0]:
        return False
    read_only = mine.disk_read_only and theirs.disk_read_only
    match mine.disk[0]:
        case "gce" | "iscsi":
            return mine.disk == theirs.disk and not read_only
        case "aws":
            return mine.disk == theirs.disk
        case "rbd":
            return mine.disk[1:3] == theirs.disk[1:3] and bool({*mine.disk[3:]} & {*theirs.disk[3:]}) and not read_only
        case _:
            return False


def _terms_match(terms: Sequence[NodeSelectorTerm] | None, labels: Mapping[str, str]) -> bool:
    return terms is None or any(
        term.expressions and all(requirement_matches(one, labels) for one in term.expressions) for term in terms
    )
