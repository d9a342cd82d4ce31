"""What of an API object matters to placement, in base units: cores, bytes, counts, unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from forecast.service_key import Owner
from kube.objects.constraints import UNCONSTRAINED, HostPort, PodConstraints, PodVolume

ANNOTATION_PREFIX = "forecast-scheduler.io/"

GATE = ANNOTATION_PREFIX + "advice"
"""Name of the scheduling gate that holds a pod until it is advised on."""

RESERVATION = f"{ANNOTATION_PREFIX}reservation"
"""Annotation of a bound pod: UID of the Reservation that it took over, written together with its node."""

SHARING_PLUGIN_PREFIX = "ALIYUN_COM_GPU_MEM_"
"""Prefix of the annotations from which the device plugin for shared GPUs reads which card a pod has."""


class QosClass(IntEnum):
    """Who is evicted last to first. https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/"""

    GUARANTEED = 0
    BURSTABLE = 1
    BEST_EFFORT = 2


class PodPhase(Enum):
    """status.phase of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Taint:
    """spec.taints of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeImage:
    """status.images[] of a node: an image by all its names, and its size in bytes."""

    names: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A Node.

    annotations           : ours only
    capacity, allocatable : by Kubernetes resource name
    addresses             : InternalIP and Hostname, as metrics may name the node
    features              : what its kubelet declares to support (status.declaredFeatures)
    """

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool
    capacity: Mapping[str, float]
    allocatable: Mapping[str, float]
    addresses: tuple[str, ...] = ()
    images: tuple[NodeImage, ...] = ()
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PodResourceClaim:
    """spec.resourceClaims[] of a pod, by its name there. claim: the ResourceClaim; '' = it is still to be made from its
    template; None = none is needed after all."""

    name: str
    claim: str | None


@dataclass(frozen=True, slots=True)
class DeviceAsk:
    """What one container requests of an extended resource, which a DeviceClass may offer.

    number      : of the container, init containers counted first
    place       : of the resource among all that the container requests, by name
    is_starting : an init container, which ends before others run
    """

    container: str
    number: int
    resource: str
    place: int
    count: int
    is_starting: bool


@dataclass(frozen=True, slots=True)
class ContainerRequests:
    """What the containers of a pod request one by one, by Kubernetes resource name.

    starting : init containers, which run one after the other before the rest
    running  : sidecars and containers, which run together
    """

    starting: tuple[Mapping[str, float], ...]
    running: tuple[Mapping[str, float], ...]


@dataclass(frozen=True, slots=True)
class PodInfo:
    """A Pod.

    node             : empty = not bound yet
    annotations      : ours, those of shared GPUs, and those of eviction_annotations.py
    owner            : its controller, NO_OWNER if it has none
    requests         : what the pod as a whole requests, by Kubernetes resource name
    nonzero_requests : CPU cores and memory bytes as LeastAllocated counts them, containers without a request included
    terminating      : it is being deleted
    started          : when its first container started; None = not yet
    is_preparing     : it has not started, and one of its init containers runs or has run
    images           : of its init containers, containers and image volumes, once each time they are named
    image_volumes    : how many of these, the last, are of volumes
    gates            : names of its scheduling gates; while there are any, no scheduler places it
    may_preempt      : its preemptionPolicy is not Never
    nominated_node   : where room is being made for it; '' = nowhere
    finished         : of a pod whose phase says that it is over: when its last container ended; None = unknown
    status_reason    : reason of its phase, such as Evicted; '' = none given
    uses_host        : it takes part in the network, processes or IPC of its node, or mounts what is not everywhere:
                       volumes other than those in `volumes`, images, and what the API server has itself
    resource_claims  : devices that it asks for by claims of resource.k8s.io
    containers       : None = it has one container, and that requests all that the pod does
    device_asks      : what its containers request of extended resources
    needed_features  : what a node must declare to run it
    scheduling_group : spec.schedulingGroup.podGroupName, a PodGroup of scheduling.k8s.io; '' = it names none
    scheduled        : when it was bound to its node; None = it does not say
    ready            : since when it is ready; None = it is not
    local_volumes    : names of its volumes whose content stays on the node: hostPath, and emptyDir but in memory
    shares_host      : it takes part in the network, processes or IPC of its node
    stands_in        : it is no pod of the API server, but holds the room of a Reservation (placement/reservations):
                       nothing may evict, delete or write it. Never decoded: no annotation of a pod can claim it
    set_aside        : what its kubelet has set aside for it, whatever its spec asks for by now; None = all that it
                       requests
    acknowledged     : its kubelet has said something of it
    """

    uid: str
    namespace: str
    name: str
    node: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Owner
    owner_uid: str
    requests: Mapping[str, float]
    nonzero_requests: tuple[float, float]
    limits: Mapping[str, float]
    qos: QosClass
    phase: PodPhase
    terminating: bool
    started: float | None
    created: float
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    constraints: PodConstraints = UNCONSTRAINED
    host_ports: tuple[HostPort, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    images: tuple[str, ...] = ()
    image_volumes: int = 0
    gates: tuple[str, ...] = ()
    may_preempt: bool = True
    nominated_node: str = ""
    finished: float | None = None
    status_reason: str = ""
    uses_host: bool = False
    is_preparing: bool = False
    resource_claims: tuple[PodResourceClaim, ...] = ()
    containers: ContainerRequests | None = None
    device_asks: tuple[DeviceAsk, ...] = ()
    needed_features: tuple[str, ...] = ()
    scheduling_group: str = ""
    scheduled: float | None = None
    ready: float | None = None
    local_volumes: tuple[str, ...] = ()
    shares_host: bool = False
    stands_in: bool = False
    set_aside: Mapping[str, float] | None = None
    acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaSetInfo:
    """A ReplicaSet's metadata.

    revision         : which of its Deployment's; the highest is the one being rolled out
    desired_replicas : of its Deployment
    """

    uid: str
    namespace: str
    name: str
    owner: Owner
    revision: int | None
    desired_replicas: int | None
    created: float


@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """A Namespace: its labels choose the pods that affinity terms mean. annotations: ours only."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
