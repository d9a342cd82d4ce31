"""Does a model reproduce what was? Its answer for the last days, held against what was recorded on them.

The answer is the scorer's (`cluster.predicted.node_curves`): base load, and the pods that sat on each node, at the
replica count of that day, with corrections, costs, and the error that lifts a mean curve to the expected peak. It is
read from the coming week of the model, weekday by weekday, so what is checked is what will be used. Three figures:

    level   mean of the cluster, predicted / recorded
    peak    daily peak of the median node, predicted / recorded; the expected one (quantile 0.5)
    hour    of the peak of the cluster's typical day

This is no test of a forecast, which the gate and the backtest make on days that a model does not know. It is an
account: a model that is far from all that was recorded is wrong, whatever the reason. So a figure fails only if it does
in every view: the last day, the last week, and the week four weeks before the coming one. A service that grew, a quiet
fortnight, an outage and a release differ from some of these views, a fault of the model from all. Half hours that were
not measured are left out, and so are days of events and days that come again as another kind of day.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.composition import bound_at, node_load
from forecast.event_calendar import events_between
from forecast.history import History, Placements
from forecast.model import PeakModel
from forecast.resources import RESOURCES, resource_index
from trainer.amounts import amount

TOLERATED: Final = (0.75, 1.25)
"""Level and peak, predicted / recorded. On the sample, asd, smd and bitbrains (benchmarks/) both are at most 1.20
from 14 days of history on; faults of a model are factors, such as services at 0."""

TOLERATED_UNSURE: Final = (0.4, 2.5)
"""The same under `YOUNG_DAYS` of history, where no weekday was seen twice and a model leans on similar services, and
while the load of the cluster moves from one level to another by more than `TOLERATED`."""

YOUNG_DAYS: Final = 14

HOUR_TOLERANCE: Final = 2.0
"""Hours by which the peak of the typical day may lie elsewhere."""

_CLEAR = 0.8
"""A peak is elsewhere only if each curve stays below this share of its own peak within two hours of the other's."""

_IMMATERIAL = 0.01
"""Share of the capacity: twice nothing is nothing."""

_LEAST_MEASURED = 0.5
"""Share of a node's day that must be measured, and of the nodes in a half hour of the cluster."""

_WEEK = 7
_EARLIER = 4 * _WEEK
"""The other week lies this many days before the coming one: a quiet fortnight is over by then, or had not begun."""

