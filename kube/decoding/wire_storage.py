"""The fields of storage objects that are read, as msgspec types (see wire.py)."""

from __future__ import annotations

import msgspec

from kube.decoding.wire import Metadata
from kube.decoding.wire_base import Amounts, Text, Wire
from kube.decoding.wire_scheduling import LabelSelectorJson, NodeSelectorJson

Quantity = str | int | float


class CsiSource(Wire):
    driver: Text = ""
    volume_handle: Text = ""


class VolumeIdSource(Wire):
    """awsElasticBlockStore, cinder, portworxVolume."""

    volume_id: Text = msgspec.field(name="volumeID", default="")


class GceSource(Wire):
    pd_name: Text = ""


class AzureDiskSource(Wire):
    disk_uri: Text = msgspec.field(name="diskURI", default="")
    kind: Text | None = None


class ClaimReferenceJson(Wire):
    namespace: Text = ""
    name: Text = ""
    uid: Text | None = None


class VolumeNodeAffinityJson(Wire):
    required: NodeSelectorJson | None = None


class VolumeSpecJson(Wire):
    """spec of a PersistentVolume."""

    capacity: Amounts | None = None
    access_modes: list[Text] | None = None
    storage_class_name: Text | None = None
    volume_mode: Text | None = None
    volume_attributes_class_name: Text | None = None
    claim_ref: ClaimReferenceJson | None = None
    node_affinity: VolumeNodeAffinityJson | None = None
    csi: CsiSource | None = None
    aws_elastic_block_store: VolumeIdSource | None = None
    azure_disk: AzureDiskSource | None = None
    cinder: VolumeIdSource | None = None
    gce_persistent_disk: GceSource | None = None
    portworx_volume: VolumeIdSource | None = None


class PhaseJson(Wire):
    phase: Text | None = None


class VolumeObjectJson(Wire):
    """A PersistentVolume."""

    metadata: Metadata
    spec: VolumeSpecJson | None = None
    status: PhaseJson | None = None


class ClaimResourcesJson(Wire):
    requests: Amounts | None = None


class VolumeClaimSpecJson(Wire):
    """spec of a PersistentVolumeClaim."""

    access_modes: list[Text] | None = None
    resources: ClaimResourcesJson | None = None
    selector: LabelSelectorJson | None = None
    storage_class_name: Text | None = None
    volume_attributes_class_name: Text | None = None
    volume_mode: Text | None = None
    volume_name: Text | None = None


class ClaimObjectJson(Wire):
    """A PersistentVolumeClaim."""

    metadata: Metadata
    spec: VolumeClaimSpecJson | None = None
    status: PhaseJson | None = None


class TopologyLabelJson(Wire):
    key: Text
    values: list[Text] | None = None


class TopologyTermJson(Wire):
    match_label_expressions: list[TopologyLabelJson] | None = None


class StorageClassJson(Wire):
    """A StorageClass."""

    metadata: Metadata
    provisioner: Text = ""
    volume_binding_mode: Text | None = None
    allowed_topologies: list[TopologyTermJson] | None = None


class AllocatableJson(Wire):
    count: int | None = None


class CsiNodeDriverJson(Wire):
    name: Text
    allocatable: AllocatableJson | None = None


class CsiNodeSpecJson(Wire):
    drivers: list[CsiNodeDriverJson] | None = None


class CsiNodeJson(Wire):
    """A CSINode."""

    metadata: Metadata
    spec: CsiNodeSpecJson | None = None


class CsiDriverSpecJson(Wire):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriverJson(Wire):
    """A CSIDriver."""

    metadata: Metadata
    spec: CsiDriverSpecJson | None = None


class StorageCapacityJson(Wire):
    """A CSIStorageCapacity."""

    metadata: Metadata
    storage_class_name: Text = ""
    node_topology: LabelSelectorJson | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class AttachmentSourceJson(Wire):
    persistent_volume_name: Text | None = None


class AttachmentSpecJson(Wire):
    attacher: Text = ""
    node_name: Text = ""
    source: AttachmentSourceJson | None = None


class VolumeAttachmentJson(Wire):
    """A VolumeAttachment."""

    metadata: Metadata
    spec: AttachmentSpecJson | None = None
