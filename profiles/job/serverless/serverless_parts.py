"""All that a scheduler process needs of virtual nodes: tables and plugins, made before the cluster is read, and the
threads that look after providers.

Providers and their pods, for /metrics. Register the collector with the registry of the service.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from base.periodic_task import PeriodicTask
from cluster.tables.state import ClusterState
from kube.decoding.jobs import JobInfo
from kube.objects.objects import PodInfo
from kube.session.session_calls import Session
from placement.virtual_node_settings import ServerlessOptions
from profiles.job.circuit_breaker import StartFailure
from profiles.job.failed_nodes import FailedNodes
from profiles.job.serverless.pod_takeback import Affording, TakebackOutcome
from profiles.job.serverless.provider_tables import ProviderTables
from profiles.job.serverless.serverless import Serverless
from profiles.job.serverless.start_watch import ProviderWatch, Tell
from profiles.job.serverless.taint_toleration import ProviderToleration

_GIB = 2.0**30

_SECONDS: Final = 1.0


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
            for failure in StartFailure:
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


@dataclass(frozen=True, slots=True)
class ServerlessPlugins:
    """
    tables       : Follower, to be attached before `failed_nodes`; the queue receives `tables.on_room`
    serverless   : Filter, NodePreference
    toleration   : Filter in the place of TaintToleration
    failed_nodes : Follower, and NodePreference to be asked before `serverless`: a Job that failed at a provider goes
                   to another one, or to the cluster's nodes, where both are left
    """

    tables: ProviderTables
    serverless: Serverless
    toleration: ProviderToleration
    failed_nodes: FailedNodes


def serverless_plugins(
    state: ClusterState,
    options: ServerlessOptions,
    *,
    is_ours: Callable[[PodInfo], bool],
    is_assumed: Callable[[str], bool],
    clock: Callable[[], float] = time.time,
) -> ServerlessPlugins:
    """See ProviderTables; under the lock of the tables."""
    tables = ProviderTables(state, options, is_ours=is_ours, is_assumed=is_assumed, clock=clock)
    failed_nodes = FailedNodes(state, provider_at=tables.provider_at, provider_rows=tables.rows_of, clock=clock)
    tables.on_failed.append(failed_nodes.failed)
    return ServerlessPlugins(tables, Serverless(tables, options), ProviderToleration(options), failed_nodes)


class ProviderCare:
    """watch, and `collector` for the metrics; a replica that does not lead only looks."""

    def __init__(
        self,
        plugins: ServerlessPlugins,
        session: Session,
        scheduler_names: Collection[str],
        *,
        locked: Callable[[], AbstractContextManager[object]],
        tell: Tell = lambda pod, reason, note: None,
        may_write: Callable[[], bool] = lambda: True,
        after: Callable[[], bool] = lambda: True,
        jobs: Mapping[str, JobInfo] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        locked   : takes the lock of the tables
        tell     : posts events (EventRecorder.warn)
        after    : whether the cluster has been read: must be true before the first look
        jobs     : by UID, which say how many pods they can afford to lose; None = all of them
        """
        self.watch = ProviderWatch(
            plugins.tables,
            session,
            scheduler_names,
            locked=locked,
            tell=tell,
            may_write=may_write,
            affording=None if jobs is None else Affording(jobs),
            clock=clock,
        )
        self.collector = ServerlessCollector(plugins.tables, self.watch, clock=clock)
        self._every = PeriodicTask("providers", _SECONDS, self.watch.step, after=after)

    def start(self) -> None:
        """Begin. Once only."""
        self._every.start()

    def stop(self) -> None:
        """End, once what is under way is done."""
        self._every.stop()
