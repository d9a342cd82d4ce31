"""Is there enough, and is it recent enough, to replace the model in use? Pure.

measured days < 7, span < 7        cold start: published with a warning
measured days < 7, span >= 7       refused: the history is mostly gap
measured days < 7, model in use
  knows 7 or more                  refused: a worse model must not replace it
newest day over two days ago       refused when the source is live: monitoring has stopped
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np

from base.errors import InputError
from forecast.history import History
from forecast.model import PeakModel

COLD_START_DAYS = 7
"""With less than a week of history no weekday has been seen twice, and most not at all."""

MEASURED_DAYS = "measured_days"
"""Where a published model's info keeps the number: its span may be mostly gap when it was forced."""

_STALE_DAYS = 2
"""The newest whole day may be the day before yesterday: just after midnight the last samples may still be missing."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """measured_days: days of which at least half the slots hold usage."""

    measured_days: int

    @property
    def cold_start(self) -> bool:
        return self.measured_days < COLD_START_DAYS


def check_ready(history: History, previous: PeakModel | None, *, live_at: datetime | None, force: bool) -> Readiness:
    """Raise InputError where tonight's model must not be fitted on this.

    previous : the model in use
    live_at  : the time, if the history comes from a live server; None: a history of any age is meant
    force    : train anyway, except on data that is not of these days
    """
    measured = measured_days(history)
    first, last = history.days[0], history.days[-1]
    if live_at is not None:
        _check_recent(last, live_at.astimezone(history.calendar.zone).date())
    ready = Readiness(measured)
    if force or not ready.cold_start:
        return ready
    if history.n_days >= COLD_START_DAYS:
        raise InputError(
            f"of the {history.n_days} days from {first} to {last} only {measured} hold data, {COLD_START_DAYS} are "
            "needed: look for gaps in the scraping of cAdvisor and kube-state-metrics, start a new history in another "
            "directory, or train anyway with --force"
        )
    known = 0 if previous is None else int(previous.info.get(MEASURED_DAYS, previous.trained_days))
    if known >= COLD_START_DAYS:
        raise InputError(
            f"the history holds {measured} days, but the model in use was trained on {known}: it "
            "stays in use; point --history at the history that grew so far, or publish anyway with --force"
        )
    return ready


def measured_days(history: History) -> int:
    """Days of which at least half the slots hold usage: of most pods, or of nodes where no pod is ever measured."""
    usage = np.isfinite(history.usage_per_pod)  # (n_services, n_resources, n_days, 48)
    best = int(usage.sum(axis=(0, 2, 3)).argmax())
    there = np.nan_to_num(history.replicas) > 0
    if usage[:, best].any():
        seen = (usage[:, best] & there).sum(axis=0) >= 0.5 * np.maximum(there.sum(axis=0), 1)
    else:
        seen = np.isfinite(history.node_usage).any(axis=(0, 1))
    return int(np.count_nonzero(seen.mean(axis=1) >= 0.5))


def _check_recent(last: date, today: date) -> None:
    if today - last > timedelta(days=_STALE_DAYS):
        raise InputError(
            f"the newest whole day of data is {last}, {(today - last).days} days ago: Prometheus has stopped "
            "scraping kube-state-metrics or cAdvisor, or forgot it; mend that first, the last model stays in use"
        )
