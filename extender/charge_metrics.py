"""How often kube-scheduler took the node that a pod was charged to, for /metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.extender import Extender


class ChargeCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, extender: Extender) -> None:
        self._extender = extender

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "forecast_extender_charges",
            "Pods charged before their binding was seen, by whether kube-scheduler took that node (right) or another "
            "(wrong). Many wrong ones: extender.weight is not that of the KubeSchedulerConfiguration, or its profile "
            "has other scores than the default.",
            labels=["outcome"],
        )
        right, wrong = self._extender.charges
        family.add_metric(["right"], float(right))
        family.add_metric(["wrong"], float(wrong))
        yield family
