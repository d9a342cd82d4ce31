"""Offline pods on GPU nodes, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.readable_tables import ReadableTables
from kube.eviction.eviction import Evicted
from scheduler.profiles.gpu.idle_cpu.gpu_node_pods import KEPT_RESOURCES
from scheduler.profiles.gpu.idle_cpu.idle_cpu import IdleCpu
from scheduler.profiles.gpu.idle_cpu.offline_eviction import OfflineEviction


class IdleCpuCollector(Collector):
    """Sums are made at each scrape, under the lock of the tables: a millisecond at most."""

    def __init__(self, tables: ReadableTables, idle_cpu: IdleCpu, care: OfflineEviction | None) -> None:
        """care: None = no pod is evicted."""
        self._tables, self._idle_cpu, self._care = tables, idle_cpu, care

    def collect(self) -> Iterator[Metric]:
        """Of all nodes with GPUs."""
        with self._tables.reading() as cluster:
            n_pods, cores = self._idle_cpu.offline_there()
            kept = self._idle_cpu.kept(cluster.state)[cluster.state.alive].sum(axis=0)
        amounts = dict(zip(KEPT_RESOURCES, kept.tolist(), strict=True))
        yield GaugeMetricFamily("forecast_gpu_offline_pods", "Offline pods that sit on nodes with GPUs.", value=n_pods)
        yield GaugeMetricFamily("forecast_gpu_offline_cpu_cores", "Cores that these pods request.", value=cores)
        yield GaugeMetricFamily(
            "forecast_gpu_kept_cpu_cores",
            "Cores that are kept from offline pods for GPUs that are idle.",
            value=amounts["cpu"] / 1000,
        )
        yield GaugeMetricFamily(
            "forecast_gpu_kept_memory_bytes",
            "Memory that is kept from offline pods for GPUs that are idle.",
            value=amounts["memory"],
        )
        if self._care is not None:
            yield from _of_care(self._care)


def _of_care(care: OfflineEviction) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "forecast_gpu_strained_nodes",
        "Nodes with GPUs and offline pods whose CPU load passes the ceiling, or soon will.",
        value=care.n_strained,
    )
    yield GaugeMetricFamily(
        "forecast_gpu_unrelieved_nodes",
        "Of these, nodes whose offline pods cannot be evicted at the moment.",
        value=care.n_unrelieved,
    )
    evictions = CounterMetricFamily(
        "forecast_gpu_offline_evictions",
        "Evictions of offline pods from nodes with GPUs, by what became of them; told: a dry run.",
        labels=["outcome"],
    )
    counted = care.evictions
    for outcome in Evicted:
        evictions.add_metric([outcome.value], counted.get(outcome, 0))
    evictions.add_metric(["told"], care.n_would_go)
    yield evictions
