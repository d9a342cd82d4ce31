"""What is believed on each day of a trajectory, from what was known at its midnight: by a forecast that is renewed
every day, or by the true future; and placement by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from cluster.degradation import widening
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import node_load
from forecast.history import History, Placements
from forecast.model import PeakModel
from forecast.resources import RESOURCES
from scorer.replay.curves import CurveForecast, JobPods, at_requests, from_model, job_pods
from scorer.replay.preparation import FitModel
from scorer.replay.recording import Recording
from scorer.replay.replay_rules import ByCurves, ReplayedPod, ReplayState, replicas_to_come
from scorer.replay.running_cluster import RunningCluster
from scorer.replay.window import ReplayWindow

DAYS_AHEAD = 8
"""Local days of a forecast: a week from any hour of its first day."""


def window_of_day(window: ReplayWindow, day: int) -> ReplayWindow:
    """The window that a forecast of day `day` covers; its days may lie behind the end of the history."""
    first = window.days[0] + timedelta(days=day)
    days = tuple(first + timedelta(days=ahead) for ahead in range(DAYS_AHEAD))
    return replace(window, first_day=window.first_day + day, days=days, first_slot=0, n_days=DAYS_AHEAD)


class ByModels:
    """Forecasts of models, each fitted on the days before."""

    def __init__(
        self, history: History, window: ReplayWindow, recording: Recording, fit: FitModel, *, every: int = 1
    ) -> None:
        """
        fit   : called once for each first day; its result is kept
        every : a model is used for so many nights; its bounds widen with its age
        """
        self._history, self._window, self._recording = history, window, recording
        self._fit, self._every = fit, every
        self._models: dict[int, PeakModel] = {}
        self._last: tuple[tuple[int, bytes, bytes], CurveForecast] | None = None

    def model(self, day: int) -> PeakModel:
        """The model in use on day `day`."""
        fitted = day - day % self._every
        if fitted not in self._models:
            self._models[fitted] = self._fit(self._history.before(self._window.first_day + fitted))
        return self._models[fitted]

    def of(self, day: int, replicas: Floats, requests: Floats) -> CurveForecast:
        """Curves from the midnight of day `day` on, over DAYS_AHEAD local days, for the nodes of the recording.

        replicas : (n_services,) pods of each service that are there now
        requests : (n_services, 2) what one of them requests; 0 = nothing known
        """
        key = day, replicas.tobytes(), requests.tobytes()
        if self._last is None or self._last[0] != key:
            model, window = self.model(day), window_of_day(self._window, day)
            age = (window.days[0] - model.first_day).days
            forecast = from_model(model, window, replicas, widen=widening(age))
            forecast = at_requests(forecast, model, window, requests).on_nodes(self._recording.nodes)
            self._last = key, forecast
        return self._last[1]


def requests_of_services(recording: Recording, pods: Ints) -> Floats:
    """The largest request of each service's pods: (n_services, 2); 0 = none is among them, or nothing known.

    pods : (n_pods,) those that run
    """
    requests = np.zeros((recording.n_services, 2))
    np.maximum.at(requests, recording.service[pods], recording.requests[pods])
    return requests


class PlacingByForecasts:
    """Implements scorer.replay.replay_rules.ReplayRule: ByCurves, made anew on the first placement of each day."""

    def __init__(self, forecasts: ByModels, recording: Recording) -> None:
        self._forecasts, self._recording = forecasts, recording
        self._day = -1
        self._today: ByCurves | None = None
        self._seats: dict[int, tuple[ReplayedPod, int]] = {}  # by pod

    def observe(self, slot: int, state: ReplayState) -> None:
        day = slot // SLOTS_PER_DAY
        if day != self._day:
            self._renew(day, state)
        assert self._today is not None
        self._today.observe(slot - day * SLOTS_PER_DAY, state)

    def choose(self, pod: ReplayedPod, feasible: Bools, state: ReplayState) -> int:
        assert self._today is not None
        return self._today.choose(pod, feasible, state)

    def added(self, pod: ReplayedPod, node: int) -> None:
        self._seats[pod.index] = pod, node
        if self._today is not None:
            self._today.added(pod, node)

    def removed(self, pod: ReplayedPod, node: int) -> None:
        del self._seats[pod.index]
        if self._today is not None:
            self._today.removed(pod, node)

    def _renew(self, day: int, state: ReplayState) -> None:
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

    def __init__(self, forecasts: ByModels, recording: Recording) -> None:
        self._forecasts, self._recording = forecasts, recording

    def ahead(self, slot: int, n_slots: int, cluster: RunningCluster, pods: Ints) -> Outlook:
        recording, (day, of_day) = self._recording, divmod(slot, SLOTS_PER_DAY)
        service, node = recording.service[pods], cluster.node[pods]
        replicas = np.bincount(service, minlength=recording.n_services).astype(np.float64)
        whole = self._forecasts.of(day, replicas, requests_of_services(recording, pods))
        forecast = whole.between(of_day, of_day + n_slots)
        ends = jobs_from(recording, whole, slot - of_day).end[pods] - of_day
        there = Placements(pods, service, node, np.zeros_like(pods), np.clip(ends, 1, forecast.mean.shape[2]))
        cluster.state.expect(np.zeros(recording.n_services))
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
        cluster.state.expect(np.zeros(self._recording.n_services))
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
        margin[:, r] = 0.0 if bound is None else bound.z[:, r, None] * found.std
    return load, margin