_WHOLE_DAY = 0.9
"""Share of the half hours of a day that must be known to say when its peak is."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ServiceDifference:
    """Mean load of all pods of a service on the last days, base units."""

    service: str
    predicted: float
    recorded: float


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How a model reproduces one resource. NaN = there is nothing to hold it against.

    level, peak : predicted / recorded: lowest and highest of the views
    mean_peak   : as `peak`, of the mean curve alone, without the error that lifts it to the expected peak
    hours       : hour of the peak of the last week's typical day, predicted and recorded
    elsewhere   : whether the hours differ in every view
    services    : those that differ most
    beside_pods : share of the difference in level that is not of measured pods, but of base load and corrections
    tolerated   : lowest and highest level and peak that pass
    """

    resource: str
    level: tuple[float, float] = (np.nan, np.nan)
    peak: tuple[float, float] = (np.nan, np.nan)
    mean_peak: tuple[float, float] = (np.nan, np.nan)
    hours: tuple[float, float] = (np.nan, np.nan)
    elsewhere: bool = False
    services: tuple[ServiceDifference, ...] = ()
    beside_pods: float = np.nan
    tolerated: tuple[float, float] = TOLERATED

    @property
    def fails(self) -> bool:
        return self._is_off(self.level) or self._is_off(self.peak) or self.elsewhere

    def _is_off(self, ratio: tuple[float, float]) -> bool:
        return ratio[0] > self.tolerated[1] or ratio[1] < self.tolerated[0]

    def reason(self) -> str:
        """What is not reproduced, and what makes the difference; "" = nothing."""
        found = []
        if self._is_off(self.level):
            found.append(f"the mean load of the cluster is {_times(self.level)} what was recorded")
        if self._is_off(self.peak):
            found.append(f"the daily peak of the median node is {_times(self.peak)} what was recorded")
        if self.elsewhere:
            found.append(f"the cluster peaks at {_clock(self.hours[0])} where {_clock(self.hours[1])} was recorded")
        return " and ".join(found) + f" ({self._cause()})" if found else ""

    def _cause(self) -> str:
        unit = RESOURCES[resource_index(self.resource)].unit
        if not self._is_off(self.level) and not self.elsewhere and not self._is_off(self.mean_peak):
            return "the sum over the pods is right, the error that is added to it is not"
        if self._is_off(self.level) and self.beside_pods > 0.5:
            return f"{self.beside_pods:.0%} of it are base load and corrections, not what pods are measured to use"
        named = (
            f"{one.service} {amount(one.predicted, unit)} where {amount(one.recorded, unit)} was recorded"
            for one in self.services
        )
        return "most of it by " + ", ".join(named) if self.services else "no service was measured"

    def to_json(self) -> dict[str, Any]:
        return {
            "reproduced": not self.fails,
            "level": [_number(one) for one in self.level],
            "peak": [_number(one) for one in self.peak],
            "predicted_hour": _number(self.hours[0]),
            "recorded_hour": _number(self.hours[1]),
            "services": [asdict(one) for one in self.services] if self.fails else [],
        }


def reproductions(history: History, model: PeakModel) -> dict[str, Reproduction]:
    """How a model that was fitted on a history reproduces its last days, by resource.

    model : with the services and nodes of the history, in its order; first_day: the day after its last
    """
    if model.services != history.services or model.nodes != history.nodes:
        raise AssertionError("the model was not fitted on this history: its services or nodes are others")
    by_week = [
        _weeks(history, model, days, shift)
        for shift in (_WEEK, _EARLIER)
        if (days := _comparable(history, model, shift))
    ]
    names = tuple(str(service) for service in history.services)
    young = history.n_days < YOUNG_DAYS
    return {
        resource.name: _reproduction(resource.name, [weeks[r] for weeks in by_week], names, young)
        for r, resource in enumerate(RESOURCES)
    }


def _comparable(history: History, model: PeakModel, shift: int) -> tuple[date, ...]:
    """The days of the history that the coming week repeats `shift` days later; those that differ are left out."""
    known = set(history.days)
    coming = model.calendar.horizon(model.first_day, _WEEK)
    then = tuple(day - timedelta(days=shift) for day in coming)
    same = model.calendar.describe(coming).day_type == model.calendar.describe(then).day_type
    return tuple(
        day
        for day, after, alike in zip(then, coming, same, strict=True)
        if alike and day in known and not any(events_between(history.events, one, one) for one in (day, after))
    )


@dataclass(frozen=True, slots=True)
class _Week:
    """Some days of one resource. What the model says stands before what was recorded; NaN where nothing was recorded.

    cluster  : (2, n_days, 48) sum over the measured nodes; over services where no node is measured
    peaks    : (3, n_nodes, n_days) daily peaks; the third of the mean curve alone
    services : (2, n_services, 48) all pods while measured, mean of the days
    capacity : (n_nodes,) NaN = not known
    """

    cluster: Floats
    peaks: Floats
    services: Floats
    capacity: Floats


