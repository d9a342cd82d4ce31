"""Models of cards and how scarce they are, for /metrics. Register the collector with the registry of the service."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from placement.card_types.card_scarcity import CardScarcity


class CardCollector(Collector):
    """Reads the figures at each scrape, without the lock: they are of one moment."""

    def __init__(self, scarcity: CardScarcity) -> None:
        self._scarcity = scarcity

    def collect(self) -> Iterator[Metric]:
        """Of all models that nodes have, or had."""
        latest = self._scarcity.latest
        gauges = {
            "forecast_gpu_card_scarcity_ratio": (
                "How scarce a model of cards is, 0 to 1: what is wanted by pods that cannot do with every model.",
                latest.scarcity,
            ),
            "forecast_gpu_card_scarcity_class": (
                "Class of scarcity of a model: pods that name no type go where it is lowest.",
                latest.band,
            ),
            "forecast_gpu_card_rare": (
                "1 = the model is rare: with protection hard its nodes are only for pods that name it.",
                latest.is_rare,
            ),
            "forecast_gpu_card_wanted_thousandths": (
                "Thousandths of cards wanted, now or lately, by pods that cannot do with every model.",
                latest.wanted,
            ),
            "forecast_gpu_card_waiting_thousandths": (
                "Thousandths of cards for which such pods wait.",
                latest.waiting,
            ),
        }
        for name, (text, values) in gauges.items():
            family = GaugeMetricFamily(name, text, labels=["model"])
            for model, value in zip(latest.models, values.tolist(), strict=True):
                family.add_metric([model], float(value))
            yield family
