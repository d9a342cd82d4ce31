"""What is new on a Prometheus server goes into our own history, day by day."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from forecast.calendar import Calendar
from forecast.errors import InputError
from forecast.progress import Progress, silent
from trainer.history.cleaning import Cause
from trainer.own_history.store import OwnHistory
from trainer.prometheus.source import PrometheusSource

__all__ = ["Reading", "read_new_days"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one run read.

    days           : UTC days that were read, oldest first
    rows           : samples of pods and nodes stored
    recorded_share : share of the samples' queries that recording rules answered; NaN if no day was read
    forgotten      : days that were too old to keep
    counts         : flaws by (file, cause)
    """

    days: tuple[date, ...]
    rows: int
    recorded_share: float
    forgotten: tuple[date, ...]
    counts: Mapping[tuple[str, Cause], int]


def read_new_days(
    source: PrometheusSource,
    own: OwnHistory,
    *,
    now: datetime,
    days: int,
    keep_days: int,
    calendar: Calendar,
    progress: Progress = silent,
) -> Reading:
    """Read every day the server still has and we have not, oldest first; each is stored before the next is read.

    days      : how far back to look on the server
    keep_days : older days of our own history are deleted
    calendar  : written into history.json on the first run
    The caller has checked both, and holds the lease. Raises InputError if the server cannot be read; what was stored
    until then stays.
    """
    today = now.astimezone(UTC).date()
    wanted = own.to_read(source.days_with_data(today - timedelta(days=days), now))
    if not wanted and not own.read_days():
        raise InputError(
            f"{source.url} has no pods in the last {days} days: is kube-state-metrics scraped, and since when?"
        )
    own.begin(calendar, source.options.step_seconds)
    counts: Counter[tuple[str, Cause]] = Counter()
    shares, rows = [], 0
    progress("read Prometheus", 0, len(wanted))
    for done, day in enumerate(wanted, start=1):
        tables = source.read_day(day, now)
        own.append(tables, read_until=now)
        counts.update(tables.counts)
        shares.append(tables.recorded_share)
        rows += tables.usage.num_rows + tables.nodes.num_rows
        progress("read Prometheus", done, len(wanted))
        logger.info("read a day", extra={"day": str(day), "rows": tables.usage.num_rows})
    forgotten = own.forget_before(today - timedelta(days=keep_days))
    share = sum(shares) / len(shares) if shares else float("nan")
    return Reading(tuple(wanted), rows, share, tuple(forgotten), dict(counts))
