"""What Prometheus would have recorded and scraped of these days: usage, what was predicted of it then, and peaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final

import numpy as np

from forecast.arrays import Floats, Ints
from forecast.calendar import SLOTS_PER_DAY
from forecast.composition import bound_at
from forecast.model import PeakModel
from forecast.node_forecast import node_forecast
from forecast.resources import RESOURCES
from testing.servers.openmetrics import MetricSeries
from tests.dashboards.sample_days import SLOT_SECONDS, SampleDays

_STEP: Final = 300
_SHOWN: Final = timedelta(days=6)
_A_DAY: Final = timedelta(hours=25)
_GOES_ON: Final = (
    "forecast:node_usage",
    "forecast:pod_usage",
    "forecast:pod_info",
    "forecast_node_predicted_peak",
    "forecast_shadow_node_predicted_peak",
)


def history_series(days: SampleDays, model: PeakModel, now: datetime) -> Iterator[MetricSeries]:
    """model: of the day before yesterday's end; what it says of yesterday and today is what was predicted."""
    yield from _usage_of_nodes(days, now)
    yield from _usage_of_pods(days, now)
    yield from _usage_of_services(days, now)
    yield from _predicted(days, model, now)


def still_true(series: Iterable[MetricSeries]) -> str:
    """The last values of what is measured, in the exposition format: for a target that goes on saying so."""
    return "".join(f"{one.prefix} {float(one.values[-1])!r}\n" for one in series if one.name in _GOES_ON)


def _usage_of_nodes(days: SampleDays, now: datetime) -> Iterator[MetricSeries]:
    times = _times(now - _SHOWN, now)
    recent = _times(now - _A_DAY, now)
    share = days.node_usage / days.capacity[:, None]
    for row, node in enumerate(days.nodes):
        for r, resource in enumerate(RESOURCES):
            usage, labels = days.node_usage[row, :, r], {"node": node, "resource": resource.name}
            yield MetricSeries("forecast:node_usage", labels, times, _at(days, usage, times))
            yield MetricSeries("forecast:node_usage:30m", labels, recent, _half_hours(days, usage, recent))
            yield MetricSeries("forecast:node_peak:1d", labels, recent, _peaks(days, usage, recent))
    shown = _times(now - _SHOWN + timedelta(days=1), now)
    for r, resource in enumerate(RESOURCES):
        peaks = np.stack([_peaks(days, share[row, :, r], shown) for row in range(len(days.nodes))])  # (n_nodes, n)
        spread = peaks.std(axis=0) / peaks.mean(axis=0)
        yield MetricSeries("forecast:node_peak_spread", {"resource": resource.name}, shown, spread)


def _usage_of_pods(days: SampleDays, now: datetime) -> Iterator[MetricSeries]:
    """Of those that run now, as long as they are on their node, and an hour at most."""
    times = _times(now - timedelta(hours=1), now)
    slots = _slots(days, times)
    for row in days.there(now).tolist():
        here = times[days.at[row, slots] == days.at[row, days.slot(now)]]
        (namespace, _), pod = days.owners[row], days.pods[row]
        labels = {"namespace": namespace, "pod": pod}
        for r, resource in enumerate(RESOURCES):
            values = _at(days, days.usage[row, :, r], here)
            yield MetricSeries("forecast:pod_usage", labels | {"resource": resource.name}, here, values)
        kind, _, name = days.owners[row][1].partition("/")
        owner = ("ReplicaSet", pod.rpartition("-")[0]) if kind == "Deployment" else (kind, name)
        about = {
            "uid": f"uid-{pod}",
            "node": days.nodes[int(days.at[row, days.slot(now)])],
            "created_by_kind": owner[0],
            "created_by_name": owner[1],
            "host_network": "false",
        }
        yield MetricSeries("forecast:pod_info", labels | about, here, np.ones(len(here)))


def _usage_of_services(days: SampleDays, now: datetime) -> Iterator[MetricSeries]:
    times = _times(now - _A_DAY, now)
    for owner in dict.fromkeys(days.owners):
        rows = [row for row, other in enumerate(days.owners) if other == owner]
        kind, _, name = owner[1].partition("/")
        replicas = np.maximum((days.at[rows] >= 0).sum(axis=0), 1)
        for r, resource in enumerate(RESOURCES):
            total = np.nansum(days.usage[rows, :, r], axis=0)
            labels = {"namespace": owner[0], "kind": kind, "name": name, "resource": resource.name}
            for prefix, curve in (("forecast:service", total), ("forecast:service_pod", total / replicas)):
                yield MetricSeries(f"{prefix}_usage", labels, times, _at(days, curve, times))
                yield MetricSeries(f"{prefix}_usage:30m", labels, times, _half_hours(days, curve, times))


