"""Placement by a forecast that is renewed every day, as the scorer takes up the model of last night."""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from rebalancer.trajectory.daily_forecasts import DailyForecasts
from scorer.replay.cluster_state import ClusterState, PendingPod
from scorer.replay.curves import CurveForecast
from scorer.replay.job_pods import JobPods, job_pods
from scorer.replay.recording import Recording
from scorer.replay.rules import ByCurves


def requests_of_services(recording: Recording, pods: Ints) -> Floats:
    """The largest request of each service's pods: (n_services, 2); 0 = none is among them, or nothing known.

    pods : (n_pods,) those that run
    """
    requests = np.zeros((recording.n_services, 2))
    np.maximum.at(requests, recording.service[pods], recording.requests[pods])
    return requests


class PlacingByForecasts:
    """Implements scorer.replay.rules.Rule: ByCurves, made anew on the first placement of each day."""

    def __init__(self, forecasts: DailyForecasts, recording: Recording) -> None:
        self._forecasts, self._recording = forecasts, recording
        self._day = -1
        self._today: ByCurves | None = None
        self._seats: dict[int, tuple[PendingPod, int]] = {}  # by pod

    def observe(self, slot: int, state: ClusterState) -> None:
        day = slot // SLOTS_PER_DAY
        if day != self._day:
            self._renew(day, state)
        assert self._today is not None
        self._today.observe(slot - day * SLOTS_PER_DAY, state)

    def choose(self, pod: PendingPod, feasible: Bools, state: ClusterState) -> int:
        assert self._today is not None
        return self._today.choose(pod, feasible, state)

    def added(self, pod: PendingPod, node: int) -> None:
        self._seats[pod.index] = pod, node
        if self._today is not None:
            self._today.added(pod, node)

    def removed(self, pod: PendingPod, node: int) -> None:
        del self._seats[pod.index]
        if self._today is not None:
            self._today.removed(pod, node)

    def _renew(self, day: int, state: ClusterState) -> None:
        pods = np.array(list(self._seats), dtype=np.int64)
        replicas = state.counts.sum(axis=0) + state.arriving
        forecast = self._forecasts.of(day, replicas, requests_of_services(self._recording, pods))
        jobs = jobs_from(self._recording, forecast, day * SLOTS_PER_DAY)
        self._day, self._today = day, ByCurves(forecast, self._recording.capacity, jobs=jobs)
        for pod, node in self._seats.values():
            self._today.added(pod, node)


def jobs_from(recording: Recording, forecast: CurveForecast, slot: int) -> JobPods:
    """When pods of Jobs are expected to end, in half hours of a forecast that begins at `slot` of the recording."""
    jobs = job_pods(recording, forecast.run_seconds)
    n_slots = forecast.mean.shape[2]
    ends = jobs.end < recording.n_slots
    return JobPods(jobs.ending, np.where(ends, np.clip(jobs.end - slot, 0, n_slots), n_slots))
