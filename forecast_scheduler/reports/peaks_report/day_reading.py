"""What one model says about one local day: curves and peaks of the history's nodes and services.

It is read as the scorer would have read it at that day's midnight: for the replica counts of then, and with bounds
widened by the model's age. Nodes are summed over the pods that really ran, as backtest and gate do, so that what is
judged is the forecast of load and not a guess at placements.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.composition import bound_at, peak_at
from forecast.history import History, Placements
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.node_forecast import known_runs, node_forecast, nodes_understood, rows_among
from forecast.resources import RESOURCES


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
    known = node >= 0
    for r, load in enumerate(node_forecast(model, known_runs(runs, service, node), (day,), current)):
        z = model.node_z[r].astype(np.float64) * np.where(np.array(PEAK_QUANTILES) > 0.5, widen, 1.0)
        mean[known, r] = load.mean[node[known]]
        bound[known, r] = bound_at(load, float(z[-1]))[node[known]]
        for q in range(len(PEAK_QUANTILES)):
            peaks[known, r, q] = peak_at(load, float(z[q]))[node[known], 0]
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
