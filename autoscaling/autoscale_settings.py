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
    """Time ahead of which the highest load counts: start-up of a pod, and of a node where nodes are added."""

    ceiling: float = Field(default=3, ge=1, le=100)
    """Multiple of the load now that the expected load never exceeds."""

    window: Duration = Field(default=120, ge=30, le=1800)
    """Time over which the load now is averaged; at least four scrape intervals."""

    resources: tuple[Literal["cpu", "memory", "disk", "network"], ...] = ("cpu",)
    """Resources whose load ahead is computed; each costs one query for all pods."""

    fresh: ClassVar[float] = 120.0
    """Seconds after which a load is stale and not served any more: the autoscaler falls back on its other metrics."""


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
    """Existing namespace for the buffers, which holds nothing else."""

    kind: BufferKind = BufferKind.AUTO
    """Objects that are written. auto: CapacityBuffers where the API server has them, else placeholder pods."""

    lead: Duration = Field(default=600.0, ge=60, le=6 * 3600)
    """Time from the order of a new node until its first pod runs."""

    most_share: float = Field(default=0.2, gt=0, le=1)
    """Share of what all known pods request now that all buffers together never exceed."""

    priority_class: str = Field(default="forecast-scheduler-buffer", min_length=1)
    """PriorityClass of placeholder pods; its value is negative, so that real pods take their place."""

    image: str = Field(default="registry.k8s.io/pause:3.10", min_length=1)
    """Image of placeholder pods, which does nothing."""

    margin: ClassVar[float] = 0.5
    """Standard deviations of the forecast's error that a buffer covers: what benchmarks.nodes_in_time chose."""


class GuardOptions(SettingGroup):
    """Marks on nodes that the coming hours need. Autoscalers do not remove a node that bears them."""

    enabled: bool = False
    """Whether nodes are marked."""

    always: bool = False
    """Keep marks also while the load falls: Karpenter then orders fewer nodes anew, for some more node hours."""

    most_share: float = Field(default=1.0, gt=0, le=1)
    """Share of the nodes that are marked at most. With less than 1, nodes that a ramp needs are removed."""

    horizon: ClassVar[float] = 4 * 3600.0
    """Seconds that the guard looks ahead. A mark names its end, and is renewed after half of this time.

    No autoscaler reads that end: only the guard, or `autoscale --release`, removes a mark."""

    margin: ClassVar[float] = 1.0
    """Standard deviations of the forecast's error that the need covers, in addition to what is expected."""

    fill: ClassVar[float] = 0.85
    """Share of a node's allocatable that pods fill in practice. What is left over is too small for another pod."""

    slack: ClassVar[float] = 0.01
    """Marks begin once the need exceeds what runs by this share, and one more node is released only if the others hold
    the need and this share of it. It keeps marks from coming and going."""


class MinReplicasOptions(SettingGroup):
    """`minReplicas` of HorizontalPodAutoscalers, raised ahead of the load where no metrics adapter is."""

    enabled: bool = False
    """Raise `minReplicas` of HorizontalPodAutoscalers that have the label, or whose namespace has it."""

    most_share: float = Field(default=0.2, gt=0, le=1)
    """Share of what all known pods request now that replicas added ahead of the load never exceed together."""

    hold: ClassVar[float] = 600.0
    """Seconds for which the highest wish counts before `minReplicas` is lowered: a dip of the load or of what is
    measured takes no replica away."""

    at_once: ClassVar[int] = 60
    """Writes in one turn, a minute: one a second, and a thousand autoscalers within the lead time."""

    yields: ClassVar[float] = 24 * 3600.0
    """Seconds for which an autoscaler is left alone once others changed what we wrote: until the next day's ramp."""


class AutoscaleLease(LeaseOptions):
    """Which of several replicas writes."""

    name: str = Field(default="forecast-scheduler-autoscaler", min_length=1)
    """Name of the Lease."""


class ExternalMetricsServing(ServerOptions):
    """Where the external metrics API listens: beside the autoscaler, on a port of its own."""

    port: int = Field(default=6443, ge=0, le=65_535)


class ExternalMetricsOptions(SettingGroup):
    """The external metrics API, on a port of its own: kube-apiserver is the only client (docs/use/autoscaling.md)."""

    enabled: bool = False
    """Serve it. It needs a certificate."""

    serving: ExternalMetricsServing = Field(default_factory=ExternalMetricsServing)

    client_config_map: str = "kube-system/extension-apiserver-authentication"
    """NAMESPACE/NAME of the ConfigMap with kube-apiserver's client authority. Empty: `serving.client_ca` counts."""


