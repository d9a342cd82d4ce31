"""What crosses HTTP, field by field; the OpenAPI document is made from these classes (openapi.py).

msgspec rather than pydantic: 5,000 node names decode, and 5,000 scores encode, in a fraction of a millisecond.
Usage is in base units (cores, bytes, bytes per second), times are ISO 8601 with offset; null = not known or no limit.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

LevelNumber = Annotated[int, Meta(ge=0, le=4, description="Degradation: 0 fresh ... 4 neutral, nothing is known.")]
Share = Annotated[float | None, Meta(description="Of capacity; 1 = full. null without a capacity.")]
Amount = Annotated[float | None, Meta(description="In the resource's base unit.")]
Assumed = Annotated[
    bool, Meta(description="true = the capacity is not known: the trainer assumed it from what such nodes sustained.")
]


class ErrorBody(Struct):
    """What is wrong, and the way out, in one sentence."""

    error: str


class HealthBody(Struct):
    """The process answers."""

    ok: bool


class ScoresRequest(Struct, forbid_unknown_fields=True):
    """Which nodes are how good for a pod?"""

    pod: Raw
    nodes: list[str] | None = None
    weights: dict[str, float] | None = None
    ranking: bool = False


class ChargeRequest(Struct, forbid_unknown_fields=True):
    """A pod will probably be bound to a node: reckon with it until its binding is seen, or for so many seconds."""

    pod: Raw
    node: str
    seconds: Annotated[float, Meta(gt=0, le=60)] = 2.0


class ChargeBody(Struct):
    """Whether the node is known, and so was charged."""

    charged: bool


class ExplainRequest(Struct, forbid_unknown_fields=True):
    """The same question, with reasons for the best `top` nodes."""

    pod: Raw
    nodes: list[str] | None = None
    weights: dict[str, float] | None = None
    top: Annotated[int, Meta(ge=1, le=1000)] = 10


class PodReference(Struct):
    """A pod of the cluster by name, unless `spec` or `metadata` say that it is a whole Pod object."""

    namespace: str | None = None
    name: str | None = None
    metadata: Raw | UnsetType = UNSET
    spec: Raw | UnsetType = UNSET


class ScoresBody(Struct):
    """Scores 0..100 by node, higher is better; nodes not known to the scorer get a neutral score.

    `ranking`, where it was asked for, is the same without the limits: overloaded nodes go on falling below 0.
    """

    scores: dict[str, float]
    level: LevelNumber
    reasons: list[str]
    model: Annotated[str | None, Meta(description="Version of the model; null = none is in use.")]
    weights: dict[str, float]
    unknown_nodes: list[str]
    policy: Annotated[str, Meta(description="By which the pod was scored.")] = ""
    ranking: dict[str, float] | UnsetType = UNSET


class PeakBody(Struct):
    """The highest predicted half hour of one resource."""

    resource: str
    unit: str
    expected: float
    bound: Amount
    capacity: Amount
    share: Share
    at: datetime
    assumed: Assumed


class ExplainedScoreBody(Struct):
    """One score of a node and the points it adds to the total."""

    name: str
    score: float
    weight: float
    points: float


class ExplainedNodeBody(Struct):
    """Why a node scored what it did. The peaks are those of its most loaded resource."""

    node: str
    score: float
    contributions: list[ExplainedScoreBody]
    level: LevelNumber
    measured_seconds_ago: float | None
    peak_before: PeakBody | None
    peak_with: PeakBody | None
    notes: list[str]


class RejectionBody(Struct):
    """Nodes that a filter rejects for one reason, whatever other filters say."""

    filter: str
    reason: str
    nodes: Annotated[int, Meta(description="How many.")]
    preemptible: Annotated[bool, Meta(description="Evicting pods may help.")]


class SumPartBody(Struct):
    """What one score adds to the sums of the nodes that are explained."""

    name: str
    weight: Annotated[float, Meta(description="As used; a score of weight 0 is no part.")]
    points: Annotated[dict[str, float], Meta(description="By node.")]


class JudgementBody(Struct):
    """What the component that places the pod makes of the nodes."""

    component: str
    node: Annotated[str | None, Meta(description="That it would choose; null = none.")]
    totals: Annotated[dict[str, float], Meta(description="Sum of its scores, by node that it may choose.")]
    parts: Annotated[list[SumPartBody], Meta(description="What these sums are made of.")]
    passed_over: Annotated[dict[str, str], Meta(description="Nodes that pass and come after, by what.")]
    n_nodes: int
    rejections: list[RejectionBody]
    held: Annotated[str, Meta(description="Why the pod gets no node now; empty = nothing holds it.")]
    ahead: Annotated[int, Meta(description="Waiting pods that were placed first.")]
    evicts: list[str]
    makes_room_on: str | None


class ExplanationBody(Struct):
    """The best nodes for a pod, best first, and why."""

    pod: str
    service: str
    service_known: bool
    nodes: list[ExplainedNodeBody]
    n_nodes: int
    runner_up: str | None
    margin: Annotated[float | None, Meta(description="From the best node to the runner-up, in totals or points.")]
    level: LevelNumber
    reasons: list[str]
    model: str | None
    model_age_seconds: float | None
    metrics_age_seconds: float | None
    virtual_request: Annotated[dict[str, float], Meta(description="What the pod is taken to use now.")]
    virtual_request_source: str
    unknown_nodes: list[str]
    policy: Annotated[str, Meta(description="By which the pod is placed.")]
    policy_because: Annotated[str, Meta(description="What chose that policy; empty = there is no other.")]
    judgement: Annotated[
        JudgementBody | None, Meta(description="By which nodes are ordered; null = by our scores alone.")
    ]
    not_applied: Annotated[list[str], Meta(description="What the placing component goes by and this does not.")]
    assumed_capacities: Annotated[
        list[str], Meta(description="Resources of which the capacity is assumed on a node that was scored.")
    ]


class NodeBody(Struct):
    """One node; the peaks are those of the resource with the highest share of capacity."""

    name: str
    pods: int
    ready: bool
    level: LevelNumber
    measured_seconds_ago: float | None
    today: PeakBody | None
    tomorrow: PeakBody | None


class NodesBody(Struct):
    """All nodes by name."""

    nodes: list[NodeBody]


class ServiceBody(Struct):
    """One service: its pods here, whether the model knows it, whether its replicas follow its load."""

    namespace: str
    kind: str
    name: str
    pods: int
    known: bool
    autoscaled: bool


class ServicesBody(Struct):
    """All services that have pods."""

    services: list[ServiceBody]


class DayPeakBody(Struct):
    """Predicted peak of one local day."""

    day: date
    expected: float
    bound: Amount
    at: datetime


class CurveBody(Struct):
    """One resource over half hours; the lists are as long as `starts`."""

    resource: str
    unit: str
    capacity: Amount
    assumed: Assumed
    expected: list[float | None]
    bound: Annotated[list[float | None] | None, Meta(description="0.95 bound per half hour.")]
    actual: Annotated[list[float | None] | None, Meta(description="Measured; null = nobody measures it.")]
    days: list[DayPeakBody]


class ForecastBody(Struct):
    """Predicted and, where known, actual usage of a node or of all pods of a service together."""

    name: str
    starts: Annotated[list[datetime], Meta(description="Start of each half hour; the first ones lie in the past.")]
    curves: list[CurveBody]
    level: LevelNumber
    model: str | None
    pods: int
    notes: list[str]


class HeatMapBody(Struct):
    """Predicted load of the hottest nodes by hour: share[node][hour]."""

    resource: Annotated[str | None, Meta(description="null = whichever resource is highest.")]
    hours: list[datetime]
    nodes: list[str]
    share: list[list[float | None]]
    assumed: Annotated[
        list[bool], Meta(description="For each node: whether its highest hour is a share of an assumed capacity.")
    ]
    n_nodes: Annotated[int, Meta(description="Nodes in the cluster; `nodes` holds the hottest.")]


class VirtualAvailableBody(Struct):
    """capacity - usage at the last metric - virtual requests not yet seen in it: available[node][resource]."""

    nodes: list[str]
    resources: list[str]
    available: list[list[float | None]]
    capacity: list[list[float | None]]
    assumed: Annotated[
        list[list[bool]], Meta(description="Whether the trainer assumed the capacity: assumed[node][resource].")
    ]
    charged: list[list[float | None]]
    pods_charged: int
    metrics_age_seconds: float | None


class ModelBody(Struct):
    """The model in use."""

    version: str
    trained_until: date
    age_seconds: float
    services: int
    nodes: int
    time_zone: str
    refused: Annotated[str | None, Meta(description="Why a newer model is not used.")]


class StatusBody(Struct):
    """The state of the scorer."""

    ready: bool
    not_ready_because: str | None
    level: LevelNumber
    reasons: list[str]
    now: datetime
    model: ModelBody | None
    refused_model: str | None
    nodes: int
    pods: int
    services: int
    unknown_service_pods: int
    state_age_seconds: float | None
    metrics_age_seconds: float | None
    measured_nodes: int
    unread_capacities: Annotated[
        int, Meta(description="Nodes whose capacity annotation has entries that cannot be read.")
    ] = 0
    sources: dict[str, str] = field(default_factory=dict)
    report_written: Annotated[datetime | None, Meta(description="Of the page at /report; null = there is none.")] = None


class SelfCheckBody(Struct):
    """Whether the tables kept event by event equal tables rebuilt from the objects."""

    sound: bool
    checked_at: datetime
    nodes: int
    pods: int
    drift: list[str]
