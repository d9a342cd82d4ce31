"""What the scorer answers: values that the HTTP service, the command line and the extender pass on.

`ScorerApi` is the facade that gives them; `scorer.scorer.Scorer` implements it. All methods may be called from threads.
Times are aware datetimes in the model's time zone (UTC without a model), usage in base units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

from forecast.arrays import Bools, Floats, Ints
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scorer.degradation import Level
from scorer.judgement import Judgement


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest predicted half hour of one resource in a stretch of time.

    expected, bound : mean and 0.95 bound of the peak; capacity: None = not a limit
    share           : expected / capacity, None without a capacity
    at              : start of the half hour in which the expectation is highest
    assumed         : whether the trainer assumed the capacity (forecast.assumed_capacity)
    """

    resource: str
    unit: str
    expected: float
    bound: float | None
    capacity: float | None
    share: float | None
    at: datetime
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """One pod's score on every node asked for, 0..100, higher is better; unknown nodes got the neutral score.

    ranking : (n_nodes,) the scores with predicted peaks that are not cut at 0 and 100, for sums without such limits
    level   : of the cluster as a whole; reasons: why it is not FRESH
    weights : of the scores that were summed
    policy  : that these belong to; '' = not said
    """

    nodes: Sequence[str]
    scores: Floats
    ranking: Floats
    level: Level
    reasons: tuple[str, ...]
    model_version: str | None
    weights: Mapping[str, float]
    unknown_nodes: tuple[str, ...] = ()
    policy: str = ""


@dataclass(frozen=True, slots=True)
class ExplainedScore:
    """One score of one node: its value 0..100, its weight, and the points it contributes to the total."""

    name: str
    score: float
    weight: float
    points: float


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """Why a node scored what it did. peaks: the most loaded resource first; before and with the pod."""

    node: str
    score: float
    contributions: tuple[ExplainedScore, ...]
    level: Level
    measured_seconds_ago: float | None
    peak_before: Peak | None
    peak_with: Peak | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The best nodes for a pod and why; best first.

    margin       : between the best and the runner-up, None with one node: of the component's sums of scores if there is
                   a judgement, else points
    virtual_request : what the pod is taken to use now, by resource name, and where that is known from
    unknown_nodes   : asked for, but not in the cluster
    judgement       : of the component that places the pod, by which nodes are ordered; None = by our scores alone
    not_applied     : what the component goes by and this explanation does not
    policy, policy_because : that the pod is placed by, and what chose it; '' = there is no other
    assumed_capacities : resources of which the capacity is assumed on a node that was scored
    """

    pod: str
    service: str
    service_known: bool
    nodes: tuple[ExplainedNode, ...]
    n_nodes: int
    runner_up: str | None
    margin: float | None
    level: Level
    reasons: tuple[str, ...]
    model_version: str | None
    model_age_seconds: float | None
    metrics_age_seconds: float | None
    virtual_request: Mapping[str, float]
    virtual_request_source: str
    unknown_nodes: tuple[str, ...] = ()
    policy: str = ""
    policy_because: str = ""
    judgement: Judgement | None = None
    not_applied: tuple[str, ...] = ()
    assumed_capacities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DayPeak:
    """Predicted peak of one local day."""

    day: date
    expected: float
    bound: float | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Curve:
    """One resource of a node or service over half hours.

    expected, bound : (n_slots,) predicted mean and its 0.95 bound per half hour
    actual          : (n_slots,) what was measured, NaN = not (yet); None where nobody measures
    days            : the daily peaks within
    assumed         : whether the trainer assumed the capacity
    """

    resource: str
    unit: str
    capacity: float | None
    expected: Floats
    bound: Floats | None
    actual: Floats | None
    days: tuple[DayPeak, ...]
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class UsageForecast:
    """Predicted (and, where known, actual) usage of a node, or of all pods of a service together.

    starts : (n_slots,) start of each half hour; the first slots may lie in the past
    """

    name: str
    starts: tuple[datetime, ...]
    curves: tuple[Curve, ...]
    level: Level
    model_version: str | None
    pods: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One node in the list of all. today, tomorrow: of the resource with the highest share of capacity."""

    name: str
    pods: int
    ready: bool
    level: Level
    measured_seconds_ago: float | None
    today: Peak | None
    tomorrow: Peak | None