def _weeks(history: History, model: PeakModel, days: tuple[date, ...], shift: int) -> list[_Week]:
    """By resource: days of the history, of which the model forecasts those `shift` days later."""
    index = [history.days.index(day) for day in days]
    n_services, n_nodes, n_days = len(history.services), len(history.nodes), len(days)
    then = replace(model, first_day=model.first_day - timedelta(days=shift))
    pods = np.nan_to_num(history.replicas[:, index].astype(np.float64))  # (n_services, n_days, 48)
    share = np.stack([model.load_share(_usual_count(pods[:, day])) for day in range(n_days)], axis=2)
    of_one = _usage(history, then, days) * share[..., None]  # (n_services, n_resources, n_days, 48)
    # What owners that run once bring is a part of the base load (forecast.node_base).
    lasting = np.array([not service.is_group for service in history.services], dtype=np.bool_)
    runs = _on_days(history.placements.of(lasting), index)
    part = _part_present(runs, pods)
    cost, base = then.cost(days), then.base(days)
    weeks = []
    for r in range(len(RESOURCES)):
        recorded = history.usage_per_pod[:, r, index] * pods
        predicted = np.where(np.isfinite(recorded), np.nan_to_num(of_one[:, r]) * pods, np.nan)
        cluster = _totals(predicted, recorded)
        services = np.stack([np.nan_to_num(one).mean(axis=1) for one in (predicted, recorded)])
        peaks = np.full((3, n_nodes, n_days), np.nan)
        on_nodes = history.node_usage[:, r, index].astype(np.float64).reshape(n_nodes, -1)
        if np.isfinite(on_nodes).any():
            felt = model.correction[:, r, None].astype(np.float64)
            own, shared = (
                np.tile((std[:, r] * felt * share[:, r].mean(axis=1)[:, None]) ** 2, (1, n_days))
                for std in (model.own_std, model.shared_std)
            )
            load = node_load(
                runs,
                (of_one[:, r] * felt[..., None] + cost[r]).reshape(n_services, -1) * part,
                own * part,
                shared * part**2,
                base[:, r].reshape(n_nodes, -1),
                np.tile(model.node_base_std[:, r].astype(np.float64) ** 2, (1, n_days)),
                float(model.cluster_std[r]),
            )
            expected = bound_at(load, float(model.node_z[r, 0]))
            measured, shape = np.isfinite(on_nodes), (n_nodes, n_days, SLOTS_PER_DAY)
            curves = [np.where(measured, curve, np.nan).reshape(shape) for curve in (expected, on_nodes, load.mean)]
            cluster = _totals(curves[2], curves[1])
            if history.one_off_usage is not None:
                curves = [_as_on_average(curve) for curve in curves]
            peaks = np.stack([_daily_peaks(curve) for curve in curves])
        weeks.append(_Week(cluster, peaks, services, history.capacity[:, r]))
    return weeks


def _usage(history: History, model: PeakModel, days: tuple[date, ...]) -> Floats:
    """Expected usage of one pod, (n_services, n_resources, n_days, 48); of services never measured from requests."""
    usage = model.usage(days)
    unknown = ~np.isfinite(usage).any(axis=(1, 2, 3))
    for row in np.flatnonzero(unknown).tolist():
        cores, memory = np.nan_to_num(history.requests[row]).tolist()
        usage[row] = model.usage_from_requests(cores, memory, days)
    return usage