class AutoscaleServing(ServingOptions):
    """Where `autoscale` listens, and who may ask."""

    group: ClassVar[str] = "autoscale.serving"

    port: int = Field(default=8892, ge=0, le=65_535)


class AutoscaleOptions(SettingGroup):
    """Settings of the command `autoscale`."""

    serving: AutoscaleServing = Field(default_factory=AutoscaleServing)

    buffers: BufferOptions = Field(default_factory=BufferOptions)
    guard: GuardOptions = Field(default_factory=GuardOptions)
    replicas: ReplicaOptions = Field(default_factory=ReplicaOptions)
    min_replicas: MinReplicasOptions = Field(default_factory=MinReplicasOptions)
    external_metrics: ExternalMetricsOptions = Field(default_factory=ExternalMetricsOptions)
    leader_election: AutoscaleLease = Field(default_factory=AutoscaleLease)

    every: ClassVar[float] = 15.0
    """Seconds between two readings of what services use and will use: as often as HorizontalPodAutoscalers look."""

    act_every: ClassVar[float] = 60.0
    """Seconds between two looks at what is written, buffers, marks of nodes, requests of pods, minReplicas: a forecast
    holds half hours."""


class ResizeOptions(SettingGroup):
    """In-place resizes of running pods that ask for it by the label `forecast-scheduler.io/resize: "true"`."""

    enabled: bool = False
    """Resize pods with the label, or of a namespace with it. `autoscale --release` takes resizes back."""

    service_share: float = Field(default=0.25, gt=0, le=1)
    """Share of the pods of a service resized in one step; at least one pod."""

    most: float = Field(default=1.0, ge=1, le=4)
    """Multiple of a pod's original request up to which its request grows."""

    autoscaled: bool = False
    """Also resize pods of services whose replicas follow the load. Their autoscaler needs an `AverageValue`."""

    memory: bool = False
    """Let memory requests grow, too. They never shrink below the original."""

    lead: ClassVar[float] = 900.0
    """Seconds before a half hour at which pods get its request: a queue of resizes is done by then."""

    hold: ClassVar[float] = 7200.0
    """Seconds after the lead time for which a pod must need no more before it shrinks: a dip between two peaks is none.
    """

    margin: ClassVar[float] = 0.1
    """Added to the usage expected or measured now, as a share of it. A request never shrinks below that."""

    least_change: ClassVar[float] = 0.1
    """Smaller changes are not made, as a share of the request before them: each resize is a write of the kubelet."""

    parallel: ClassVar[int] = 20
    """Pods resized in one step: few enough to stop in time, and a thousand pods in an hour."""

    retry: ClassVar[float] = 1800.0
    """Seconds until a resize that the node could not carry out is tried again."""


class RequestOptions(SettingGroup):
    """How much one pod of each service should request, by its forecast (docs/use/requests.md)."""

    memory_margin: float = Field(default=0.1, ge=0, le=2)
    """Share added to the highest memory of the week for the memory request."""

    resize: ResizeOptions = Field(default_factory=ResizeOptions)

    errors: ClassVar[float] = 1.2
    """Standard deviations of a full node's forecast error that the requests on it cover together, in addition to the
    expected usage. Bursty pods bear most of it."""

    quiet_discount: ClassVar[float] = 4.0
    """How little usage counts while the whole cluster is quiet: by (load of the cluster / its highest load) to this
    power. 0 counts all hours alike."""

    least_quantile: ClassVar[float] = 0.5
    """A request for all hours is never below what this quantile of the pod's expected usage over the week needs."""

    carried: ClassVar[float] = 0.6
    """Share of the need of disk, network and log that the CPU request stands for: kube-scheduler knows no requests of
    these. 0 = CPU requests stand for CPU alone."""

    clock_pays: ClassVar[float] = 0.2
    """A service gets requests by hour class if these save at least this share of its requested core hours."""


class CapacityOptions(SettingGroup):
    """What `capacity` asks for unless its options say otherwise. Days and seed are those of `replay`."""

    target: float = Field(default=0.001, ge=0, lt=1)
    """Share of node half hours that may be hot; `--target`."""

    sample_pods: int = Field(default=1000, ge=0)
    """Pods of the random sample that a cluster of twice as many is judged by. 0: all pods, which is slow."""

    most: ClassVar[float] = 10.0
    """The search ends at this multiple of the recorded nodes. A rule that needs more has no number."""
