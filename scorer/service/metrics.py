"""The metrics of the scorer, docs/http-api.md lists them. One registry per application, nothing global."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scorer.answers import ScorerApi, Status
from scorer.degradation import Level
from scorer.service.exposition import node_text, service_text
from scorer.service.options import ServiceOptions

__all__ = ["ServiceMetrics"]

_STAGES = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_REQUESTS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class ServiceMetrics:
    """What is counted while serving, and what is read from the scorer when somebody looks."""

    def __init__(self, scorer: ScorerApi, options: ServiceOptions) -> None:
        self._scorer, self._options = scorer, options
        self.registry = CollectorRegistry()
        self._stages = Histogram(
            "forecast_scheduling_duration_seconds",
            "Time that one stage of an answer to a scheduler took.",
            ["stage"],
            buckets=_STAGES,
            registry=self.registry,
        )
        for stage in ("decode", "score", "encode", "explain"):
            self._stages.labels(stage)
        self._requests = Counter(
            "forecast_scorer_http_requests",
            "HTTP requests by route and status; status 0 = the client left before the answer.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._durations = Histogram(
            "forecast_scorer_http_request_duration_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ["route"],
            buckets=_REQUESTS,
            registry=self.registry,
        )
        self.registry.register(_StateCollector(self))
        ProcessCollector(registry=self.registry)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._stages.labels(name).observe(time.perf_counter() - began)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._durations.labels(route).observe(seconds)

    def status(self) -> Status:
        """Of the scorer."""
        return self._scorer.status()

    def backtest_loss(self) -> dict[tuple[str, str], float]:
        """Of the model."""
        return dict(self._scorer.backtest_loss())

    def render(self) -> bytes:
        """Prometheus text format 0.0.4. Takes a moment with many nodes: not for the event loop."""
        parts = [generate_latest(self.registry)]
        if self._scorer.status().ready:
            if self._options.node_metrics:
                figures = self._scorer.node_figures()
                parts += [text.encode() for text in node_text(figures)]
                counts = np.bincount(figures.level, minlength=len(Level)) if len(figures.level) else [0] * len(Level)
                family = GaugeMetricFamily(
                    "forecast_degradation_level_nodes", "Nodes at each degradation level.", labels=["level"]
                )
                for level in Level:
                    family.add_metric([str(int(level))], float(counts[level]))
                parts.append(_text(family))
            if self._options.service_metrics:
                parts += [text.encode() for text in service_text(*self._scorer.service_peaks())]
        return b"".join(parts)


class _StateCollector(Collector):
    """Gauges of the scorer's state."""

    def __init__(self, metrics: ServiceMetrics) -> None:
        self._metrics = metrics

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask the scorer."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the state once."""
        status = self._metrics.status()
        yield GaugeMetricFamily("forecast_ready", "1 = the cluster was read completely.", value=float(status.ready))
        yield GaugeMetricFamily(
            "forecast_degradation_level",
            "Level of the cluster as a whole: 0 fresh, 1 no live correction, 2 old model, 3 requests, 4 neutral.",
            value=float(status.level),
        )
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
        refused = status.refused_model is not None or (status.model is not None and status.model.refused is not None)
        yield GaugeMetricFamily("forecast_model_refused", "1 = a newer model was refused.", value=float(refused))
        objects = GaugeMetricFamily("forecast_cluster_objects", "Objects in the scorer's tables.", labels=["kind"])
        for kind in ("nodes", "pods", "services"):
            objects.add_metric([kind], float(getattr(status, kind)))
        yield objects
        yield GaugeMetricFamily("forecast_measured_nodes", "Nodes measured recently.", value=status.measured_nodes)
        losses = GaugeMetricFamily(
            "forecast_backtest_loss",
            "Pinball loss of the daily peaks of services, relative to the peaks, as published with the model in use.",
            labels=["resource", "quantile"],
        )
        for key, loss in self._metrics.backtest_loss().items():
            losses.add_metric(list(key), loss)
        yield losses
        if status.last_check is not None:
            yield GaugeMetricFamily(
                "forecast_self_check_drift",
                "Differences between the tables and their rebuild at the last self-check; 0 = sound.",
                value=float(len(status.last_check.drift)),
            )


class _One(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


def _text(family: Metric) -> bytes:
    registry = CollectorRegistry()
    registry.register(_One(family))
    return generate_latest(registry)
