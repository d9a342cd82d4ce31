"""The threads around the rules about nodes, and the metrics of devices, gangs and NUMA zones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kubernetes.client import ApiClient
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from base.periodic_task import PeriodicTask
from placement.devices.device_table import DeviceTable
from placement.node_rules import NodeRules
from placement.pod_groups.pod_group import MOST_LEVELS
from placement.topology.gang_topology import GangTopology
from placement.topology.zone_table import ZoneTable
from scorer.scorer import Scorer
from serving.threads import Upkeep

_LOOK_SECONDS: Final = 1.0


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


class DeviceCollector(Collector):
    """Reads the figures at each scrape, without the lock: each is right by itself."""

    def __init__(self, devices: DeviceTable) -> None:
        self._devices = devices

    def collect(self) -> Iterator[Metric]:
        devices = GaugeMetricFamily(
            "forecast_gpu_devices", "Devices that nodes have, by model; empty = no label says it.", labels=["model"]
        )
        allocated = GaugeMetricFamily(
            "forecast_gpu_allocated_thousandths",
            "Thousandths of devices that pods have, assumed ones included, by model.",
            labels=["model"],
        )
        for model, (n, held) in sorted(self._devices.devices_by_model().items()):
            devices.add_metric([model], float(n))
            allocated.add_metric([model], float(held))
        yield from (devices, allocated)
        yield GaugeMetricFamily(
            "forecast_gpu_device_conflicts",
            "Devices of which pods have more than there is, or that pods have and that are gone.",
            value=float(self._devices.conflicts()),
        )


def node_rule_upkeep(
    rules: NodeRules, scorer: Scorer, *, api: ApiClient | None = None, after: Callable[[], bool]
) -> Upkeep:
    """Return what looks at the rules every second in every replica: one that takes over knows what is scarce.

    api   : for lists and watches; None = the rules read nothing beyond nodes and pods
    after : whether the cluster was read
    """

    def look() -> None:
        with scorer.tables.reading():
            rules.look()

    return Upkeep(
        [*(() if api is None else rules.sources(api)), PeriodicTask("node-rules", _LOOK_SECONDS, look, after=after)],
        [
            DeviceCollector(rules.devices),
            rules.cards.collector,
            rules.groups.collector,
            TopologyCollector(rules.topology.gangs, rules.topology.zones),
        ],
    )