def _usual_count(pods: AnyFloats) -> Floats:
    """Median count of the half hours with pods, 0 = none: (n_services, 48) -> (n_services,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # services without pods
        return np.asarray(np.nan_to_num(np.nanmedian(np.where(pods > 0, pods, np.nan), axis=1)))


def _on_days(runs: Placements, index: list[int]) -> Placements:
    """The runs on some days, counted as if these days followed each other."""
    parts = [runs.between(day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY) for day in index]
    return Placements(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("pod", "service", "node")),
        *(
            np.concatenate([getattr(part, name) + at * SLOTS_PER_DAY for at, part in enumerate(parts)])
            for name in ("first", "end")
        ),
    )


def _part_present(runs: Placements, pods: Floats) -> Floats:
    """Pods that were there on average / pods that were there at all in each half hour: (n_services, n_days * 48).

    A pod of five minutes is there for a whole half hour in `Placements`. To the scorer it is, for five minutes.
    """
    present = pods.reshape(len(pods), -1)
    steps = np.zeros((len(pods), present.shape[1] + 1))
    np.add.at(steps, (runs.service, runs.first), 1.0)
    np.add.at(steps, (runs.service, runs.end), -1.0)
    seen = np.cumsum(steps, axis=1)[:, :-1]
    return np.where((seen > present) & (present > 0), present / np.maximum(seen, 1.0), 1.0)


def _totals(predicted: Floats, recorded: Floats) -> Floats:
    """Sums over nodes or services: (2, n_days, 48); NaN where fewer than half as many were measured as in the best."""
    known = np.isfinite(recorded)
    n_known = known.sum(axis=0)
    enough = n_known >= max(1.0, _LEAST_MEASURED * n_known.max(initial=0))
    return np.stack([np.where(enough, np.where(known, one, 0.0).sum(axis=0), np.nan) for one in (predicted, recorded)])


def _as_on_average(curve: Floats) -> Floats:
    """Each day as the mean of all of them, (n_nodes, n_days, 48): where owners that run once land is chance.

    A model expects of a node what such owners bring on average; that chance heaps them on one is part of the bound.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # half hours that were measured on no day
        return np.where(np.isfinite(curve), np.nanmean(curve, axis=1, keepdims=True), np.nan)


def _daily_peaks(curve: Floats) -> Floats:
    """(n_nodes, n_days, 48) -> (n_nodes, n_days); NaN where too little of the day is known."""
    known = np.isfinite(curve)
    peak = np.where(known, curve, -np.inf).max(axis=2)
    return np.where(known.mean(axis=2) >= _LEAST_MEASURED, peak, np.nan)


def _reproduction(resource: str, weeks: Sequence[_Week], names: tuple[str, ...], young: bool) -> Reproduction:
    """weeks: of one resource, the last one first; names: of the services"""
    if not weeks or not any(np.isfinite(week.cluster).any() for week in weeks):
        return Reproduction(resource)
    levels: list[float] = []
    peaks: list[float] = []
    mean_peaks: list[float] = []
    apart: list[bool] = []
    hours = (np.nan, np.nan)
    for number, week in enumerate(weeks):
        there = np.isfinite(week.peaks[1]).any(axis=1)  # nodes long gone have a capacity, too
        least = _IMMATERIAL * float(week.capacity[there].sum()) if there.any() else 0.0
        by_day = _known_mean(week.cluster)
        levels += _views(_ratio(by_day[0], by_day[1], least), by_day, last_day=number == 0)
        for found, curve in ((peaks, week.peaks[0]), (mean_peaks, week.peaks[2])):
            ratio = _ratio(curve, week.peaks[1], _IMMATERIAL * week.capacity[:, None])
            known = np.isfinite(week.peaks[1]).any(axis=0)
            sums = np.stack([np.where(known, np.nansum(one, axis=0), np.nan) for one in (curve, week.peaks[1])])
            found += _views(_median(ratio), sums, last_day=number == 0)
        typical = _median(week.cluster.swapaxes(0, 1))  # (2, 48)
        apart += [
            _apart(day[0], day[1], least) for day in ((typical, week.cluster[:, -1]) if number == 0 else (typical,))
        ]
        if number == 0:
            hours = (_peak_hour(typical[0]), _peak_hour(typical[1]))
    predicted, recorded = weeks[0].services
    order = np.argsort(-np.abs(predicted - recorded).sum(axis=1), kind="stable")[:_SHOWN]
    of_cluster = np.subtract(*np.nanmean(weeks[0].cluster, axis=(1, 2)))
    of_pods = float((predicted - recorded).mean(axis=1).sum())
    return Reproduction(
        resource,
        level=_range(levels),
        peak=_range(peaks),
        mean_peak=_range(mean_peaks),
        hours=hours,
        elsewhere=all(apart),
        services=tuple(
            ServiceDifference(names[row], float(predicted[row].mean()), float(recorded[row].mean()))
            for row in order.tolist()
            if predicted[row].any() or recorded[row].any()
        ),
        beside_pods=1 - of_pods / of_cluster if of_cluster else 0.0,
        tolerated=TOLERATED if not young and _is_steady([week.cluster[1] for week in weeks]) else TOLERATED_UNSURE,
    )


