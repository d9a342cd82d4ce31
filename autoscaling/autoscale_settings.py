"""Settings of the service that acts on the forecast, `autoscale`: load ahead, nodes in time; and of the commands
`requests` and `capacity`.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Literal

from pydantic import Field

from base.setting_group import Duration, SettingGroup
from kube.leader_election.lease_options import LeaseOptions
from serving.server_settings import ServerOptions, ServingOptions


class ReplicaOptions(SettingGroup):
    """The load that services are expected to have shortly, for HorizontalPodAutoscalers and KEDA."""

    lead: Duration = Field(default=900, ge=60, le=4 * 3600)
    """How far ahead: the highest load between now and then counts. It should cover the start-up time of a pod, and of a
    node where nodes are added."""

    ceiling: float = Field(default=3, ge=1, le=100)
    """The expected load is at most this many times what is used now: a wrong forecast adds no more replicas."""

    window: Duration = Field(default=120, ge=30, le=1800)
    """What is used now is the mean over this time. At least four times the scrape interval."""

    fresh: Duration = Field(default=120, ge=1, le=3600)
    """A load that was worked out longer ago is not said any more: the autoscaler falls back on its other metrics."""

    resources: tuple[Literal["cpu", "memory", "disk", "network"], ...] = ("cpu",)
    """Resources of which the load ahead is worked out: one query each for the pods of the whole cluster."""


class BufferKind(Enum):
    """What buffers are written as."""

    AUTO = "auto"
    CAPACITY_BUFFER = "capacity-buffer"
    PLACEHOLDER_PODS = "placeholder-pods"


class BufferOptions(SettingGroup):
    """Room for the pods that autoscaled services are expected to add before a new node could be there."""

    enabled: bool = False
    """Whether buffers are written."""

    namespace: str = Field(default="forecast-scheduler-buffers", min_length=1)
    """Namespace of all objects that are written. It must exist, and hold nothing else."""

    kind: BufferKind = BufferKind.AUTO
    """What is written. auto: CapacityBuffer where the API server has them, otherwise placeholder pods."""

    lead: Duration = Field(default=600.0, ge=60, le=6 * 3600)
    """Time from the start of a new node until its first pod runs, with the intervals of the autoscaler and of this
    service."""

    margin: float = Field(default=0.5, ge=0, le=5)
    """Standard deviations of the forecast's error that a buffer covers, in addition to what is expected."""

    most_share: float = Field(default=0.2, gt=0, le=1)
    """All buffers together are at most this share of what the pods of all known services request now."""

    priority_class: str = Field(default="forecast-scheduler-buffer", min_length=1)
    """PriorityClass of placeholder pods. Its value must be negative, so that every real pod may take their place."""

    image: str = Field(default="registry.k8s.io/pause:3.10", min_length=1)
    """Image of placeholder pods. It is started and does nothing."""


class GuardOptions(SettingGroup):
    """Marks on nodes that the coming hours need. Autoscalers do not remove a node that bears them."""

    enabled: bool = False
    """Whether nodes are marked."""

    horizon: Duration = Field(default=4 * 3600.0, ge=1800, le=24 * 3600)
    """Time that the guard looks ahead. A mark names its end, and is renewed after half of this time. No autoscaler
    reads that end: only the guard, or `autoscale --release`, removes a mark."""

    margin: float = Field(default=1.0, ge=0, le=5)
    """Standard deviations of the forecast's error that the need covers, in addition to what is expected."""

    fill: float = Field(default=0.85, gt=0, le=1)
    """Share of a node's allocatable that pods fill in practice. What is left over is too small for another pod."""

    slack: float = Field(default=0.01, ge=0, le=0.5)
    """Marks begin once the need exceeds what runs by this share, and one more node is released only if the others hold
    the need and this share of it. It keeps marks from coming and going."""

    always: bool = False
    """Whether marks hold the need also while the coming hours need no more than runs now. Karpenter fills nodes
    completely in a descent, and orders some again an hour later; with this it does not, for some more node-hours."""

    most_share: float = Field(default=1.0, gt=0, le=1)
    """At most this share of the nodes is marked. Before a ramp all nodes are needed: with less, some of them are
    removed and ordered again."""


class AutoscaleLease(LeaseOptions):
    """Which of several replicas writes."""

    name: str = Field(default="forecast-scheduler-autoscaler", min_length=1)
    """Name of the Lease: the same for all replicas."""


class ExternalMetricsServing(ServerOptions):
    """Where the external metrics API listens: beside the autoscaler, on a port of its own."""

    port: int = Field(default=6443, ge=0, le=65_535)