def _predicted(days: SampleDays, model: PeakModel, now: datetime) -> Iterator[MetricSeries]:
    """Of the nodes: as our processes exported it, and what the rules made of it."""
    begin = days.slot(datetime.combine(model.first_day, time(), UTC))
    since = max(now - _A_DAY, days.first + timedelta(seconds=(begin + 1) * SLOT_SECONDS))
    past = _times(since, now)
    predicted = _predictions(days, model, begin)  # (n_nodes, n_slots, n_resources, 2)
    for r, resource in enumerate(RESOURCES):
        within = np.zeros(len(past))
        for row, node in enumerate(days.nodes):
            labels = {"node": node, "resource": resource.name}
            actual = _half_hours(days, days.node_usage[row, :, r], past)
            for q, quantile in enumerate(("0.5", "0.95")):
                curve, of = predicted[row, :, r, q], labels | {"quantile": quantile}
                half_hours = _half_hours(days, curve, past)
                yield MetricSeries("forecast_node_model_usage", of, past, _at(days, curve, past))
                yield MetricSeries("forecast:node_model_usage:30m", of, past, half_hours)
                peaks = curve[begin:].reshape(-1, SLOTS_PER_DAY).max(axis=1)
                values = peaks[np.minimum((_slots(days, past) - begin) // SLOTS_PER_DAY, len(peaks) - 1)]
                of |= {"day": "today"}
                # No extender runs in shadow mode there: as one says that agrees with the real placement.
                yield MetricSeries("forecast_shadow_node_predicted_peak", of, past, values)
                yield MetricSeries("forecast_node_predicted_peak", of | {"as_of": "midnight"}, past, values)
                if q == 0:
                    error = (actual - half_hours) / days.capacity[row, r]
                    yield MetricSeries("forecast:node_error", labels, past, error)
                else:
                    within += actual <= half_hours
        of_all, compared = {"resource": resource.name}, np.full(len(past), float(len(days.nodes)))
        yield MetricSeries("forecast:nodes_within_bound", of_all, past, within)
        yield MetricSeries("forecast:nodes_compared", of_all, past, compared)
        # Of all that was compared so far, which is a day at most.
        coverage = np.cumsum(within) / np.cumsum(compared)
        for window in ("1d", "3d"):
            yield MetricSeries(f"forecast:node_coverage:{window}", of_all, past, coverage)


def _predictions(days: SampleDays, model: PeakModel, begin: int) -> Floats:
    """Mean and bound: (n_nodes, n_slots, n_resources, 2), NaN before the model's first day."""
    services = tuple((one.namespace, f"{one.kind}/{one.name}") for one in model.services)
    placements = days.placements(services, model.nodes, begin, days.at.shape[1])
    on = tuple(model.first_day + timedelta(days=n) for n in range((days.at.shape[1] - begin) // SLOTS_PER_DAY))
    rows = [model.nodes.index(node) for node in days.nodes]
    made = np.full((len(days.nodes), days.at.shape[1], len(RESOURCES), 2), np.nan)
    for r, load in enumerate(node_forecast(model, placements, on)):
        made[:, begin:, r, 0] = load.mean[rows]
        made[:, begin:, r, 1] = bound_at(load, float(model.node_z[r, 1]))[rows]
    return made


def _times(begin: datetime, end: datetime) -> Ints:
    """Unix seconds, at multiples of the step of the recording rules."""
    first, last = (int(moment.timestamp()) // _STEP for moment in (begin, end))
    return np.arange(first, last + 1) * _STEP


def _slots(days: SampleDays, times: Ints) -> Ints:
    return (times - int(days.first.timestamp())) // SLOT_SECONDS


def _at(days: SampleDays, curve: Floats, times: Ints) -> Floats:
    """The half hour under way."""
    return curve[_slots(days, times)]


def _half_hours(days: SampleDays, curve: Floats, times: Ints) -> Floats:
    """Mean over the half hour before each time, of a curve that stays level within its half hours."""
    sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(curve))])
    here = (times - int(days.first.timestamp())) / SLOT_SECONDS
    whole = here.astype(np.int64)
    until = sums[whole] + (here - whole) * np.nan_to_num(curve[whole])
    before = sums[whole - 1] + (here - whole) * np.nan_to_num(curve[whole - 1])
    return until - before


def _peaks(days: SampleDays, curve: Floats, times: Ints) -> Floats:
    """Highest half hour of the day before each time."""
    slots: Sequence[int] = _slots(days, times).tolist()
    return np.array([curve[slot - SLOTS_PER_DAY : slot].max() for slot in slots])
