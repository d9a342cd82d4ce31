"""Volumes of plugins within Kubernetes that CSI drivers took over: under which driver and handle they count, and where.

Source: k8s.io/csi-translation-lib/plugins, of the five whose migration is on in
framework/plugins/nodevolumelimits/utils.go. Volumes whose description cannot be translated count nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from kube.objects.storage_objects import StorageClassInfo, VolumeInfo

AttachedVolume = tuple[str, str]
"""CSI driver, and the handle of the volume there."""

CSI: Final = "kubernetes.io/csi"

MIGRATED: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""CSI driver by the plugin it replaces."""

_NOT_MIGRATED: Final = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})

_PLUGIN_OF_DISK: Final = {
    "aws": "kubernetes.io/aws-ebs",
    "azure": "kubernetes.io/azure-disk",
    "cinder": "kubernetes.io/cinder",
    "gce": "kubernetes.io/gce-pd",
    "portworx": "kubernetes.io/portworx-volume",
}

_TOPOLOGY_KEYS: Final = {
    "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
    "kubernetes.io/cinder": "topology.cinder.csi.openstack.org/zone",
    "kubernetes.io/gce-pd": "topology.gke.io/zone",
}

_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"


def volume_in_csi(volume: VolumeInfo) -> AttachedVolume | None:
    """How a PersistentVolume counts on a node with a CSINode; None = it does not."""
    source = volume.source
    if source.plugin == CSI:
        return _counted(source.driver, source.handle)
    if source.plugin == "kubernetes.io/gce-pd":
        where = _gce_place(volume.labels.get(_BETA_ZONE) or volume.labels.get(_ZONE, ""))
        return None if where is None else (MIGRATED[source.plugin], _gce_handle(where, source.handle))
    return _in_csi(source.plugin, source.handle)


def disk_volume(disk: tuple[str, ...]) -> AttachedVolume | None:
    """How a disk named in a pod counts (PodVolume.disk)."""
    plugin = _PLUGIN_OF_DISK.get(disk[0])
    if plugin == "kubernetes.io/gce-pd":
        return MIGRATED[plugin], _gce_handle("zones/UNSPECIFIED", disk[1])
    return None if plugin is None else _in_csi(plugin, disk[1])


def provisioner_driver(storage_class: StorageClassInfo) -> str:
    """The driver that will make the volumes of a class, '' = none that counts."""
    provisioner = storage_class.provisioner
    return "" if provisioner in _NOT_MIGRATED else MIGRATED.get(provisioner, provisioner)


def translated_terms(volume: VolumeInfo) -> tuple[NodeSelectorTerm, ...] | None:
    """Node terms on nodes where its plugin is migrated (translateTopologyFromInTreeToCSI in in_tree_volume.go)."""
    key, terms = _TOPOLOGY_KEYS.get(volume.source.plugin), volume.node_terms
    if key is None:
        return terms
    named = {one.key for term in terms or () for one in term.expressions}
    if _ZONE in named:
        is_beta = False
    elif _BETA_ZONE in named:
        is_beta = True
    else:
        is_beta = _ZONE not in volume.labels and _BETA_ZONE in volume.labels
    zone = _BETA_ZONE if is_beta else _ZONE
    if any(one.values for term in terms or () for one in term.expressions if one.key == zone):
        terms = _renamed(terms, zone, key)
    elif zones := sorted({part.strip() for part in volume.labels.get(zone, "").split("__")} - {""}):
        further = Requirement(key, Operator.IN, tuple(zones))
        terms = tuple(
            replace(term, expressions=(*term.expressions, further)) for term in terms or (NodeSelectorTerm(),)
        )
    return _renamed(terms, _BETA_REGION, _REGION) if is_beta else terms


def _renamed(terms: tuple[NodeSelectorTerm, ...] | None, old: str, new: str) -> tuple[NodeSelectorTerm, ...] | None:
    if terms is None:
        return None
    return tuple(
        replace(
            term,
            expressions=tuple(replace(one, key=new) if one.key == old else one for one in term.expressions),
        )
        for term in terms
    )


def _in_csi(plugin: str, handle: str) -> AttachedVolume | None:
    if plugin == "kubernetes.io/aws-ebs":
        handle = _ebs_handle(handle)
    return _counted(MIGRATED.get(plugin, ""), handle)


def _counted(driver: str, handle: str) -> AttachedVolume | None:
    return (driver, handle) if driver and handle else None


def _ebs_handle(volume_id: str) -> str:
    """KubernetesVolumeIDToEBSVolumeID: aws://zone/vol-1 is vol-1; '' = it is no volume of that kind."""
    if not volume_id.startswith("aws://"):
        return volume_id
    try:
        handle = urlsplit(volume_id).path.strip("/")
    except ValueError:
        return ""
    return handle if handle.startswith("vol-") and "/" not in handle else ""


def _gce_handle(place: str, disk: str) -> str:
    return f"projects/UNSPECIFIED/{place}/disks/{disk}"


def _gce_place(zones: str) -> str | None:
    """Of one zone, or the region of several; None = they are not of one region."""
    found = zones.split("__")
    if len(found) == 1:
        return f"zones/{zones or 'UNSPECIFIED'}"
    parts = [zone.split("-") for zone in found]
    regions = {"-".join(part[:2]) for part in parts}
    if len(regions) != 1 or any(len(part) != 3 for part in parts):
        return None
    return f"regions/{regions.pop()}"
