"""What the scorer answers over HTTP and to the command line. A class is both the value and the JSON body of a route:
the OpenAPI document is made from these classes, and `name=` gives the name that a field has in JSON.

Times are aware datetimes in the model's time zone (UTC without a model), usage is in base units (cores, bytes, bytes
per second). None = not known or no limit. In JSON, arrays are nested lists of seven digits, and NaN is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct, field
from numpy.typing import NDArray

from cluster.degradation import Level
from cluster.table_check import SelfCheck
from forecast.model_findings import ModelFinding
from scorer.judgement import Judgement

_NUMBER_SCHEMA = {"type": ["number", "null"]}
_ROW_SCHEMA = {"type": "array", "items": _NUMBER_SCHEMA}
Row = Annotated[NDArray[np.float64], Meta(extra_json_schema=_ROW_SCHEMA)]
Table = Annotated[NDArray[np.float64], Meta(extra_json_schema={"type": "array", "items": _ROW_SCHEMA})]
Flags = Annotated[
    NDArray[np.bool_],
    Meta(extra_json_schema={"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}}),
]

LevelNumber = Annotated[Level, Meta(description="Degradation: 0 fresh ... 4 neutral, nothing is known.")]
Share = Annotated[float | None, Meta(description="Of capacity; 1 = full. null without a capacity.")]
Amount = Annotated[float | None, Meta(description="In the resource's base unit.")]
Assumed = Annotated[
    bool, Meta(description="true = the capacity is not known: the trainer assumed it from what such nodes sustained.")
]


class Peak(Struct, frozen=True):
    """The highest predicted half hour of one resource in a stretch of time (cluster/predicted/node_load.py).

    expected, bound : expected peak and upper bound (95 %)
    at              : start of the half hour in which the expectation is highest
    """

    resource: str
    unit: str
    expected: float
    bound: Amount
    capacity: Amount
    share: Share
    at: datetime
    assumed: Assumed = False


class ExplainedScore(Struct, frozen=True):
    """One score of one node: its value 0..100, its weight, and the points that it adds to the total."""

    name: str
    score: float
    weight: float
    points: float


class ExplainedNode(Struct, frozen=True):
    """Why a node scored what it did. The peaks are those of its most loaded resource, before and with the pod: of the
    next 24 hours, and of the coming week.
    """

    node: str
    score: float
    contributions: tuple[ExplainedScore, ...]
    level: LevelNumber
    measured_seconds_ago: float | None
    peak_before: Peak | None
    peak_with: Peak | None
    notes: tuple[str, ...] = ()
    week_before: Peak | None = None
    week_with: Peak | None = None
    rank: Annotated[int | None, Meta(description="1 = the best; null = the pod may not go there.")] = None


class CountedRejection(Struct, frozen=True):
    """Nodes that a filter rejects for one reason, whatever other filters say."""

    filter: str
    reason: str
    nodes: Annotated[int, Meta(description="How many.")]
    preemptible: Annotated[bool, Meta(description="Evicting pods may help.")]


class SumOfScore(Struct, frozen=True):
    """What one score adds to the sums of the nodes that are explained."""

    name: str
    weight: Annotated[float, Meta(description="As used; a score of weight 0 is no part.")]
    points: Annotated[Mapping[str, float], Meta(description="By node.")]


class JudgementSummary(Struct, frozen=True, kw_only=True):
    """What the component that places the pod makes of the nodes."""

    component: str
    node: Annotated[str | None, Meta(description="That it would choose; null = none.")]
    totals: Annotated[Mapping[str, float], Meta(description="Sum of its scores, by node that it may choose.")]
    parts: Annotated[Sequence[SumOfScore], Meta(description="What these sums are made of.")]
    passed_over: Annotated[Mapping[str, str], Meta(description="Nodes that pass and come after, by what.")]
    n_nodes: int
    rejections: Sequence[CountedRejection]
    held: Annotated[str, Meta(description="Why the pod gets no node now; empty = nothing holds it.")]
    ahead: Annotated[int, Meta(description="Waiting pods that were placed first.")]
    evicts: Sequence[str]
    makes_room_on: str | None


class Explanation(Struct, frozen=True, kw_only=True):
    """The best nodes for a pod, best first, and why.

    margin : from the best node to the runner-up, None with one node: of the component's sums of scores if there is a
             judgement, else points
    """

    pod: str
    service: str
    now: Annotated[datetime, Meta(description="In the time zone of the forecast.")]
    service_known: bool
    nodes: tuple[ExplainedNode, ...]
    n_nodes: int
    runner_up: str | None
    margin: Annotated[float | None, Meta(description="From the best node to the runner-up, in totals or points.")]
    level: LevelNumber
    reasons: tuple[str, ...]
    model_version: str | None = field(name="model")
    model_age_seconds: float | None
    metrics_age_seconds: float | None
    virtual_request: Annotated[Mapping[str, float], Meta(description="What the pod is taken to use now.")]
    virtual_request_source: str
    unknown_nodes: tuple[str, ...] = ()
    policy: Annotated[str, Meta(description="By which the pod is placed.")] = ""
    policy_because: Annotated[str, Meta(description="What chose that policy; empty = there is no other.")] = ""
    judgement: Annotated[
        JudgementSummary | None, Meta(description="By which nodes are ordered; null = by our scores alone.")
    ] = None
    not_applied: Annotated[
        tuple[str, ...], Meta(description="What the placing component goes by and this does not.")
    ] = ()
    assumed_capacities: Annotated[
        tuple[str, ...], Meta(description="Resources of which the capacity is assumed on a node that was scored.")
    ] = ()


class DayPeak(Struct, frozen=True):
    """Predicted peak of one local day."""

    day: date
    expected: float
    bound: Amount
    at: datetime


class Curve(Struct, frozen=True, kw_only=True):
    """One resource of a node or service over half hours; the lists are as long as `starts`."""

    resource: str
    unit: str
    capacity: Amount
    expected: Row
    bound: Annotated[Row | None, Meta(description="0.95 bound per half hour.")]
    actual: Annotated[Row | None, Meta(description="Measured; null = not measured.")]
    days: tuple[DayPeak, ...]
    assumed: Assumed = False


class UsageForecast(Struct, frozen=True):
    """Predicted and, where known, actual usage of a node or of all pods of a service together."""

    name: str
    starts: Annotated[tuple[datetime, ...], Meta(description="Start of each half hour; the first ones are past.")]
    curves: tuple[Curve, ...]
    level: LevelNumber
    model_version: str | None = field(name="model")
    pods: int
    notes: tuple[str, ...] = ()


class NodeSummary(Struct, frozen=True):
    """One node; the peaks are those of the resource with the highest share of capacity. `peak` is that of the day asked
    for, of the next 24 hours unless said otherwise; `today` is what is left of the day."""

    name: str
    pods: int
    ready: bool
    level: LevelNumber
    measured_seconds_ago: float | None
    today: Peak | None
    tomorrow: Peak | None
    peak: Peak | None


class Nodes(Struct, frozen=True):
    """Nodes by name, or the hottest first."""

    nodes: Sequence[NodeSummary]
    n_nodes: Annotated[int, Meta(description="Nodes in the cluster; `nodes` may hold fewer.")]
    peak_hours: Annotated[str | None, Meta(description="Of `peak`: `next 24 h`, or a day; null without a forecast.")]
    now: Annotated[datetime, Meta(description="In the time zone of the forecast.")]


class ServiceOnNode(Struct, frozen=True):
    """What the pods of one service on a node are expected to use in the half hour of the node's peak."""

    service: Annotated[str, Meta(description="namespace/Kind/name.")]
    pods: int
    usage: float
    share: Annotated[float, Meta(description="Of what is expected on the node in that half hour.")]


