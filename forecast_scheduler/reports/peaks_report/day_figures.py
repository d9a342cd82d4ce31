"""What one model says about one local day: curves and peaks of the history's nodes and services, the hottest nodes of
the day that comes, and error, coverage and spread day by day. Shares are of physical capacity.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date, time

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.composition import bound_at, peak_at
from forecast.history import History, Placements
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.node_forecast import known_runs, node_forecast, nodes_understood, rows_among
from forecast.online_calibration import daily_peaks
from forecast.resources import HOT_RESOURCES, RESOURCES
from scorer.replay.replay_figures import hot_node_slots, peak_variation, shares

_MEASURED_SHARE = 0.5
"""A node-day counts from this share of its half hours on, as in the backtest."""


@dataclass(frozen=True, slots=True)
class DayReading:
    """Base units, by the history's indices; NaN = the model does not know the node or service.

    node_mean, node_bound       : (n_nodes, n_resources, 48) expected, and the curve whose highest point is the bound
    node_peaks                  : (n_nodes, n_resources, n_quantiles) of the day's peak
    understood                  : (n_nodes, n_resources) no pod was there that the model knows nothing of
    service_mean, service_bound : (n_services, n_resources, 48) all pods of a service together
    """

    node_mean: Floats32
    node_bound: Floats32
    node_peaks: Floats
    understood: Bools
    service_mean: Floats32
    service_bound: Floats32


def runs_of_day(history: History, day_index: int) -> Placements:
    """The pods that really ran on a day of the history."""
    begin = day_index * SLOTS_PER_DAY
    return history.placements.between(begin, begin + SLOTS_PER_DAY)


def runs_that_stay(history: History, model: PeakModel) -> Placements:
    """The pods of the last half hour of the history, as if all of them stayed where they are for the day after it.

    Pods of Jobs stay until their run typically ends, one half hour at least. Where `model` does not know how long they
    run, they stay for the day.
    """
    end = history.n_days * SLOTS_PER_DAY
    last = history.placements
    there = (last.first < end) & (last.end >= end)
    service = last.service[there]
    row = rows_among(history.services, model.services)[service]
    seconds = np.where(row >= 0, model.run_seconds[row, 0], np.nan)
    left = np.ceil(seconds / (SLOT_MINUTES * 60)) - (end - last.first[there])  # half hours
    stays = np.clip(np.where(np.isnan(left), SLOTS_PER_DAY, left), 1, SLOTS_PER_DAY).astype(np.int64)
    return Placements(last.pod[there], service, last.node[there], np.zeros_like(service), stays)


def read_day(
    model: PeakModel, history: History, day: date, runs: Placements, replicas: AnyFloats, *, widen: float
) -> DayReading:
    """Read a model on a day.

    runs     : the pods, in slots from the day's midnight
    replicas : (n_services,) pods of each of the history's services when the day begins; 0 or NaN = not known
    widen    : factor on the standard deviations of the bounds (cluster.degradation.widening)
    """
    service, node = rows_among(history.services, model.services), rows_among(history.nodes, model.nodes)
    current = np.zeros(len(model.services))
    current[service[service >= 0]] = np.nan_to_num(replicas)[service >= 0]
    shape = (len(history.nodes), len(RESOURCES), SLOTS_PER_DAY)
    mean, bound = np.full(shape, np.nan, dtype=np.float32), np.full(shape, np.nan, dtype=np.float32)
    peaks = np.full((*shape[:2], len(PEAK_QUANTILES)), np.nan)
    known, of_nodes = node >= 0, model.z_of_nodes()
    for r, load in enumerate(node_forecast(model, known_runs(runs, service, node), (day,), current)):
        z = of_nodes[:, r] * np.where(np.array(PEAK_QUANTILES) > 0.5, widen, 1.0)
        mean[known, r] = load.mean[node[known]]
        bound[known, r] = bound_at(load, z[:, -1, None])[node[known]]
        for q in range(len(PEAK_QUANTILES)):
            peaks[known, r, q] = peak_at(load, z[:, q, None])[node[known], 0]
    of_services = _services(model, day, current)
    unknown = np.full((1, *of_services[0].shape[1:]), np.nan, dtype=np.float32)
    service_mean, service_bound = (np.concatenate([curves, unknown])[service] for curves in of_services)
    return DayReading(
        node_mean=mean,
        node_bound=bound,
        node_peaks=peaks,
        understood=nodes_understood(model, runs, service, node, day),
        service_mean=service_mean,
        service_bound=service_bound,
    )


def _services(model: PeakModel, day: date, current: Floats) -> tuple[Floats32, Floats32]:
    """All pods of each of the model's services, expected and bound: (n_services, n_resources, 48) each.

    As /v1/services/.../forecast has them: an autoscaled service and a Job owner get the pods expected for the hour, the
    others keep theirs.
    """
    usage = model.usage((day,))[:, :, 0]  # (n_services, n_resources, 48) of one pod at the reference replicas
    expected_count = model.replicas((day,))[:, 0]  # (n_services, 48)
    follows = (np.asarray(model.autoscaled) > 0) | model.runs_to_completion | (current <= 0)
    count = np.where(follows[:, None], expected_count, current[:, None])
    total = usage * model.load_share(current)[:, :, None] * count[:, None]
    highest = usage.max(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(highest > 0, model.service_peaks(day)[:, :, -1] / highest, 1.0)
    return total.astype(np.float32), (total * factor[:, :, None]).astype(np.float32)


# Error, coverage and spread, day by day, over all nodes. Shares are of physical capacity.
#
# The definitions are those of the rules and of the other reports: a node's peak of a day is its highest half hour, held
# by the 0.95 bound or not (forecast/backtest.py); hot is above `hot_share` (docs/use/scorer.md); the spread
# is the coefficient of variation of the nodes' peaks.


@dataclass(frozen=True, slots=True)
class DayScore:
    """How one day's forecast did on the nodes. NaN = nothing to judge by.

    error    : (n_resources,) mean of |actual - expected| / capacity over nodes and half hours
    bias     : (n_resources,) mean of (actual - expected) / capacity; above 0 = more came than was expected
    coverage : (n_resources,) share of the node-days whose peak stayed at or below the 0.95 bound
    n_nodes  : (n_resources,) node-days that coverage is over
    left_out : measured node-days of any resource with a pod that the model knew nothing of
    """

    error: Floats
    bias: Floats
    coverage: Floats
    n_nodes: Ints
    left_out: int


@dataclass(frozen=True, slots=True)
class PeakSpread:
    """What the nodes did, whatever was forecast. NaN = not measured.

    variation : (n_resources, n_days) coefficient of variation of the nodes' peaks, as share of capacity
    hot       : (n_days,) share of measured node half hours in which a resource that counts is over `hot_share`
    """

    variation: Floats
    hot: Floats


def score_day(reading: DayReading, actual: AnyFloats, capacity: AnyFloats) -> DayScore:
    """Hold a day's forecast against what came.

    actual   : (n_nodes, n_resources, 48)
    capacity : (n_nodes, n_resources) of that day
    """
    measured = np.isfinite(actual).mean(axis=2) >= _MEASURED_SHARE  # (n_nodes, n_resources)
    predicted = np.isfinite(reading.node_peaks).all(axis=2)
    judged = measured & predicted & reading.understood
    miss = np.where(judged[:, :, None], shares(actual - reading.node_mean, capacity), np.nan)
    held = daily_peaks(actual) <= reading.node_peaks[:, :, -1]
    n = judged.sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a resource that is not measured
        return DayScore(
            error=np.asarray(np.nanmean(np.abs(miss), axis=(0, 2))),
            bias=np.asarray(np.nanmean(miss, axis=(0, 2))),
            coverage=np.where(n > 0, (held & judged).sum(axis=0) / np.maximum(n, 1), np.nan),
            n_nodes=n,
            left_out=int((measured & predicted & ~reading.understood).any(axis=1).sum()),
        )


def spread_of(history: History, hot: float) -> PeakSpread:
    """Over all days of the history. hot: share of its capacity above which a node is hot"""
    variation, is_hot = np.full((len(RESOURCES), history.n_days), np.nan), np.full(history.n_days, np.nan)
    capacity = history.capacity_of_days
    for day in range(history.n_days):
        share = shares(history.node_usage[:, :, day], capacity[:, :, day])  # (n_nodes, n_resources, 48)
        enough = np.isfinite(share).mean(axis=2) >= _MEASURED_SHARE
        peaks = np.where(enough, daily_peaks(share), np.nan)
        variation[:, day] = peak_variation(peaks[:, :, None])
        there = np.isfinite(share).any(axis=1)  # (n_nodes, 48)
        if there.any():
            is_hot[day] = float(hot_node_slots(share, hot)[there].mean())
    return PeakSpread(variation, is_hot)


@dataclass(frozen=True, slots=True)
class HotNode:
    """A node's peak in the resource that comes closest to its capacity.

    node            : row in the history
    expected, bound : base units, 0.5 and 0.95 quantile of the day's peak
    at              : local time of the half hour with the highest expectation
    """

    node: int
    resource: int
    expected: float
    bound: float
    capacity: float
    at: time

    @property
    def share(self) -> float:
        """Expected peak as share of capacity."""
        return self.expected / self.capacity


def peak_shares(reading: DayReading, capacity: AnyFloats) -> Floats:
    """Expected peaks as share of capacity, of the resources that make nodes hot: (n_nodes, n_hot_resources).

    NaN = no limit, or nothing is predicted.
    """
    return shares(reading.node_peaks[:, :, :1], capacity)[:, list(HOT_RESOURCES), 0]


def hottest_nodes(reading: DayReading, capacity: AnyFloats) -> tuple[HotNode, ...]:
    """All nodes that something is predicted of, the hottest first."""
    share = peak_shares(reading, capacity)
    known = np.flatnonzero(np.isfinite(share).any(axis=1))
    highest = np.nanargmax(share[known], axis=1)
    order = np.argsort(-share[known, highest], kind="stable")
    return tuple(_hot_node(reading, capacity, int(known[i]), HOT_RESOURCES[int(highest[i])]) for i in order)


def _hot_node(reading: DayReading, capacity: AnyFloats, node: int, resource: int) -> HotNode:
    minutes = int(reading.node_mean[node, resource].argmax()) * SLOT_MINUTES
    expected, bound = (float(value) for value in reading.node_peaks[node, resource])
    limit = float(capacity[node, resource])
    return HotNode(node, resource, expected, bound, limit, time(minutes // 60, minutes % 60))