class ExternalMetricsOptions(SettingGroup):
    """The external metrics API, on a port of its own: kube-apiserver is the only client (docs/use/autoscaling.md)."""

    enabled: bool = False
    """Serve it. It needs a certificate."""

    serving: ExternalMetricsServing = Field(default_factory=ExternalMetricsServing)

    client_config_map: str = "kube-system/extension-apiserver-authentication"
    """NAMESPACE/NAME of the ConfigMap in which kube-apiserver says by which authority, and under which names, its
    aggregation layer shows itself. Empty: `serving.client_ca` and `serving.client_names` here say so."""


class AutoscaleServing(ServingOptions):
    """Where `autoscale` listens, and who may ask."""

    group: ClassVar[str] = "autoscale.serving"

    port: int = Field(default=8892, ge=0, le=65_535)


class AutoscaleOptions(SettingGroup):
    """How `autoscale` runs. It has its scorer inside: the settings under `scorer` count, too, but for serving."""

    serving: AutoscaleServing = Field(default_factory=AutoscaleServing)

    every: Duration = Field(default=15, ge=1, le=600)
    """Time between two looks at what services use and will use."""

    act_every: Duration = Field(default=60, ge=1, le=3600)
    """Time between two looks at what is written: buffers, marks of nodes, requests of pods."""

    buffers: BufferOptions = Field(default_factory=BufferOptions)
    guard: GuardOptions = Field(default_factory=GuardOptions)
    replicas: ReplicaOptions = Field(default_factory=ReplicaOptions)
    external_metrics: ExternalMetricsOptions = Field(default_factory=ExternalMetricsOptions)
    leader_election: AutoscaleLease = Field(default_factory=AutoscaleLease)


class ResizeOptions(SettingGroup):
    """In-place resizes of running pods that ask for it by the label `forecast-scheduler.io/resize: "true"`."""

    enabled: bool = False
    """Resize the pods that carry the label, or whose namespace does. A process takes its resizes back as it ends; those
    of one that was killed `autoscale --release` takes back."""

    lead: Duration = Field(default=900, ge=0, le=14_400)
    """A pod gets the request of a half hour so long before that half hour begins."""

    hold: Duration = Field(default=7200, ge=0, le=86_400)
    """A pod shrinks only if it needs no more for so long after the lead time."""

    margin: float = Field(default=0.1, ge=0, le=2)
    """Added to the usage expected or measured now, as a share of it. A request never shrinks below that."""

    least_change: float = Field(default=0.1, ge=0, le=1)
    """Smaller changes are not made, as a share of the request before them."""

    parallel: int = Field(default=20, ge=1, le=1000)
    """Pods resized in one step."""

    service_share: float = Field(default=0.25, gt=0, le=1)
    """Share of the pods of a service resized in one step; at least one pod."""

    most: float = Field(default=1.0, ge=1, le=4)
    """A request grows up to this multiple of the pod's original request."""

    autoscaled: bool = False
    """Resize pods of services, too, whose number of replicas follows the load. A HorizontalPodAutoscaler that goes by
    utilization adds replicas when requests shrink, so that requests shrink again: use an `AverageValue` there."""

    memory: bool = False
    """Let memory requests grow, too. They never shrink below the original."""

    retry: Duration = Field(default=1800, ge=0, le=86_400)
    """Time until a resize that the node could not carry out is tried again."""


class RequestOptions(SettingGroup):
    """How much one pod of each service should request, by its forecast."""

    errors: float = Field(default=1.2, ge=0, le=6)
    """Standard deviations of a full node's forecast error that the requests on it cover together, in addition to the
    expected usage. Bursty pods bear most of it."""

    quiet_discount: float = Field(default=4.0, ge=0, le=100)
    """How little usage counts while the whole cluster is quiet: by (load of the cluster / its highest load) to this
    power. 0 counts all hours alike."""

    least_quantile: float = Field(default=0.5, ge=0, le=1)
    """A request for all hours is never below what this quantile of the pod's expected usage over
    the week needs."""

    carried: float = Field(default=0.6, ge=0, le=1)
    """Share of the need of disk, network and log that the CPU request stands for: kube-scheduler knows no requests of
    these. 0 = CPU requests stand for CPU alone."""

    memory_margin: float = Field(default=0.1, ge=0, le=2)
    """Added to the highest memory of the week, as a share of it."""

    clock_pays: float = Field(default=0.2, ge=0, le=1)
    """A service gets requests by hour class if these save at least this share of its requested core hours."""

    resize: ResizeOptions = Field(default_factory=ResizeOptions)


class CapacityOptions(SettingGroup):
    """What `capacity` asks for unless its options say otherwise. Days and seed are those of `replay`."""

    target: float = Field(default=0.001, ge=0, lt=1)
    """Share of node half hours that may be hot."""

    most: float = Field(default=10.0, ge=1, le=100)
    """The search ends at this multiple of the recorded nodes. A rule that needs more has no number."""

    sample_pods: int = Field(default=1000, ge=0)
    """From twice as many pods on, the search places a random sample of services with about so many pods, and scales
    its answer. 0 places all pods, whatever that takes."""