class BetterNode(Struct, frozen=True):
    """The best other node for a pod, and the peaks of both nodes in the same hours. Nothing is moved."""

    node: str
    here_without: Annotated[Peak, Meta(description="This node's, without the pod.")]
    there_before: Annotated[Peak, Meta(description="The other node's, as it is.")]
    there_with: Annotated[Peak, Meta(description="The other node's, with the pod.")]


class ResourceNow(Struct, frozen=True, kw_only=True):
    """One resource of a node now, and in what is left of today."""

    resource: str
    unit: str
    capacity: Amount
    measured: Annotated[Amount, Meta(description="Now; null = not measured.")]
    expected: Annotated[Amount, Meta(description="Of this half hour, before what is measured corrects it.")]
    bound: Annotated[Amount, Meta(description="Upper bound (95 %) of the same.")]
    rest_of_day: Annotated[Peak | None, Meta(description="Of the half hours of today that are not over.")]


class PodOnNode(Struct, frozen=True):
    """One of the largest pods of a node in the half hour of its peak."""

    pod: Annotated[str, Meta(description="namespace/name.")]
    service: str
    usage: float
    better: Annotated[BetterNode | None, Meta(description="null = none; why_not says why.")]
    why_not: str = ""
    expected_now: Annotated[Amount, Meta(description="In this half hour.")] = None
    measured_now: Annotated[Amount, Meta(description="null = not measured.")] = None


