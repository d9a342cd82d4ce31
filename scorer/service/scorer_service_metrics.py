"""The metrics of the scorer, docs/use/http-api.md lists them. One registry per application, nothing global."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from scorer.scorer_api import ScorerApi
from scorer.service.node_metrics import StateCollector, scorer_series
from scorer.service.scorer_service_settings import ScorerServiceOptions

_STAGES = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_REQUESTS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def stage_histogram(buckets: Sequence[float] = _STAGES) -> Histogram:
    """forecast_scheduling_duration_seconds, of which a process has one; it is in no registry yet."""
    return Histogram(
        "forecast_scheduling_duration_seconds",
        "Time that one stage of scheduling a pod, or of an answer to a scheduler, took.",
        ["stage"],
        buckets=buckets,
        registry=None,
    )


class ScorerServiceMetrics:
    """What is counted while serving, and what is read from the scorer at each scrape."""

    def __init__(
        self,
        scorer: ScorerApi,
        options: ScorerServiceOptions,
        more: Iterable[Collector] = (),
        *,
        stages: Histogram | None = None,
    ) -> None:
        """
        more   : further metrics to export
        stages : where other parts of this process time their stages, too; None = none does
        """
        self._scorer, self._options = scorer, options
        self.registry = CollectorRegistry()
        self._stages = stage_histogram() if stages is None else stages
        self.registry.register(self._stages)
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
        self.registry.register(StateCollector(scorer.status, scorer.backtest_loss))
        for collector in (scorer.lock_collector(), *more):
            self.registry.register(collector)
        ProcessCollector(registry=self.registry)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self._stages.labels(name).observe(time.perf_counter() - began)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._durations.labels(route).observe(seconds)

    def render(self) -> bytes:
        """Prometheus text format 0.0.4. Takes a moment with many nodes: not for the event loop."""
        series = scorer_series(self._scorer, nodes=self._options.node_metrics, services=self._options.service_metrics)
        return b"".join([generate_latest(self.registry), *series])