@dataclass(frozen=True, slots=True)
class ServiceSummary:
    """One service: how many of its pods are here, whether the model knows it, and its highest share of the cluster."""

    key: str
    pods: int
    known: bool
    autoscaled: bool


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Predicted load of nodes, hottest first, by hour.

    share : (n_nodes, n_hours) expected load / capacity, the highest of the hour and of the resources asked for;
            NaN = unknown
    assumed : for each node, whether the trainer assumed the capacity that its highest hour is a share of
    """

    resource: str | None
    hours: tuple[datetime, ...]
    nodes: tuple[str, ...]
    share: Floats
    n_nodes: int
    assumed: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class VirtualAvailability:
    """capacity - usage at the last metric - virtual requests not yet seen in it; NaN = unknown or no limit.

    available : (n_nodes, n_resources); charged: (n_nodes, n_resources) the virtual requests still counted
    assumed   : (n_nodes, n_resources) whether the trainer assumed the capacity
    """

    nodes: tuple[str, ...]
    resources: tuple[str, ...]
    available: Floats
    capacity: Floats
    assumed: Bools
    charged: Floats
    pods_charged: int
    metrics_age_seconds: float | None


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """What the metrics endpoint exports of the nodes. Axes as named; NaN = unknown, not exported.

    usage          : (n_nodes, n_resources, 2) predicted for this half hour, 0.5 and 0.95: corrected by what is measured
                     now, so that it says nothing about how good the model is
    model_usage    : (n_nodes, n_resources, 2) the same before that correction, of the pods where they really are
    peak           : (n_nodes, n_resources, 2, 2) predicted peak by quantile and day (today, tomorrow), as of now
    peak_at        : (n_nodes, n_resources, 2) start of the half hour of the expected peak of each day, unix seconds
    frozen_peak    : as `peak`, as it was predicted at local midnight; NaN until a midnight has passed
    available      : (n_nodes, n_resources) VirtualAvailable
    capacity       : (n_nodes, n_resources) physical; NaN = not a limit
    assumed        : (n_nodes, n_resources) whether the trainer assumed the capacity
    shadow_usage, shadow_peak : as `usage` and `peak`, with pods where a shadow advised them; None = no shadow

    All others have pods where they really sit.
    """

    nodes: tuple[str, ...]
    resources: tuple[str, ...]
    usage: Floats
    model_usage: Floats
    peak: Floats
    peak_at: Floats
    frozen_peak: Floats
    available: Floats
    capacity: Floats
    assumed: Bools
    level: Ints
    shadow_usage: Floats | None = None
    shadow_peak: Floats | None = None


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The model in use. refused: why a newer one is not."""

    version: str
    trained_until: date
    age_seconds: float
    services: int
    nodes: int
    time_zone: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the scorer.

    ready      : the cluster was read completely at least once, and a score can be given
    last_check : the latest comparison of the tables with a rebuild, None = there was none yet
    unread_capacities : nodes whose capacity annotation has entries that cannot be read
    """

    ready: bool
    not_ready_because: str | None
    level: Level
    reasons: tuple[str, ...]
    now: datetime
    model: ModelStatus | None
    refused_model: str | None
    nodes: int
    pods: int
    services: int
    unknown_service_pods: int
    state_age_seconds: float | None
    metrics_age_seconds: float | None
    measured_nodes: int
    sources: Mapping[str, str] = field(default_factory=dict)
    last_check: SelfCheck | None = None
    unread_capacities: int = 0


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """Whether the tables kept up to date event by event equal tables rebuilt from the objects; drift: what differs."""

    checked_at: datetime
    nodes: int
    pods: int
    drift: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """No drift."""
        return not self.drift


class ScorerApi(Protocol):
    """What can be asked. Unknown names raise forecast.errors.UnknownName, other bad arguments InputError."""

    def score(
        self, pod: PodInfo, nodes: Sequence[str] | None = None, weights: Mapping[str, float] | None = None
    ) -> Scored:
        """Score a pod on nodes; None = all nodes, None = the configured weights."""

    def charge_provisionally(self, pod: PodInfo, node: str, seconds: float = 2.0) -> bool:
        """Reckon with a pod on a node until its binding is seen or the time is over; False = no such node."""

    def explain(
        self,
        pod: PodInfo,
        nodes: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        *,
        top: int = 10,
    ) -> Explanation:
        """Score a pod and say why, for the best `top` nodes."""

    def find_pod(self, namespace: str, name: str) -> PodInfo:
        """A pod of the cluster."""

    def nodes(self) -> tuple[NodeSummary, ...]:
        """All nodes by name."""

    def services(self) -> tuple[ServiceSummary, ...]:
        """All services that have pods, by name."""

    def heat_map(self, *, resource: str | None = None, top: int = 100) -> HeatMap:
        """The `top` hottest nodes of the coming week; resource None = whichever is highest."""

    def node_forecast(self, node: str) -> UsageForecast:
        """One node, from two days ago to the end of the horizon."""

    def service_forecast(self, key: ServiceKey) -> UsageForecast:
        """All pods of one service together."""

    def virtual_available(self) -> VirtualAvailability:
        """Load estimates of all nodes."""

    def node_figures(self) -> NodeFigures:
        """Figures of all nodes, for the metrics endpoint; peaks may be some minutes old on a large cluster."""

    def service_peaks(self) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
        """Services, resources, and (n_services, n_resources, 2) predicted peak of one pod today, 0.5 and 0.95."""

    def backtest_loss(self) -> Mapping[tuple[str, str], float]:
        """(resource, quantile) -> loss as published with the model; empty without one."""

    def status(self) -> Status:
        """The state of the scorer."""

    def self_check(self) -> SelfCheck:
        """Compare the tables with a rebuild now."""
