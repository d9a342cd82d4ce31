"""What a plan believes the nodes will use: by a forecast, with its bound, or by the true future, without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import node_load
from forecast.history import Placements
from forecast.resources import RESOURCES
from rebalancer.trajectory.daily_forecasts import DailyForecasts
from rebalancer.trajectory.forecast_placing import jobs_from, requests_of_services
from scorer.replay.curves import CurveForecast
from scorer.replay.recording import Recording
from scorer.replay.rules import replicas_to_come
from scorer.replay.running_cluster import RunningCluster


@dataclass(frozen=True, slots=True)
class Outlook:
    """The half hours ahead.

    load, margin : (n_nodes, n_resources, n_slots) expected usage, and its upper bound less that; base units
    usage        : (n_profiles, n_resources, n_slots) of one pod
    profile      : (n_pods,) row of `usage` of each pod that was asked about
    """

    load: AnyFloats
    margin: AnyFloats
    usage: AnyFloats
    profile: Ints


class LooksAhead(Protocol):
    """Says what is to come."""

    def ahead(self, slot: int, n_slots: int, cluster: RunningCluster, pods: Ints) -> Outlook:
        """From `slot` of the trajectory on. pods : (n_pods,) all that run now."""


class ByForecast:
    """Implements LooksAhead by forecasts of what was known at the last midnight."""

    def __init__(self, forecasts: DailyForecasts, recording: Recording) -> None:
        self._forecasts, self._recording = forecasts, recording

    def ahead(self, slot: int, n_slots: int, cluster: RunningCluster, pods: Ints) -> Outlook:
        recording, (day, of_day) = self._recording, divmod(slot, SLOTS_PER_DAY)
        service, node = recording.service[pods], cluster.node[pods]
        replicas = np.bincount(service, minlength=recording.n_services).astype(np.float64)
        whole = self._forecasts.of(day, replicas, requests_of_services(recording, pods))
        forecast = whole.between(of_day, of_day + n_slots)
        ends = jobs_from(recording, whole, slot - of_day).end[pods] - of_day
        there = Placements(pods, service, node, np.zeros_like(pods), np.clip(ends, 1, forecast.mean.shape[2]))
        cluster.state.arriving = np.zeros(recording.n_services)
        base = forecast.base + replicas_to_come(forecast, cluster.state)
        load, margin = _load_and_margin(forecast, there, base)
        return Outlook(load, margin, forecast.mean, service)


class ByTruth:
    """Implements LooksAhead by what really came: each pod by its own usage, until its true end."""

    def __init__(self, recording: Recording, truth: CurveForecast) -> None:
        """
        truth : curves.true_future of the recording
        """
        self._recording, self._truth = recording, truth

    def ahead(self, slot: int, n_slots: int, cluster: RunningCluster, pods: Ints) -> Outlook:
        truth = self._truth.between(slot, slot + n_slots)
        usage = self._recording.load[pods, :, slot : slot + n_slots].astype(np.float64)
        cluster.state.arriving = np.zeros(self._recording.n_services)
        load = truth.base + replicas_to_come(truth, cluster.state)
        np.add.at(load, cluster.node[pods], usage)
        return Outlook(load, np.zeros_like(load), usage, np.arange(len(pods)))


def _load_and_margin(forecast: CurveForecast, there: Placements, base: Floats) -> tuple[Floats, Floats]:
    """Expected load of the nodes, and the 0.95 bound of a day's peak less that: two (n_nodes, n_resources, n_slots)."""
    bound, none = forecast.bound, np.zeros(forecast.mean[:, 0].shape)
    load, margin = np.zeros(base.shape), np.zeros(base.shape)
    for r in range(len(RESOURCES)):
        found = node_load(
            there,
            forecast.mean[:, r],
            none if bound is None else bound.own_variance[:, r],
            none if bound is None else bound.shared_variance[:, r],
            base[:, r],
            np.zeros(base[:, r].shape) if bound is None else bound.base_variance[:, r],
            0.0 if bound is None else float(bound.cluster_std[r]),
        )
        load[:, r] = found.mean
        margin[:, r] = 0.0 if bound is None else float(bound.z[r]) * found.std
    return load, margin