class NodeReport(Struct, frozen=True, kw_only=True):
    """What makes the peak of one node, and what helps. Usage is of the resource of `peak`."""

    name: str
    peak_hours: Annotated[str | None, Meta(description="Of `peak`: `next 24 h`, or a day; null without a forecast.")]
    now: Annotated[datetime, Meta(description="In the time zone of the forecast.")]
    pods: int
    ready: bool
    level: LevelNumber
    model_version: str | None
    peak: Peak | None
    resources: Annotated[
        tuple[ResourceNow, ...], Meta(description="Those with a capacity: measured and expected.")
    ] = ()
    measured_seconds_ago: float | None = None
    not_measured: Annotated[str, Meta(description="Why nothing is measured now; empty = it is.")] = ""
    starts: Annotated[tuple[datetime, ...], Meta(description="Of the half hours to come.")] = ()
    expected: tuple[float, ...] = ()
    bound: tuple[float, ...] = ()
    besides_pods: Annotated[
        float, Meta(description="What the node uses at its peak besides the pods of `services`: kubelet, daemons.")
    ] = 0.0
    services: Annotated[tuple[ServiceOnNode, ...], Meta(description="The largest first.")] = ()
    largest: Annotated[tuple[PodOnNode, ...], Meta(description="Pods, the largest first.")] = ()
    notes: tuple[str, ...] = ()


class ServiceSummary(Struct, frozen=True):
    """One service: its pods here, whether the model knows it, whether its replicas follow its load."""

    namespace: str
    kind: str
    name: str
    pods: int
    known: bool
    autoscaled: bool


class Services(Struct, frozen=True):
    """All services that have pods."""

    services: Sequence[ServiceSummary]


class HeatMap(Struct, frozen=True):
    """Predicted load of the hottest nodes by hour: share[node][hour], the highest of the resources asked for."""

    resource: Annotated[str | None, Meta(description="null = whichever resource is highest.")]
    hours: tuple[datetime, ...]
    nodes: tuple[str, ...]
    share: Table
    n_nodes: Annotated[int, Meta(description="Nodes in the cluster; `nodes` holds the hottest.")]
    assumed: Annotated[
        tuple[bool, ...], Meta(description="For each node: whether its highest hour is a share of an assumed capacity.")
    ] = ()


class VirtualAvailability(Struct, frozen=True):
    """capacity - usage at the last metric - virtual requests not yet seen in it: available[node][resource].

    charged : the virtual requests still counted
    """

    nodes: tuple[str, ...]
    resources: tuple[str, ...]
    available: Table
    capacity: Table
    assumed: Annotated[Flags, Meta(description="Whether the trainer assumed the capacity: assumed[node][resource].")]
    charged: Table
    pods_charged: int
    metrics_age_seconds: float | None


class ModelStatus(Struct, frozen=True):
    """The model in use."""

    version: str
    trained_until: date
    age_seconds: float
    services: int
    nodes: int
    time_zone: str
    refused: Annotated[str | None, Meta(description="Why a newer model is not used.")] = None
    findings: Annotated[tuple[ModelFinding, ...], Meta(description="Of the run that made it.")] = ()


class PoolLevel(Struct, frozen=True):
    """How full a pool of nodes is by requests, 0 to 1, and how much `spread_or_stack` stacks there: 0 = it spreads."""

    pool: Annotated[str, Meta(description="As the component that places pods names it; empty = all nodes.")]
    water_level: float
    stack_weight: float


class ScorerStatus(Struct, frozen=True, kw_only=True):
    """The state of the scorer. ready: the cluster was read completely at least once, and a score can be given."""

    ready: bool
    not_ready_because: str | None
    level: LevelNumber
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
    unread_capacities: Annotated[
        int, Meta(description="Nodes whose capacity annotation has entries that cannot be read.")
    ] = 0
    pods_beyond_nodes: Annotated[
        int, Meta(description="Pods that request or declare more than their node has, or than any node.")
    ] = 0
    gated_pods: Annotated[int, Meta(description="Pods that our scheduling gate alone holds.")] = 0
    gated_longest_seconds: Annotated[float, Meta(description="Time for which it has held one of them longest.")] = 0.0
    neutral_scores: Annotated[
        Mapping[str, str], Meta(description="Scores that are the same for all nodes now, with the reason.")
    ] = field(default_factory=dict)
    water_levels: Sequence[PoolLevel] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    last_check: Annotated[
        SelfCheck | None, Meta(description="The latest comparison of the tables with a rebuild; null = none yet.")
    ] = None
    report_written: Annotated[datetime | None, Meta(description="Of the page at /report; null = there is none.")] = None


def summary_of(judgement: Judgement, nodes: Sequence[ExplainedNode]) -> JudgementSummary:
    """The judgement as far as it concerns the nodes that are explained."""
    return JudgementSummary(
        component=judgement.component,
        node=judgement.ranking[0] if judgement.ranking and not judgement.held else None,
        totals={name: round(float(judgement.totals[name]), 4) for name in judgement.ranking},
        parts=[
            SumOfScore(
                part.name,
                float(part.weight),
                {one.node: round(part.points[one.node], 4) for one in nodes if one.node in part.points},
            )
            for part in judgement.parts
        ],
        passed_over=judgement.passed_over,
        n_nodes=judgement.n_nodes,
        rejections=[
            CountedRejection(one.filter, one.reason, len(one.nodes), one.preemptible) for one in judgement.rejections
        ],
        held=judgement.held,
        ahead=judgement.ahead,
        evicts=judgement.evicts,
        makes_room_on=judgement.makes_room_on or None,
    )
