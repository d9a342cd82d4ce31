"""Log bytes per second of pods from the kubelet's gauge of log files on disk. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from base.arrays import Bools, Floats, Floats32, Ints
from base.errors import InputError
from trainer.history.cleaning import CleaningCause, Tally
from trainer.history.history_layout import Layout
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.pods_of_day import PodsOfDay
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.query_times import DayGrid

# Log bytes per second from the size of log files on disk, the kubelet's gauge. Pure.
#
# The size grows by what is logged until the kubelet rotates: it then renames the file, compresses the older ones and
# deletes the oldest, so the size falls by an unknown amount (docs of containerLogMaxSize and containerLogMaxFiles:
# https://kubernetes.io/docs/concepts/cluster-administration/logging/#log-rotation). Rules, per container:
#
#     growth               bytes logged in that step
#     fall                 rotation: that step is not measured
#     saturated            two or more falls within half an hour, or at the cap without growth: not measured, counted
#
# A file far above the cap says that the cap is not in force (Docker does not rotate by default): nothing is stuck
# there.

DEFAULT_ROTATION_CAP_BYTES = SourceOptions().log_rotation_cap_bytes
"""containerLogMaxFiles x containerLogMaxSize as the kubelet has them by default."""

_NEAR_CAP, _BEYOND_CAP = 0.9, 1.5
_HALF_WINDOW_SECONDS = 900
_FALLS = 2

_Container = tuple[str, str, str]


def container_log_rates(gauge: Floats, *, step_seconds: int, rotation_cap_bytes: float) -> tuple[Floats, Bools]:
    """Rates and what of them is saturated.

    gauge : (n_containers, n_ticks + 1) bytes at the ticks and at the one before them; NaN = no sample
    Returns (n_containers, n_ticks) bytes/s, NaN = not measured, and (n_containers, n_ticks) saturated.
    """
    growth = np.diff(gauge, axis=1)  # (n_containers, n_ticks)
    capped = np.fmax.reduce(gauge, axis=1, initial=0.0, keepdims=True) <= _BEYOND_CAP * rotation_cap_bytes
    with np.errstate(invalid="ignore"):
        falls = growth < 0
        stuck = capped & (gauge[:, 1:] >= _NEAR_CAP * rotation_cap_bytes) & (growth <= 0)
    saturated = stuck | (_in_window(falls, _HALF_WINDOW_SECONDS // step_seconds) >= _FALLS)
    rates = np.where(falls | saturated, np.nan, growth / step_seconds)
    return rates, saturated & np.isfinite(gauge[:, 1:])


def pod_log_rates(rates: Floats, gauge: Floats, pod: Ints, n_pods: int) -> Floats:
    """Sum over the containers of each pod, (n_pods, n_ticks); not measured while one of them is not.

    rates, gauge : as above
    pod          : (n_containers,) row of the pod
    A container that is there at neither end of a step is none of the pod's at that time.
    """
    there = np.isfinite(gauge[:, 1:]) | np.isfinite(gauge[:, :-1])
    total = np.zeros((n_pods, rates.shape[1]))
    n_there = np.zeros((n_pods, rates.shape[1]), dtype=np.int64)
    np.add.at(total, pod, np.where(there, rates, 0.0))  # NaN of one container is NaN of the pod
    np.add.at(n_there, pod, there)
    total[n_there == 0] = np.nan
    return total


def _in_window(falls: Bools, radius: int) -> Ints:
    """(n_containers, n_ticks) falls within radius ticks to both sides."""
    n_ticks = falls.shape[1]
    sums = np.concatenate([np.zeros((len(falls), 1), dtype=np.int64), np.cumsum(falls, axis=1)], axis=1)
    ticks = np.arange(n_ticks)
    high, low = np.minimum(ticks + radius + 1, n_ticks), np.maximum(ticks - radius, 0)
    counts: Ints = sums[:, high] - sums[:, low]
    return counts


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
    tally.add(Layout.usage, CleaningCause.LOG_SATURATED, int(np.count_nonzero(saturated)))
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
