"""How the model in use and tonight's recipe did on the days after the cut-off of the model in use, by nodes where pods
are not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from base.arrays import AnyFloats, Bools, Floats
from forecast.backtest import SAMPLES_NEEDED, BacktestScore, peak_scores, scored_series
from forecast.history import History
from forecast.model import PEAK_QUANTILES, PeakModel
from forecast.node_forecast import node_peaks_of
from forecast.online_calibration import daily_peaks
from forecast.resources import RESOURCES

# Evidence on resources that only nodes are measured for, such as log bytes of a collector: daily peaks of nodes.
#
# The usage of a single pod is unknown there, so the comparison is of what placement acts upon: the load of each node
# from the pods that really ran on it that day, as `PeakModel` sums it up, with the calibrated z for both quantiles.

_SCALE_DAYS = 28
"""Series are judged complete and scaled over this many days, so that a service of last month is judged, too."""

_WEEK = 7


def node_only(history: History, n_days: int) -> Bools:
    """Resources of which nodes were measured and no pod was, over the last days: (n_resources,)."""
    pods = np.isfinite(history.usage_per_pod[:, :, -n_days:]).any(axis=(0, 2, 3))
    nodes = np.isfinite(history.node_usage[:, :, -n_days:]).any(axis=(0, 2, 3))
    return np.asarray(nodes & ~pods)


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """Scores on the same series and days.

    widening : factor on the candidate's 0.95 bounds that puts 0.95 of the peaks within them; inf = none does
    of_nodes : the series are nodes, because no pod was measured; else services
    """

    candidate: BacktestScore
    current: BacktestScore
    naive: BacktestScore
    widening: float
    days: tuple[date, ...]
    of_nodes: bool = False


def evaluation_days(history: History, cut_off: date, at_most: int) -> tuple[date, ...]:
    """The last days of the history that a model with this cut-off did not know."""
    return tuple(day for day in history.days if day >= cut_off)[-at_most:]


def peaks_of(model: PeakModel, history: History, days: tuple[date, ...]) -> Floats:
    """What a model says about the history's services: (n_services, n_resources, n_days, n_quantiles), NaN = nothing."""
    row = {service: index for index, service in enumerate(model.services)}
    found = np.array([row.get(service, -1) for service in history.services], dtype=np.int64)
    peaks = np.full((len(found), len(RESOURCES), len(days), len(PEAK_QUANTILES)), np.nan)
    for position, day in enumerate(days):
        peaks[found >= 0, :, position] = model.service_peaks(day)[found[found >= 0]]
    return peaks


def measured_peaks(history: History, days: tuple[date, ...]) -> Floats:
    """The peaks that came: (n_services, n_resources, n_days); NaN where under 0.95 of the day was measured."""
    return _complete_peaks(history.usage_per_pod[:, :, _index(history, days)])


def seasonal_naive(known: Floats, lead: int) -> Floats:
    """The rule `same_day_last_week` of forecast/baselines.py for a day further ahead; `yesterday` under 8 known days.

    known : (n_series, n_resources, n_days) daily peaks before the cut-off
    lead  : 0 = the day of the cut-off
    Returns (n_series, n_resources, n_quantiles).
    """
    last = known[:, :, -1]
    if known.shape[2] <= _WEEK:
        return np.stack([last, last], axis=-1)
    same_day = known[:, :, -_WEEK + lead % _WEEK]
    return np.stack([same_day, np.fmax(same_day, last)], axis=-1)


def compare(
    history: History, current: PeakModel, candidate: PeakModel, days: tuple[date, ...]
) -> dict[str, GateEvidence]:
    """Evidence per resource; resources with nothing that all three forecast and that was measured are absent.

    candidate : tonight's recipe fitted on the days before the cut-off of `current`
    days      : days of the history from that cut-off on
    """
    models = {"candidate": candidate, "current": current}
    of_services = {name: peaks_of(model, history, days) for name, model in models.items()}
    used, scale = scored_series(history.usage_per_pod[:, :, -_SCALE_DAYS:])
    result = _evidence(history.usage_per_pod, used, scale, of_services, history, current.first_day, days)
    by_node = node_only(history, _SCALE_DAYS)
    if by_node.any():
        of_nodes = {name: node_peaks_of(model, history, days) for name, model in models.items()}
        # Nodes come and go more often than services: they need not be older than the week of the seasonal naive.
        first = max(0, history.days.index(current.first_day) - _WEEK - 1)
        used, scale = scored_series(history.node_usage[:, :, first:])
        found = _evidence(history.node_usage, used & by_node, scale, of_nodes, history, current.first_day, days)
        result |= {name: replace(evidence, of_nodes=True) for name, evidence in found.items()}
    return result


def _evidence(
    usage: AnyFloats,
    used: Bools,
    scale: Floats,
    forecasts: dict[str, Floats],
    history: History,
    first_day: date,
    days: tuple[date, ...],
) -> dict[str, GateEvidence]:
    """Return scores of the forecasts of some series, services or nodes, next to those of their seasonal naive.

    usage       : (n_series, n_resources, n_days, 48), all days of the history
    used, scale : (n_series, n_resources), see `scored_series`
    forecasts   : of "candidate" and "current", (n_series, n_resources, len(days), n_quantiles)
    first_day   : the cut-off
    """
    cut_off = history.days.index(first_day)
    known = daily_peaks(usage[:, :, max(0, cut_off - _WEEK - 1) : cut_off])
    naive = np.stack([seasonal_naive(known, (day - first_day).days) for day in days], axis=2)
    forecasts = {**forecasts, "naive": naive}
    actual = _complete_peaks(usage[:, :, _index(history, days)])
    scores = peak_scores(forecasts, actual, used, scale)
    everywhere = np.isfinite(actual) & used[:, :, None]  # (n_series, n_resources, n_days)
    for forecast in forecasts.values():
        everywhere &= np.isfinite(forecast).all(axis=3)
    result = {}
    for index, resource in enumerate(RESOURCES):
        pairs = everywhere[:, index]
        if resource.name not in scores or not pairs.any():
            continue
        by_name = scores[resource.name]
        bound = forecasts["candidate"][:, index, :, -1][pairs]
        result[resource.name] = GateEvidence(
            candidate=by_name["candidate"],
            current=by_name["current"],
            naive=by_name["naive"],
            widening=_widening(actual[:, index][pairs], bound),
            days=tuple(day for position, day in enumerate(days) if pairs[:, position].any()),
        )
    return result


def _index(history: History, days: tuple[date, ...]) -> list[int]:
    return [history.days.index(day) for day in days]


def _complete_peaks(usage: AnyFloats) -> Floats:
    """Daily peaks, NaN where under 0.95 of the day was measured: (..., n_days, 48) -> (..., n_days)."""
    complete = np.isfinite(usage).mean(axis=-1) >= SAMPLES_NEEDED
    return np.where(complete, daily_peaks(usage), np.nan)


def _widening(actual: Floats, bound: Floats) -> float:
    """The 0.95 quantile of actual / bound, at least 1; an observed one, so that really 0.95 of them are covered."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(actual <= bound, 1.0, actual / bound)
    return float(np.quantile(ratio, PEAK_QUANTILES[-1], method="higher"))
