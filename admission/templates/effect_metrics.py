"""What bindings do to predicted peaks, for /metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.templates.effects import group_effect
from admission.templates.shaped_pods import ShapedPods, seated_pods
from scorer.scorer import Scorer

MOST_EXPORTED: Final = 200
"""Bindings, those with the most pods: each has up to twelve series."""


class EffectCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, scorer: Scorer, shaped: ShapedPods) -> None:
        """shaped: attached to the scorer."""
        self._scorer, self._shaped = scorer, shaped

    def collect(self) -> Iterator[Metric]:
        """Pods and peaks by binding and group."""
        pods = GaugeMetricFamily(
            "forecast_binding_pods",
            "Pods on nodes that a SchedulerConfigBinding shaped (group shaped; canary while it is on trial), or left "
            f"alone for comparison (control). The {MOST_EXPORTED} bindings with the most pods.",
            labels=["binding", "group"],
        )
        peaks = GaugeMetricFamily(
            "forecast_binding_predicted_peak",
            "Predicted peak of the coming week of the nodes that these pods sit on, as a share of capacity, of the "
            "fullest resource: mean over the pods, and the highest.",
            labels=["binding", "group", "statistic"],
        )
        for seated in seated_pods(self._scorer, self._shaped, None, most=MOST_EXPORTED):
            for group, counts in seated.pods.items():
                effect = group_effect(seated.peaks, counts)
                labels = [seated.binding, group.value]
                pods.add_metric(labels, float(effect.pods))
                for statistic, value in (("mean", effect.mean_peak), ("highest", effect.highest_peak)):
                    if math.isfinite(value):
                        peaks.add_metric([*labels, statistic], value)
        yield pods
        yield peaks
