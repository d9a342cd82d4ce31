"""Topology of gangs and of nodes, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from placement.pod_groups.group_topology import MOST_LEVELS
from placement.topology.gang_topology import GangTopology
from placement.topology.zone_table import ZoneTable


class TopologyCollector(Collector):
    """Reads the figures at each scrape, without the lock: each is right by itself."""

    def __init__(self, gangs: GangTopology | None, zones: ZoneTable | None) -> None:
        """None = that is switched off."""
        self._gangs, self._zones = gangs, zones

    def collect(self) -> Iterator[Metric]:
        if self._gangs is not None:
            domains = CounterMetricFamily(
                "forecast_gpu_gang_domains",
                "Attempts to place a gang with preferred levels, by the level at which a domain could hold it: 1 = the "
                "tightest that it names, 0 = none.",
                labels=["level"],
            )
            for level in range(MOST_LEVELS + 1):
                domains.add_metric([str(level)], float(self._gangs.chosen[level]))
            yield domains
        if self._zones is not None:
            yield GaugeMetricFamily(
                "forecast_gpu_node_topologies", "NodeResourceTopology objects that were read.", value=len(self._zones)
            )
            yield GaugeMetricFamily(
                "forecast_gpu_unsettled_pods",
                "Pods that are held against every NUMA zone of their node until it has published what they took.",
                value=self._zones.unsettled,
            )
