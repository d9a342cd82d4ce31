"""JSON fields of storage objects (wire_storage.py) -> what of them matters (storage_objects.py)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from kube.decoding import wire, wire_base, wire_storage
from kube.decoding.constraint_decoding import label_selector, node_selector_term
from kube.decoding.shared_json import string_map
from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from kube.objects.quantity import parse_quantity
from kube.objects.storage_objects import (
    BindingMode,
    ClaimReference,
    CsiDriverInfo,
    CsiNodeInfo,
    StorageCapacityInfo,
    StorageClassInfo,
    VolumeAttachmentInfo,
    VolumeClaimInfo,
    VolumeInfo,
    VolumeSource,
)

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"

_ANNOTATIONS: Final = (_CLASS_ANNOTATION, _BIND_COMPLETED, _SELECTED_NODE, _MIGRATED_PLUGINS)

_BINDING_MODES: Final = {mode.value: mode for mode in BindingMode}

_string_map_decoder = msgspec.json.Decoder(wire_base.StringMap | None)


def volume_info(volume: wire_storage.VolumeObjectJson) -> VolumeInfo:
    """A PersistentVolume."""
    metadata, spec = volume.metadata, volume.spec or wire_storage.VolumeSpecJson()
    required = spec.node_affinity.required if spec.node_affinity else None
    reference = spec.claim_ref
    return VolumeInfo(
        name=sys.intern(metadata.name),
        labels=string_map(metadata.labels),
        # The annotation wins, as in GetPersistentVolumeClass (component-helpers/storage/volume/helpers.go).
        storage_class=_annotations(metadata).get(_CLASS_ANNOTATION, sys.intern(spec.storage_class_name or "")),
        capacity=_storage(spec.capacity) or 0.0,
        access_modes=_modes(spec.access_modes),
        mode=spec.volume_mode or "Filesystem",
        attributes_class=spec.volume_attributes_class_name or "",
        claim=None if reference is None else ClaimReference(reference.namespace, reference.name, reference.uid or ""),
        is_available=volume.status is not None and volume.status.phase == "Available",
        terminating=metadata.deletion_timestamp is not None,
        node_terms=None if required is None else tuple(map(node_selector_term, required.node_selector_terms or ())),
        source=_source(spec),
        resource_version=metadata.resource_version or "",
    )


def claim_info(claim: wire_storage.ClaimObjectJson) -> VolumeClaimInfo:
    """A PersistentVolumeClaim."""
    metadata, spec = claim.metadata, claim.spec or wire_storage.VolumeClaimSpecJson()
    annotations = _annotations(metadata)
    return VolumeClaimInfo(
        namespace=sys.intern(metadata.namespace or "default"),
        name=sys.intern(metadata.name),
        uid=metadata.uid or "",
        owner_uid=next((owner.uid for owner in metadata.owner_references or () if owner.controller), ""),
        storage_class=annotations.get(_CLASS_ANNOTATION, sys.intern(spec.storage_class_name or "")),
        access_modes=_modes(spec.access_modes),
        requested=_storage(spec.resources.requests if spec.resources else None),
        mode=spec.volume_mode or "Filesystem",
        attributes_class=spec.volume_attributes_class_name or "",
        selector=label_selector(spec.selector),
        volume=sys.intern(spec.volume_name or ""),
        is_bound=bool(spec.volume_name) and _BIND_COMPLETED in annotations,
        is_lost=claim.status is not None and claim.status.phase == "Lost",
        terminating=metadata.deletion_timestamp is not None,
        selected_node=annotations.get(_SELECTED_NODE),
        resource_version=metadata.resource_version or "",
    )


def storage_class_info(storage_class: wire_storage.StorageClassJson) -> StorageClassInfo:
    """A StorageClass."""
    return StorageClassInfo(
        name=sys.intern(storage_class.metadata.name),
        provisioner=sys.intern(storage_class.provisioner),
        binding_mode=_BINDING_MODES.get(storage_class.volume_binding_mode or ""),
        allowed_topologies=tuple(
            NodeSelectorTerm(
                tuple(
                    Requirement(label.key, Operator.IN, tuple(label.values or ()))
                    for label in term.match_label_expressions or ()
                )
            )
            for term in storage_class.allowed_topologies or ()
        ),
    )


def csi_node_info(csi_node: wire_storage.CsiNodeJson) -> CsiNodeInfo:
    """A CSINode."""
    drivers = (csi_node.spec.drivers if csi_node.spec else None) or ()
    plugins = _annotations(csi_node.metadata).get(_MIGRATED_PLUGINS, "")
    return CsiNodeInfo(
        name=sys.intern(csi_node.metadata.name),
        limits={
            sys.intern(driver.name): max(-(2**31), min(driver.allocatable.count, 2**31))
            for driver in drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        },
        migrated_plugins=frozenset(map(sys.intern, plugins.split(","))) if plugins else frozenset(),
        drivers=frozenset(sys.intern(driver.name) for driver in drivers),
    )


def csi_driver_info(driver: wire_storage.CsiDriverJson) -> CsiDriverInfo:
    """A CSIDriver."""
    spec = driver.spec or wire_storage.CsiDriverSpecJson()
    return CsiDriverInfo(
        name=sys.intern(driver.metadata.name),
        reports_capacity=bool(spec.storage_capacity),
        is_required=bool(spec.prevent_pod_scheduling_if_missing),
    )


def capacity_info(capacity: wire_storage.StorageCapacityJson) -> StorageCapacityInfo:
    """A CSIStorageCapacity; the size of the largest volume is more precise than the sum, where it is known."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return StorageCapacityInfo(
        namespace=sys.intern(capacity.metadata.namespace or "default"),
        name=capacity.metadata.name,
        storage_class=sys.intern(capacity.storage_class_name),
        largest=None if limit is None else parse_quantity(limit),
        topology=label_selector(capacity.node_topology),
    )


