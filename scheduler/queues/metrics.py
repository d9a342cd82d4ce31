"""What owners hold, as metrics: at most as many as a queue distinguishes (queue_of.py)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scheduler.queues.shares import Shares

_LABELS = ["queue", "owner"]


class ShareGauges(Collector):
    """For any thread."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares

    def collect(self) -> Iterator[Metric]:
        pods = GaugeMetricFamily(
            "forecast_queue_owner_pods", "Pods in queues that have a node, by queue and owner.", labels=_LABELS
        )
        share = GaugeMetricFamily(
            "forecast_queue_owner_dominant_share",
            "Largest share that the owner's pods in a queue request of any resource of the cluster, 0..1.",
            labels=_LABELS,
        )
        for one in self._shares.report():
            pods.add_metric([one.queue, one.owner], one.n_pods)
            share.add_metric([one.queue, one.owner], one.share)
        yield pods
        yield share
