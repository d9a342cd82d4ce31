"""The coming days as if they had been recorded: what the model expects, with the deviations of last week.

Last week's pods come again at the same hours. What each of them used is brought to the level and shape that the model
expects of its service, plus what last week deviated from the model's curve (forecast.scenarios). So the search of a
recorded window can be used as it is, and the forecast is judged by a week that is as uneven as the last one was.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Final

import numpy as np

from base.arrays import AnyFloats, Floats
from forecast.history import History, PodUsage
from forecast.model import PeakModel
from forecast.scenarios import SCENARIO_DAYS

_WEEK: Final = 7
_MOST_CHANGE: Final = 4.0
"""A half hour of a pod is scaled by at most this factor: last week's may have been nearly nothing."""


def coming_days(history: History, n_days: int) -> tuple[date, ...]:
    """The days after a history, one more than asked: a window begins at 04:00."""
    return history.calendar.horizon(history.days[-1] + timedelta(days=1), n_days + 1)


def days_before(history: History, n_days: int) -> tuple[date, ...]:
    """The days of which pods are read: those as many weeks before `coming_days` as have been recorded."""
    weeks = -(-(n_days + 1) // _WEEK)
    return tuple(day - timedelta(days=_WEEK * weeks) for day in coming_days(history, n_days))


def playable_coming_days(history: History, usual: int) -> int:
    """Return how many of the usual days the history has recorded pods for; at least 1."""
    known = [n for n in range(1, usual + 1) if days_before(history, n)[0] >= history.days[0]]
    return max(known, default=1)


def with_coming_days(history: History, pods: PodUsage, model: PeakModel, n_days: int) -> tuple[History, PodUsage]:
    """A history that goes on for so many days, and the pods of these days.

    pods  : of `days_before`
    model : fitted on the whole history
    """
    days = coming_days(history, n_days)
    before = [history.days.index(day) for day in days_before(history, n_days)]
    offsets = [(day - model.first_day).days % SCENARIO_DAYS for day in days]
    expected = model.usage(days) + model.scenario_deviation[:, :, 0, offsets].astype(np.float64)
    usage = _in_order(np.maximum(expected, 0.0), model, history)
    past = history.usage_per_pod[:, :, before].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = usage / past
    change = np.where(np.isfinite(change), np.clip(change, 1 / _MOST_CHANGE, _MOST_CHANGE), 1.0)
    unknown = np.full((len(history.nodes), usage.shape[1], len(days), usage.shape[3]), np.nan, dtype=np.float32)
    longer = replace(
        history,
        days=(*history.days, *days),
        usage_per_pod=_with(history.usage_per_pod, usage),
        replicas=np.concatenate([history.replicas, history.replicas[:, before]], axis=1),
        pod_variance=np.concatenate([history.pod_variance, history.pod_variance[:, :, before]], axis=2),
        node_usage=np.concatenate([history.node_usage, unknown], axis=2),
        node_pod_usage=np.concatenate([history.node_pod_usage, unknown], axis=2),
        daily_requests=np.concatenate(
            [history.daily_requests, np.repeat(history.daily_requests[:, :, -1:], len(days), axis=2)], axis=2
        ),
        daily_capacity=None
        if history.daily_capacity is None
        else np.concatenate(
            [history.daily_capacity, np.repeat(history.capacity[:, :, None], len(days), axis=2)], axis=2
        ),
    )
    scaled = (pods.usage * change[pods.service]).astype(np.float32)
    return longer, replace(pods, days=days, usage=scaled)


def _in_order(usage: Floats, model: PeakModel, history: History) -> Floats:
    """Of the history's services; of one that the model does not know, NaN."""
    row_of = {service: row for row, service in enumerate(model.services)}
    rows = np.array([row_of.get(service, -1) for service in history.services])
    return np.where((rows >= 0)[:, None, None, None], usage[rows], np.nan)


def _with(recorded: AnyFloats, expected: Floats) -> AnyFloats:
    return np.concatenate([recorded, expected.astype(recorded.dtype)], axis=2)
