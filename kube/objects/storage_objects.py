"""What of volumes, claims, classes and drivers decides where a pod with storage may go. Sizes in bytes.

Source: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from kube.objects.constraints import LabelSelector, NodeSelectorTerm


class BindingMode(Enum):
    """volumeBindingMode of a class: when its claims get their volumes."""

    IMMEDIATE = "Immediate"
    WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class VolumeSource:
    """Where the data of a volume is.

    plugin : kubernetes.io/csi, or the plugin within Kubernetes as in kubernetes.io/aws-ebs; '' = none that limits
    driver : of CSI, else ''
    handle : what identifies the volume there
    """

    plugin: str = ""
    driver: str = ""
    handle: str = ""


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """The claim a volume is bound to or kept for. uid: '' = any claim of that name."""

    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class VolumeInfo:
    """A PersistentVolume.

    capacity         : bytes
    access_modes     : ReadWriteOnce and so on
    mode             : Filesystem or Block
    attributes_class : name of its VolumeAttributesClass, '' = none
    is_available     : its phase is Available
    node_terms       : one of them must match the labels of the node; None = any node
    resource_version : of the object, for its writer; says nothing about the volume
    """

    name: str
    labels: Mapping[str, str]
    storage_class: str = ""
    capacity: float = 0.0
    access_modes: frozenset[str] = frozenset()
    mode: str = "Filesystem"
    attributes_class: str = ""
    claim: ClaimReference | None = None
    is_available: bool = False
    terminating: bool = False
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    source: VolumeSource = VolumeSource()
    resource_version: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class VolumeClaimInfo:
    """A PersistentVolumeClaim.

    owner_uid        : UID of its controller; of an ephemeral volume's claim this is the pod
    requested        : bytes; None = not said
    volume           : name of the volume it is bound or to be bound to, '' = none
    is_bound         : volume and claim have been bound completely
    is_lost          : its volume is gone
    selector         : of volumes by label, None = any
    selected_node    : the node it is provisioned for, None = not yet
    resource_version : of the object, for its writer; says nothing about the claim
    """

    namespace: str
    name: str
    uid: str = ""
    owner_uid: str = ""
    storage_class: str = ""
    access_modes: frozenset[str] = frozenset()
    requested: float | None = None
    mode: str = "Filesystem"
    attributes_class: str = ""
    selector: LabelSelector | None = None
    volume: str = ""
    is_bound: bool = False
    is_lost: bool = False
    terminating: bool = False
    selected_node: str | None = None
    resource_version: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class StorageClassInfo:
    """A StorageClass.

    binding_mode       : None = not said, which the API server does not let happen
    allowed_topologies : one of these must match the labels of the node; () = any node
    """

    name: str
    provisioner: str
    binding_mode: BindingMode | None = BindingMode.IMMEDIATE
    allowed_topologies: tuple[NodeSelectorTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class CsiNodeInfo:
    """A CSINode, which has the name of its node.

    limits           : volumes that can be attached, by driver; drivers without a limit are missing
    migrated_plugins : plugins within Kubernetes whose volumes this node leaves to CSI drivers
    drivers          : all that the node has, with a limit or without
    """

    name: str
    limits: Mapping[str, int]
    migrated_plugins: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CsiDriverInfo:
    """A CSIDriver.

    reports_capacity : volumes go only where a CSIStorageCapacity says there is room
    is_required      : volumes go only to nodes that have the driver (preventPodSchedulingIfMissing); the API server
                       keeps the field only where its feature gate VolumeLimitScaling is on
    """

    name: str
    reports_capacity: bool = False
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class StorageCapacityInfo:
    """A CSIStorageCapacity.

    largest  : bytes of the largest volume, None = not known, which is no room
    topology : nodes that have access, None = none
    """

    namespace: str
    name: str
    storage_class: str
    largest: float | None
    topology: LabelSelector | None


@dataclass(frozen=True, slots=True)
class VolumeAttachmentInfo:
    """A VolumeAttachment. volume: name of a PersistentVolume, '' = another kind of volume."""

    name: str
    node: str
    attacher: str
    volume: str


StorageObject = (
    VolumeInfo
    | VolumeClaimInfo
    | StorageClassInfo
    | CsiNodeInfo
    | CsiDriverInfo
    | StorageCapacityInfo
    | VolumeAttachmentInfo
)