def _is_steady(recorded: Sequence[Floats]) -> bool:
    """Whether the load of the cluster stays at its level. recorded: (n_days, 48) of the last week, of another if known

    The last day is compared with the last of the other week, usually the same weekday, and both weeks with each other.
    """
    means = [_known_mean(week[None])[0] for week in recorded]
    pairs = (
        [(means[0][-1], _median(means[0]))]
        if len(means) == 1
        else [(means[0][-1], means[1][-1]), (_median(means[0]), _median(means[1]))]
    )
    ratios = [float(_ratio(now, then, 0.0)) for now, then in pairs]
    return all(np.isnan(ratio) or TOLERATED[0] <= ratio <= TOLERATED[1] for ratio in ratios)


def _views(by_day: Floats, sums: Floats, *, last_day: bool) -> list[float]:
    """What must all fail: the median of the days, the days together, and the last of them if it is the last one known.

    by_day : (n_days,) ratios;   sums : (2, n_days) of which they are, as far as one can say
    """
    known = np.isfinite(sums[1])
    total = sums[:, known].sum(axis=1)
    together = float(_ratio(total[0], total[1], 0.0)) if known.any() else np.nan
    return [float(_median(by_day)), together, *([float(by_day[-1])] if last_day else [])]


def _ratio(predicted: AnyFloats, recorded: AnyFloats, least: AnyFloats | float) -> Floats:
    """predicted / recorded, 1 where they differ by no more than `least` (NaN = not known); NaN where unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.asarray(predicted) / recorded
        return np.where(np.abs(predicted - recorded) <= np.nan_to_num(least), 1.0, ratio)


def _median(values: AnyFloats) -> Floats:
    """Median of what is known along the first axis; NaN = nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmedian(values, axis=0))


def _known_mean(cluster: Floats) -> Floats:
    """(2, n_days, 48) -> (2, n_days); NaN = nothing is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmean(cluster, axis=2))


def _range(ratios: Sequence[float]) -> tuple[float, float]:
    known = [ratio for ratio in ratios if not np.isnan(ratio)]
    return (min(known), max(known)) if known else (np.nan, np.nan)


def _apart(predicted: Floats, recorded: Floats, least: float) -> bool:
    """Whether two curves of a day, (48,) each, clearly peak at different hours."""
    known = np.isfinite(predicted) & np.isfinite(recorded)
    if known.mean() < _WHOLE_DAY:
        return False
    there = [np.where(known, curve, 0.0) for curve in (predicted, recorded)]
    at = [int(curve.argmax()) for curve in there]
    slots = np.arange(SLOTS_PER_DAY)
    for curve, other in zip(there, reversed(at), strict=True):
        away = np.abs(slots - other)
        near = np.minimum(away, SLOTS_PER_DAY - away) <= HOUR_TOLERANCE * 60 / SLOT_MINUTES
        lower = curve[near].max()
        if lower >= _CLEAR * curve.max() or curve.max() - lower <= np.nan_to_num(least):
            return False
    return True


def _peak_hour(curve: Floats) -> float:
    return float(np.argmax(np.nan_to_num(curve, nan=-1.0))) * SLOT_MINUTES / 60


def _times(ratio: tuple[float, float]) -> str:
    if ratio[0] > 1:
        return f"at least {ratio[0]:.2f} times" if np.isfinite(ratio[0]) else "many times"
    return f"at most {ratio[1]:.2f} times"


def _clock(hour: float) -> str:
    return f"{int(hour):02d}:{int(hour % 1 * 60):02d}"


def _number(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None
