"""From pieces of the kubelet's log gauge to log bytes per second of pods. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats, Floats32
from base.errors import InputError
from trainer.history.cleaning import Cause, Tally
from trainer.history.layout import Layout
from trainer.prometheus.day_grid import DayGrid
from trainer.prometheus.log_gauge import container_log_rates, pod_log_rates
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.pods_of_day import PodsOfDay

_Container = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class LogOfGauge:
    """rates: (n_pods, n_ticks) bytes/s. blind: (n_pods, n_ticks) there is a gauge, yet what was logged is unknown."""

    rates: Floats32
    blind: Bools


def log_of_gauge(
    parts: Sequence[Matrix], pods: PodsOfDay, grid: DayGrid, rotation_cap_bytes: float, tally: Tally
) -> LogOfGauge:
    """parts: the gauge per container, from tick -1 on."""
    row = {pod: number for number, pod in enumerate(pods.pods)}
    containers: dict[_Container, int] = {}
    numbers = [
        np.array([containers.setdefault(_container(labels), len(containers)) for labels in part.labels], dtype=np.int64)
        for part in parts
    ]
    gauge: Floats = np.full((len(containers), grid.n_ticks + 1), np.nan)
    for part, number in zip(parts, numbers, strict=True):
        gauge[number[part.series], part.tick + 1] = part.values
    kept = np.array([(namespace, pod) in row for namespace, pod, _ in containers], dtype=bool)
    gauge = gauge[kept]
    pod = np.array([row[c[:2]] for c in containers if c[:2] in row], dtype=np.int64)
    rates, saturated = container_log_rates(gauge, step_seconds=grid.step_seconds, rotation_cap_bytes=rotation_cap_bytes)
    tally.add(Layout.usage, Cause.LOG_SATURATED, int(np.count_nonzero(saturated)))
    of_pods = pod_log_rates(rates, gauge, pod, len(pods.pods))
    there = np.zeros(of_pods.shape, dtype=bool)
    np.logical_or.at(there, pod, np.isfinite(gauge[:, 1:]))
    return LogOfGauge(of_pods.astype(np.float32), there & np.isnan(of_pods))


def _container(labels: Mapping[str, str]) -> _Container:
    names = labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", "")
    if not all(names):
        raise InputError(
            f"the kubelet's log gauge lacks the label namespace, pod or container (labels found: "
            f"{', '.join(sorted(labels)) or 'none'}): set honorLabels: true on the scrape of the kubelet, or choose "
            "another prometheus.log_source"
        )
    return names
