"""Metrics of the GPU profile: how broken idle cards are, and offline pods on GPU nodes. Register the collectors with
the registry of the service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.readable_tables import ReadableTables
from cluster.tables.state import ClusterState
from kube.client.eviction import Evicted
from placement.devices.device_table import DeviceTable
from profiles.gpu.fragmentation.cost_table import states_of_rows
from profiles.gpu.fragmentation.fragmentation import MixColumns, fragmentation
from profiles.gpu.fragmentation.live_mix import LiveMix
from profiles.gpu.fragmentation.pod_shapes import WHOLE
from profiles.gpu.idle_cpu.gpu_node_pods import KEPT_RESOURCES
from profiles.gpu.idle_cpu.idle_cpu import IdleCpu
from profiles.gpu.idle_cpu.offline_eviction import OfflineEviction


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
    evictions.add_metric(["reported"], care.n_would_go)
    yield evictions


class FragmentationGauges(Collector):
    """For any thread. locked: takes the lock of the tables."""

    def __init__(
        self,
        state: ClusterState,
        devices: DeviceTable,
        live_mix: LiveMix,
        *,
        locked: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._state, self._devices, self._live_mix, self._locked = state, devices, live_mix, locked

    def collect(self) -> Iterator[Metric]:
        by_model = GaugeMetricFamily(
            "forecast_gpu_fragmented_thousandths",
            "Idle thousandths of cards that a pod of the live mix is expected not to be able to use, by card model.",
            labels=["model"],
        )
        share = GaugeMetricFamily(
            "forecast_gpu_fragmented_share",
            "Idle cards that a pod of the live mix is expected not to be able to use, as a share of all cards, 0..1.",
        )
        fragmented, total = self._fragmented()
        for model, amount in fragmented.items():
            by_model.add_metric([model], amount)
        share.add_metric([], sum(fragmented.values()) / total if total else 0.0)
        yield by_model
        yield share

    def _fragmented(self) -> tuple[dict[str, float], float]:
        """By model, and thousandths of all cards."""
        with self._locked():
            mix, devices = self._live_mix.mix(), self._devices
            rows = np.flatnonzero(devices.n_cards)
            models = list(devices.models)
            if mix is None or not len(rows):
                return {}, 0.0
            nodes = states_of_rows(self._state, devices, rows)
        amounts = fragmentation(MixColumns(mix, models), nodes)
        by_model = np.bincount(nodes.model + 1, weights=amounts, minlength=len(models) + 1)  # the first: unknown
        names = ["", *models]
        seen = np.unique(nodes.model + 1)
        return {names[at]: float(by_model[at]) for at in seen}, float(WHOLE * nodes.n_devices.sum())
