"""Reports decisions: as Events, a few a second at most, and as figures for /metrics.

Needs `create` on events.events.k8s.io in every namespace that has pods (docs/start/shadow.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.degradation import Level
from kube.events.event_recorder import EventRecorder, Post
from placement.decisions.decision import Binding, decision_of, note_of, slimmed
from placement.decisions.decision_log import DecisionLog
from placement.decisions.recorder import DecisionRecorder

_MAX_WAITING = 200


class EventSink(EventRecorder):
    """Takes bindings from any thread, posts them in its own."""

    def __init__(self, post: Post, *, controller: str, instance: str, rate: float = 5.0, burst: float = 50.0) -> None:
        """controller: the component that decides, as events name it; see EventRecorder for the others."""
        super().__init__(
            post,
            what="decisions",
            instance=instance,
            controller=controller,
            rate=rate,
            burst=burst,
            max_waiting=_MAX_WAITING,
        )

    def take(self, binding: Binding) -> None:
        """Post it soon, if events are not too many already. Never waits. A shadow leaves no traces on pods."""
        advice = binding.advice
        if advice.is_shadow:
            return
        if len(advice.nodes) > 1_000:  # 200 of them would hold tens of megabytes
            binding = replace(binding, advice=slimmed(advice))
        namespace, _, name = advice.pod.partition("/")
        regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": advice.uid}
        self.record(
            regarding,
            "ForecastScheduled",
            lambda: note_of(decision_of(binding)),
            is_warning=False,
            at=binding.at,
        )


class DecisionCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(
        self, recorder: DecisionRecorder, log: DecisionLog | None, events: EventSink | None, *, is_shadow: bool
    ) -> None:
        """is_shadow: of the process, and so of all its advice: kube-scheduler does not get it."""
        self._recorder, self._log, self._events = recorder, log, events
        self._mode = "shadow" if is_shadow else "active"

    def collect(self) -> Iterator[Metric]:
        figures = self._recorder.figures()
        yield _counters(
            "forecast_decisions",
            "Pods by what became of our advice: bound as_advised or elsewhere, bound although not_advised by us, "
            "expired without being bound, dropped because too many waited. mode is active, or shadow if kube-scheduler "
            "does not get the advice.",
            {
                "as_advised": figures.as_advised,
                "elsewhere": figures.elsewhere,
                "not_advised": figures.not_advised,
                "expired": figures.expired,
                "dropped": figures.dropped,
            },
            mode=self._mode,
        )
        levels = CounterMetricFamily(
            "forecast_decisions_by_level",
            "Pods bound after our advice, by the level of degradation at which it was given, as in "
            "forecast_degradation_level. mode is active, or shadow if kube-scheduler does not get the advice.",
            labels=["level", "mode"],
        )
        for level in Level:
            levels.add_metric([str(int(level)), self._mode], float(figures.levels.get(level.name.lower(), 0)))
        yield levels
        yield GaugeMetricFamily(
            "forecast_decisions_pending", "Pods advised on and not yet seen bound.", value=float(figures.pending)
        )
        if self._log is not None:
            log = self._log.figures
            yield _counters(
                "forecast_decision_log_lines",
                "Decisions for the log: written, dropped because the disk was too slow, failed.",
                {"written": log.written, "dropped": log.dropped, "failed": log.failed},
            )
        if self._events is not None:
            yield _counters(
                "forecast_decision_events",
                "Events on pods: posted, limited by the rate, dropped because the API server was too slow, failed.",
                asdict(self._events.figures),
            )


def _counters(name: str, text: str, values: Mapping[str, int], **others: str) -> Metric:
    """values: by outcome; others: labels that all of them have."""
    family = CounterMetricFamily(name, text, labels=["outcome", *others])
    for outcome, value in values.items():
        family.add_metric([outcome, *others.values()], float(value))
    return family
