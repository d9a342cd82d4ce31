"""What the scorer knows, as metrics: read at each scrape. Services with a scorer inside export it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.degradation import Level
from scorer.answers import PoolLevel, Status
from scorer.scorer_api import ScorerApi
from scorer.service.exposition import node_text, service_text


def scorer_series(scorer: ScorerApi, *, nodes: bool, services: bool) -> Iterator[bytes]:
    """Text of the series of each node and each service; nothing before the scorer is ready."""
    if not scorer.status().ready:
        return
    if nodes:
        figures = scorer.node_figures()
        yield from (text.encode() for text in node_text(figures))
        counts = np.bincount(figures.level, minlength=len(Level)) if len(figures.level) else [0] * len(Level)
        family = GaugeMetricFamily(
            "forecast_degradation_level_nodes", "Nodes at each degradation level.", labels=["level"]
        )
        for level in Level:
            family.add_metric([str(int(level))], float(counts[level]))
        yield _text(family)
    if services:
        yield from (text.encode() for text in service_text(*scorer.service_peaks()))


class StateCollector(Collector):
    """Gauges of the scorer's state."""

    def __init__(
        self, status: Callable[[], Status], backtest_loss: Callable[[], Mapping[tuple[str, str], float]] = dict
    ) -> None:
        self._status, self._backtest_loss = status, backtest_loss

    def collect(self) -> Iterator[Metric]:
        """Read the state once."""
        status = self._status()
        yield GaugeMetricFamily("forecast_ready", "1 = the cluster was read completely.", value=float(status.ready))
        yield GaugeMetricFamily(
            "forecast_degradation_level",
            "Level of the cluster as a whole: 0 fresh, 1 no live correction, 2 old model, 3 requests, 4 neutral.",
            value=float(status.level),
        )
        neutral = GaugeMetricFamily(
            "forecast_score_neutral",
            "1 = the score is the same for all nodes now, because there is no_model, an old_model, no_usage, or an "
            "old_state of the cluster; other scores have no series.",
            labels=["score", "because"],
        )
        for score, because in status.neutral_scores.items():
            neutral.add_metric([score, because], 1.0)
        yield neutral
        yield from _water_levels(status.water_levels)
        yield GaugeMetricFamily(
            "forecast_unknown_service_pods", "Pods whose service the model does not know.", status.unknown_service_pods
        )
        for name, text, value in (
            (
                "forecast_model_age_seconds",
                "Age of the model in use.",
                None if status.model is None else status.model.age_seconds,
            ),
            ("forecast_cluster_state_age_seconds", "Time since the API server was heard of.", status.state_age_seconds),
            ("forecast_usage_age_seconds", "Age of the latest polled usage.", status.metrics_age_seconds),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)
        if status.model is not None:
            info = GaugeMetricFamily("forecast_model_info", "The model in use; always 1.", labels=["version"])
            info.add_metric([status.model.version], 1.0)
            yield info
            findings = GaugeMetricFamily(
                "forecast_model_findings",
                "1 for each kind of finding of the run that made the model in use; no series = it found nothing.",
                labels=["finding"],
            )
            for name in dict.fromkeys(one.finding for one in status.model.findings):
                findings.add_metric([name], 1.0)
            yield findings
        refused = status.refused_model is not None or (status.model is not None and status.model.refused is not None)
        yield GaugeMetricFamily("forecast_model_refused", "1 = a newer model was refused.", value=float(refused))
        objects = GaugeMetricFamily("forecast_cluster_objects", "Objects in the scorer's tables.", labels=["kind"])
        for kind in ("nodes", "pods", "services"):
            objects.add_metric([kind], float(getattr(status, kind)))
        yield objects
        yield GaugeMetricFamily("forecast_measured_nodes", "Nodes measured recently.", value=status.measured_nodes)
        yield GaugeMetricFamily(
            "forecast_unread_capacity_annotations",
            "Nodes whose capacity annotation has entries that cannot be read; its other entries count.",
            value=status.unread_capacities,
        )
        yield GaugeMetricFamily(
            "forecast_pods_beyond_nodes",
            "Pods that request or declare more than their node has, or than any node: they count as what it has.",
            value=status.pods_beyond_nodes,
        )
        losses = GaugeMetricFamily(
            "forecast_backtest_loss",
            "Pinball loss of the daily peaks of services, relative to the peaks, as published with the model in use.",
            labels=["resource", "quantile"],
        )
        for key, loss in self._backtest_loss().items():
            losses.add_metric(list(key), loss)
        yield losses
        if status.last_check is not None:
            yield GaugeMetricFamily(
                "forecast_self_check_drift",
                "Differences between the tables and their rebuild at the last self-check; 0 = sound.",
                value=float(len(status.last_check.drift)),
            )


def _water_levels(pools: Sequence[PoolLevel]) -> Iterator[Metric]:
    level = GaugeMetricFamily(
        "forecast_water_level",
        "Share of the allocatable of a pool of nodes that is requested, of its fullest resource.",
        labels=["pool"],
    )
    stack = GaugeMetricFamily(
        "forecast_stack_weight",
        "How much the score spread_or_stack stacks in a pool of nodes: 0 = it spreads, 1 = it stacks.",
        labels=["pool"],
    )
    for one in pools:
        level.add_metric([one.pool], one.water_level)
        stack.add_metric([one.pool], one.stack_weight)
    yield level
    yield stack


class _One(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


def _text(family: Metric) -> bytes:
    registry = CollectorRegistry()
    registry.register(_One(family))
    return generate_latest(registry)