def attachment_info(attachment: wire_storage.VolumeAttachmentJson) -> VolumeAttachmentInfo:
    """A VolumeAttachment."""
    spec = attachment.spec or wire_storage.AttachmentSpecJson()
    volume = spec.source.persistent_volume_name if spec.source else None
    return VolumeAttachmentInfo(
        attachment.metadata.name, sys.intern(spec.node_name), sys.intern(spec.attacher), sys.intern(volume or "")
    )


def _annotations(metadata: wire.Metadata) -> Mapping[str, str]:
    """Those that are read; others can be large."""
    piece = bytes(metadata.annotations)
    if not any(key.rpartition("/")[2].encode() in piece for key in _ANNOTATIONS):  # JSON may write the slash as \/
        return {}
    found = _string_map_decoder.decode(piece) or {}
    return {key: sys.intern(found[key] or "") for key in _ANNOTATIONS if key in found}


def _storage(amounts: wire_base.Amounts | None) -> float | None:
    amount = (amounts or {}).get("storage")
    return None if amount is None else parse_quantity(amount)


def _modes(modes: list[str] | None) -> frozenset[str]:
    return frozenset(map(sys.intern, modes or ()))


def _source(spec: wire_storage.VolumeSpecJson) -> VolumeSource:
    """Only what counts against limits of nodes: CSI, and plugins that were replaced by CSI drivers."""
    if (csi := spec.csi) is not None:
        return VolumeSource("kubernetes.io/csi", sys.intern(csi.driver), csi.volume_handle)
    if (aws := spec.aws_elastic_block_store) is not None:
        return VolumeSource("kubernetes.io/aws-ebs", handle=aws.volume_id)
    if (gce := spec.gce_persistent_disk) is not None:
        return VolumeSource("kubernetes.io/gce-pd", handle=gce.pd_name)
    if (azure := spec.azure_disk) is not None and (azure.kind or "Managed").lower() == "managed":
        return VolumeSource("kubernetes.io/azure-disk", handle=azure.disk_uri)
    if (cinder := spec.cinder) is not None:
        return VolumeSource("kubernetes.io/cinder", handle=cinder.volume_id)
    if (portworx := spec.portworx_volume) is not None:
        return VolumeSource("kubernetes.io/portworx-volume", handle=portworx.volume_id)
    return VolumeSource()
