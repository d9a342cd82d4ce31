"""Machine groups and what is lent of them, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from placement.machine_groups.borrowers import GroupUse


class GroupCollector(Collector):
    """Reads the figures at each scrape, without the lock: each is right by itself."""

    def __init__(self, use: GroupUse) -> None:
        self._use = use

    def collect(self) -> Iterator[Metric]:
        """Of all groups that lend."""
        lent = self._use.lent()
        gauges = {
            "forecast_gpu_group_borrowing_pods": "Pods that borrow machines of a group that is not theirs.",
            "forecast_gpu_group_borrowed_thousandths": "Thousandths of cards that these pods request.",
            "forecast_gpu_group_borrowed_cpu_cores": "Cores that these pods request.",
            "forecast_gpu_group_waiting_owner_pods": "Pods of a group's owners that name it and have no node.",
        }
        families = [GaugeMetricFamily(name, text, labels=["group"]) for name, text in gauges.items()]
        for group, figures in lent.items():
            values = (figures.pods, figures.milli, figures.cpu, figures.waiting)
            for family, value in zip(families, values, strict=True):
                family.add_metric([group], float(value))
        yield from families
