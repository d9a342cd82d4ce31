"""Overcommits and their repairs, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.eviction.eviction import Evicted
from scheduler.overcommit.overcommit import Cause
from scheduler.overcommit.overcommitted_nodes import OvercommitWatch
from scheduler.overcommit.repair_executor import OvercommitRepair


class OvercommitCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, watch: OvercommitWatch, repair: OvercommitRepair | None) -> None:
        """repair: None = nothing is repaired."""
        self._watch, self._repair = watch, repair

    def collect(self) -> Iterator[Metric]:
        total = CounterMetricFamily(
            "forecast_overcommits",
            "Times that a node came to have more requested than allocatable: by bindings on nodes that are our own or "
            "shared, or because it has shrunk.",
            labels=["cause"],
        )
        nodes = GaugeMetricFamily(
            "forecast_overcommitted_nodes", "Nodes with more requested than allocatable.", labels=["cause"]
        )
        counts, standing = self._watch.counts, Counter(one.cause for one in self._watch.standing)
        for cause in Cause:
            total.add_metric([cause.value], float(counts.get(cause, 0)))
            nodes.add_metric([cause.value], float(standing[cause]))
        yield total
        yield nodes
        if self._repair is None:
            return
        yield GaugeMetricFamily(
            "forecast_overcommits_unrepaired",
            "Overcommitted nodes on which no pod of ours that may be evicted would help.",
            value=float(self._repair.unrepaired),
        )
        evictions = CounterMetricFamily(
            "forecast_overcommit_evictions",
            "Evictions asked for to repair a node: evicted, refused by a disruption budget, failed, unknown when there "
            "was no answer.",
            labels=["outcome"],
        )
        asked = self._repair.evictions
        for outcome in Evicted:
            evictions.add_metric([outcome.value], float(asked.get(outcome, 0)))
        yield evictions
