"""The metrics of the extender, docs/use/extender.md lists them. One registry per application, nothing global."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from extender.extender_api import ExtenderApi
from scorer.scorer_api import ScorerApi
from scorer.service.node_metrics import StateCollector, scorer_series

VERBS = ("filter", "prioritize", "preempt", "bind")
OUTCOMES = ("answered", "late", "failed", "not_ready", "refused", "malformed")

_STAGES = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_REQUESTS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class ExtenderMetrics:
    """What is counted while serving, and what is read from the extender at each scrape."""

    def __init__(
        self,
        extender: ExtenderApi,
        scorer: ScorerApi | None,
        more: Iterable[Collector],
        *,
        nodes: bool = True,
        services: bool = True,
    ) -> None:
        """
        scorer : the one inside, whose series are exported; None = it runs elsewhere and exports them itself
        more   : further metrics to export
        nodes, services : whether the series of each are exported
        """
        self._scorer, self._nodes, self._services = scorer, nodes, services
        self.registry = CollectorRegistry()
        stages = Histogram(
            "forecast_scheduling_duration_seconds",
            "Time that one stage of an answer to a scheduler took.",
            ["stage"],
            buckets=_STAGES,
            registry=self.registry,
        )
        self._stages = {stage: stages.labels(stage) for stage in ("decode", "encode", "prepare", *VERBS)}
        requests = Counter(
            "forecast_extender_requests",
            "Requests of kube-scheduler by verb and outcome; late, failed and not_ready ones got a neutral answer.",
            ["verb", "outcome"],
            registry=self.registry,
        )
        self._requests = {(verb, outcome): requests.labels(verb, outcome) for verb in VERBS for outcome in OUTCOMES}
        late = Counter(
            "forecast_extender_late",
            "Requests that were not answered in earnest because the deadline had passed.",
            ["verb"],
            registry=self.registry,
        )
        self._late = {verb: late.labels(verb) for verb in VERBS}
        self._http = Counter(
            "forecast_extender_http_requests",
            "HTTP requests by route and status; status 0 = the client left before the answer.",
            ["route", "status"],
            registry=self.registry,
        )
        self._durations = Histogram(
            "forecast_extender_http_request_duration_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ["route"],
            buckets=_REQUESTS,
            registry=self.registry,
        )
        self.registry.register(
            StateCollector(extender.status) if scorer is None else StateCollector(scorer.status, scorer.backtest_loss)
        )
        ProcessCollector(registry=self.registry)
        for collector in more:
            self.registry.register(collector)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self._stages[name].observe(time.perf_counter() - began)

    def count(self, verb: str, outcome: str) -> None:
        """Count a request of kube-scheduler."""
        self._requests[verb, outcome].inc()
        if outcome == "late":
            self._late[verb].inc()

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an HTTP request."""
        self._http.labels(route, str(status)).inc()
        self._durations.labels(route).observe(seconds)

    def render(self) -> bytes:
        """Prometheus text format 0.0.4. Takes a moment with many nodes: not for the event loop."""
        series: Iterable[bytes] = ()
        if self._scorer is not None:
            series = scorer_series(self._scorer, nodes=self._nodes, services=self._services)
        return b"".join([generate_latest(self.registry), *series])
