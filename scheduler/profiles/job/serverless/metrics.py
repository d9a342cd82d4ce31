"""Providers and their pods, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scheduler.profiles.job.serverless.pod_start_state import Failure
from scheduler.profiles.job.serverless.pod_takeback import TakebackOutcome
from scheduler.profiles.job.serverless.start_watch import ProviderWatch
from scheduler.profiles.job.serverless.tables import ProviderTables

_GIB = 2.0**30


class ServerlessCollector(Collector):
    """Reads the figures at each scrape, without the lock: each is right by itself."""

    def __init__(
        self, tables: ProviderTables, watch: ProviderWatch | None, *, clock: Callable[[], float] = time.time
    ) -> None:
        """watch: None = nothing is taken back."""
        self._tables, self._watch, self._clock = tables, watch, clock

    def collect(self) -> Iterator[Metric]:
        gauges = {
            "pods": "Pods of ours that sit on the virtual nodes of a provider.",
            "starting": "Pods of these that are bound, or about to be, and have not started.",
            "cpu_cores": "Cores that these pods request.",
            "memory_gib": "GiB of memory that these pods request.",
            "spend_per_hour": "What these pods cost in an hour by the prices in the settings.",
            "backoff_seconds": "Seconds until a provider is tried again; 0 = it gets pods.",
        }
        made = {
            name: GaugeMetricFamily(f"forecast_job_provider_{name}", text, labels=["provider"])
            for name, text in gauges.items()
        }
        now = self._clock()
        for use, health in zip(self._tables.uses, self._tables.healths, strict=True):
            remaining = max(0.0, health.until - now) if health.room(now) == 0 and health.is_backing_off else 0.0
            values = (use.pods, len(use.starting), use.cpu / 1000, use.memory / _GIB, use.spend_per_hour, remaining)
            for family, value in zip(made.values(), values, strict=True):
                family.add_metric([use.provider.name], float(value))
        yield from made.values()
        failures = CounterMetricFamily(
            "forecast_job_provider_failures",
            "Pods that a provider rejected, has not started in time, or whose node was lost before.",
            labels=["provider", "failure"],
        )
        counted = self._tables.failures
        for use in self._tables.uses:
            for failure in Failure:
                failures.add_metric([use.provider.name, failure.value], float(counted[use.provider.name, failure]))
        yield failures
        if self._watch is None:
            return
        outcomes = CounterMetricFamily(
            "forecast_job_provider_taken_back",
            "Pods that have not started and were to be deleted, for their controllers to make them anew.",
            labels=["provider", "outcome"],
        )
        done = self._watch.outcomes
        for use in self._tables.uses:
            for outcome in TakebackOutcome:
                outcomes.add_metric([use.provider.name, outcome.value], float(done[use.provider.name, outcome]))
        yield outcomes
