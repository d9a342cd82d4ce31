"""The metrics of the webhook, docs/operate/webhook.md lists them. One registry per application, nothing global."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from admission.templates.template_set import TemplateSet
from admission.webhook.review_answers import AdmissionOutcome

MUTATE = "/mutate"

_REQUESTS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 2.0)
_MOST_BINDINGS = 5_000
_OTHERS = "(others)"
"""No name of an object has brackets."""


class WebhookMetrics:
    """What is counted while serving, and what is read from the templates in effect at each scrape."""

    def __init__(self, more: Iterable[Collector] = ()) -> None:
        """more: further metrics to export."""
        self.registry = CollectorRegistry()
        reviews = Counter(
            "forecast_webhook_reviews",
            "Questions of the API server by outcome; not_ready, failed and malformed ones leave it to failurePolicy.",
            ["outcome"],
            registry=self.registry,
        )
        self._reviews = {outcome: reviews.labels(outcome.value) for outcome in AdmissionOutcome}
        self._durations = Histogram(
            "forecast_webhook_duration_seconds",
            "Time from the first byte of a question to the last of its answer.",
            buckets=_REQUESTS,
            registry=self.registry,
        )
        self._http = Counter(
            "forecast_webhook_http_requests",
            "HTTP requests by route and status; status 0 = the client left before the answer.",
            ["route", "status"],
            registry=self.registry,
        )
        self._applied = Counter(
            "forecast_webhook_applied",
            "Pods that a binding shaped, dry runs left out.",
            ["binding"],
            registry=self.registry,
        )
        self._counted: set[str] = set()
        self._templates = _gauge("forecast_webhook_templates", "Templates that are known.", self.registry)
        self._bindings = _gauge("forecast_webhook_bindings", "Bindings that are known.", self.registry)
        self._broken = _gauge(
            "forecast_webhook_bindings_broken",
            "Bindings that apply to nobody because of a mistake; their condition Ready says which.",
            self.registry,
        )
        self._ready = _gauge("forecast_webhook_ready", "1 once templates and bindings have been read.", self.registry)
        ProcessCollector(registry=self.registry)
        for collector in more:
            self.registry.register(collector)

    def count(self, outcome: AdmissionOutcome, applied: Iterable[str] = ()) -> None:
        """Count an answered question, and the bindings that shaped the pod."""
        self._reviews[outcome].inc()
        for binding in applied:
            if binding not in self._counted and len(self._counted) >= _MOST_BINDINGS:
                binding = _OTHERS
            self._counted.add(binding)
            self._applied.labels(binding).inc()

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an HTTP request."""
        self._http.labels(route, str(status)).inc()
        if route == MUTATE:
            self._durations.observe(seconds)

    def render(self, templates: TemplateSet, ready: bool) -> bytes:
        """Prometheus text format 0.0.4, with the figures of these templates."""
        self._templates.set(len(templates.node_configs) + len(templates.pod_configs))
        self._bindings.set(len(templates.bindings))
        self._broken.set(len(templates.problems))
        self._ready.set(ready)
        for binding in self._counted - templates.bindings.keys() - {_OTHERS}:
            self._counted.discard(binding)
            self._applied.remove(binding)
        return generate_latest(self.registry)


def _gauge(name: str, text: str, registry: CollectorRegistry) -> Gauge:
    return Gauge(name, text, registry=registry)
