"""Answers of the scorer -> HTTP bodies. Numbers are rounded to seven digits: what is more is noise and traffic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import msgspec
import numpy as np

from forecast.arrays import AnyFloats
from forecast.service_key import ServiceKey
from scorer import answers
from scorer.judgement import Judgement
from scorer.service import bodies

DIGITS = 7


def scores_body(scored: answers.Scored, *, ranking: bool = False) -> bodies.ScoresBody:
    """Scores by node, and the ranking where it was asked for."""
    scores, ranks = (np.round(values, 4).tolist() for values in (scored.scores, scored.ranking))
    return bodies.ScoresBody(
        scores=dict(zip(scored.nodes, scores, strict=True)),
        level=int(scored.level),
        reasons=list(scored.reasons),
        model=scored.model_version,
        weights=dict(scored.weights),
        unknown_nodes=[str(name) for name in scored.unknown_nodes],
        policy=scored.policy,
        ranking=dict(zip(scored.nodes, ranks, strict=True)) if ranking else msgspec.UNSET,
    )


def peak_body(peak: answers.Peak | None) -> bodies.PeakBody | None:
    """A peak, if there is one."""
    if peak is None:
        return None
    return bodies.PeakBody(
        resource=peak.resource,
        unit=peak.unit,
        expected=_number(peak.expected) or 0.0,
        bound=_number(peak.bound),
        capacity=_number(peak.capacity),
        share=_number(peak.share),
        at=peak.at,
        assumed=peak.assumed,
    )


def explanation_body(explanation: answers.Explanation) -> bodies.ExplanationBody:
    """Why the nodes scored what they did."""
    return bodies.ExplanationBody(
        pod=explanation.pod,
        service=explanation.service,
        service_known=explanation.service_known,
        nodes=[_explained_node(node) for node in explanation.nodes],
        n_nodes=explanation.n_nodes,
        runner_up=explanation.runner_up,
        margin=_number(explanation.margin),
        level=int(explanation.level),
        reasons=list(explanation.reasons),
        model=explanation.model_version,
        model_age_seconds=_number(explanation.model_age_seconds),
        metrics_age_seconds=_number(explanation.metrics_age_seconds),
        virtual_request={name: float(value) for name, value in explanation.virtual_request.items()},
        virtual_request_source=explanation.virtual_request_source,
        unknown_nodes=list(explanation.unknown_nodes),
        policy=explanation.policy,
        policy_because=explanation.policy_because,
        assumed_capacities=list(explanation.assumed_capacities),
        judgement=None if explanation.judgement is None else _judgement(explanation.judgement, explanation.nodes),
        not_applied=list(explanation.not_applied),
    )


def _judgement(judgement: Judgement, nodes: Sequence[answers.ExplainedNode]) -> bodies.JudgementBody:
    return bodies.JudgementBody(
        component=judgement.component,
        node=judgement.ranking[0] if judgement.ranking and not judgement.held else None,
        totals={name: round(float(judgement.totals[name]), 4) for name in judgement.ranking},
        parts=[
            bodies.SumPartBody(
                part.name,
                float(part.weight),
                {one.node: round(part.points[one.node], 4) for one in nodes if one.node in part.points},
            )
            for part in judgement.parts
        ],
        passed_over=dict(judgement.passed_over),
        n_nodes=judgement.n_nodes,
        rejections=[
            bodies.RejectionBody(one.filter, one.reason, len(one.nodes), one.preemptible)
            for one in judgement.rejections
        ],
        held=judgement.held,
        ahead=judgement.ahead,
        evicts=list(judgement.evicts),
        makes_room_on=judgement.makes_room_on or None,
    )


def _explained_node(node: answers.ExplainedNode) -> bodies.ExplainedNodeBody:
    return bodies.ExplainedNodeBody(
        node=node.node,
        score=round(float(node.score), 4),
        contributions=[
            bodies.ExplainedScoreBody(c.name, round(float(c.score), 4), float(c.weight), round(float(c.points), 4))
            for c in node.contributions
        ],
        level=int(node.level),
        measured_seconds_ago=_number(node.measured_seconds_ago),
        peak_before=peak_body(node.peak_before),
        peak_with=peak_body(node.peak_with),
        notes=list(node.notes),
    )


def node_body(node: answers.NodeSummary) -> bodies.NodeBody:
    """One node of the list."""
    return bodies.NodeBody(
        name=node.name,
        pods=node.pods,
        ready=node.ready,
        level=int(node.level),
        measured_seconds_ago=_number(node.measured_seconds_ago),
        today=peak_body(node.today),
        tomorrow=peak_body(node.tomorrow),
    )


def service_body(service: answers.ServiceSummary) -> bodies.ServiceBody:
    """One service of the list."""
    key = ServiceKey.parse(service.key)
    return bodies.ServiceBody(key.namespace, key.kind, key.name, service.pods, service.known, service.autoscaled)


def forecast_body(forecast: answers.UsageForecast) -> bodies.ForecastBody:
    """Curves of a node or service."""
    return bodies.ForecastBody(
        name=forecast.name,
        starts=list(forecast.starts),
        curves=[_curve(curve) for curve in forecast.curves],
        level=int(forecast.level),
        model=forecast.model_version,
        pods=forecast.pods,
        notes=list(forecast.notes),
    )


def _curve(curve: answers.Curve) -> bodies.CurveBody:
    return bodies.CurveBody(
        resource=curve.resource,
        unit=curve.unit,
        capacity=_number(curve.capacity),
        assumed=curve.assumed,
        expected=numbers(curve.expected),
        bound=None if curve.bound is None else numbers(curve.bound),
        actual=None if curve.actual is None else numbers(curve.actual),
        days=[bodies.DayPeakBody(d.day, _number(d.expected) or 0.0, _number(d.bound), d.at) for d in curve.days],
    )


def heat_map_body(heat: answers.HeatMap) -> bodies.HeatMapBody:
    """Shares to four digits after the point: a hundredth of a percent."""
    return bodies.HeatMapBody(
        resource=heat.resource,
        hours=list(heat.hours),
        nodes=list(heat.nodes),
        share=np.round(heat.share, 4).tolist(),
        assumed=list(heat.assumed),
        n_nodes=heat.n_nodes,
    )


def virtual_available_body(available: answers.VirtualAvailability) -> bodies.VirtualAvailableBody:
    """Load estimates, one row per node."""
    return bodies.VirtualAvailableBody(
        nodes=list(available.nodes),
        resources=list(available.resources),
        available=numbers(available.available),
        capacity=numbers(available.capacity),
        assumed=available.assumed.tolist(),
        charged=numbers(available.charged),
        pods_charged=available.pods_charged,
        metrics_age_seconds=_number(available.metrics_age_seconds),
    )


def status_body(
    status: answers.Status, *, draining: bool = False, report_written: datetime | None = None
) -> bodies.StatusBody:
    """The state; a service that is about to end is not ready."""
    model = status.model
    return bodies.StatusBody(
        ready=status.ready and not draining,
        not_ready_because="the service is shutting down" if draining else status.not_ready_because,
        level=int(status.level),
        reasons=list(status.reasons),
        now=status.now,
        model=None
        if model is None
        else bodies.ModelBody(
            model.version,
            model.trained_until,
            model.age_seconds,
            model.services,
            model.nodes,
            model.time_zone,
            model.refused,
        ),
        refused_model=status.refused_model,
        nodes=status.nodes,
        pods=status.pods,
        services=status.services,
        unknown_service_pods=status.unknown_service_pods,
        state_age_seconds=_number(status.state_age_seconds),
        metrics_age_seconds=_number(status.metrics_age_seconds),
        measured_nodes=status.measured_nodes,
        unread_capacities=status.unread_capacities,
        sources=dict(status.sources),
        report_written=report_written,
    )


def self_check_body(check: answers.SelfCheck) -> bodies.SelfCheckBody:
    """Drift, if any."""
    return bodies.SelfCheckBody(check.sound, check.checked_at, check.nodes, check.pods, list(check.drift))


def numbers(values: AnyFloats) -> list[Any]:
    """Nested lists, seven significant digits; NaN stays NaN and is encoded as null."""
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        magnitude = np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** np.where(np.isfinite(magnitude), DIGITS - 1 - magnitude, 0.0)
        rounded = np.round(values * scale) / scale
    return cast(list[Any], np.where(np.isfinite(rounded), rounded, values).tolist())


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
