"""The facade of the scorer: what the HTTP service, the command line and the extender ask of it.

`scorer.scorer.Scorer` implements `ScorerApi`. What crosses HTTP as it is stands in scorer/answers.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from prometheus_client.registry import Collector

from base.arrays import Bools, Floats, Ints
from cluster.degradation import Level
from cluster.table_check import SelfCheck
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scorer.answers import (
    Explanation,
    HeatMap,
    NodeReport,
    Nodes,
    ScorerStatus,
    ServiceSummary,
    UsageForecast,
    VirtualAvailability,
)
from scorer.judgement import Judge


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


class ScorerApi(Protocol):
    """What can be asked. Unknown names raise base.errors.UnknownName, other bad arguments InputError."""

    def score(
        self, pod: PodInfo, nodes: Sequence[str] | None = None, weights: Mapping[str, float] | None = None
    ) -> Scored:
        """Score a pod on nodes; None = all nodes, None = the configured weights."""

    def charge_provisionally(self, pod: PodInfo, node: str, seconds: float) -> bool:
        """Reckon with a pod on a node until its binding is seen or the time is over; False = no such node."""

    def explain(
        self,
        pod: PodInfo,
        nodes: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        *,
        top: int = 10,
        judge: Judge | None = None,
    ) -> Explanation:
        """Score a pod and say why, for the best `top` nodes. judge: by which they are ordered; None = by the scores."""

    def find_pod(self, namespace: str, name: str) -> PodInfo:
        """A pod of the cluster."""

    def nodes(self, *, by_peak: bool = False, top: int | None = None, day: date | None = None) -> Nodes:
        """Nodes by name, or those with the highest peak of a day first; None = all, today."""

    def node_report(self, node: str, *, day: date | None = None, top: int = 5) -> NodeReport:
        """What makes the peak of a node on a day, and the best other node for each of its `top` largest pods."""

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

    def status(self) -> ScorerStatus:
        """The state of the scorer."""

    def lock_collector(self) -> Collector:
        """For /metrics: how long the lock of the tables is waited for and held."""

    def self_check(self) -> SelfCheck:
        """Compare the tables with a rebuild now."""
