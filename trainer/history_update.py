"""What is new on a Prometheus server goes into our own history, day by day."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from base.errors import InputError
from base.progress import Progress, silent
from forecast.calendar import Calendar
from trainer.history.cleaning import CleaningCause
from trainer.own_history_store import OwnHistory
from trainer.prometheus.day_tables import Remark
from trainer.prometheus.http_answer import ImpossibleAnswer, PrometheusUnreachable
from trainer.prometheus.prometheus_source import PrometheusSource

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one run read.

    days           : UTC days that were read, oldest first
    rows           : samples of pods and nodes stored
    recorded_share : share of the samples' queries that recording rules answered; NaN if no day was read
    unreadable     : days that could not be read, and why; they are tried again the next night
    damaged        : files of our own history that were set aside
    forgotten      : days that were too old to keep
    counts         : flaws by (file, cause)
    remarks        : what does not balance, and how unusual metrics were read: of the newest day that says it
    """

    days: tuple[date, ...]
    rows: int
    recorded_share: float
    unreadable: Mapping[date, str]
    damaged: tuple[str, ...]
    forgotten: tuple[date, ...]
    counts: Mapping[tuple[str, CleaningCause], int]
    remarks: tuple[Remark, ...] = ()


def read_new_days(
    source: PrometheusSource,
    own: OwnHistory,
    *,
    now: datetime,
    days: int,
    keep_days: int,
    calendar: Calendar,
    before_write: Callable[[], None] = lambda: None,
    progress: Progress = silent,
) -> Reading:
    """Read every day the server still has and we have not, oldest first; each is stored before the next is read.

    days         : how far back to look on the server
    keep_days    : older days of our own history are deleted, and not read
    calendar     : written into history.json on the first run
    before_write : raises where this run must not write any more, because its lease was lost
    The caller has checked both, and holds the lease. Raises InputError if the server cannot be read; what was stored
    until then stays. A day whose data cannot be used (labels or units that were wrong for an hour) is passed over, so
    that it does not keep later days out.
    """
    before_write()
    own.remove_leftovers(now)
    damaged = own.set_damaged_aside()
    today = now.astimezone(UTC).date()
    wanted = own.to_read(source.days_with_data(today - timedelta(days=min(days, keep_days)), now))
    if not wanted and not own.read_days():
        raise InputError(
            f"{source.url} has no pods in the last {days} days: is kube-state-metrics scraped, and since when?"
        )
    own.begin(calendar, source.options.step_seconds, source.kube_system_created(now))
    counts: Counter[tuple[str, CleaningCause]] = Counter()
    unreadable: dict[date, InputError] = {}
    remarks: dict[str, Remark] = {}
    shares, rows = [], 0
    progress("read Prometheus", 0, len(wanted))
    for done, day in enumerate(wanted, start=1):
        try:
            tables = source.read_day(day, now)
        except (PrometheusUnreachable, ImpossibleAnswer):
            raise
        except InputError as error:
            unreadable[day] = error
            continue
        before_write()
        own.append(tables, read_until=now)
        counts.update(tables.counts)
        remarks.update({remark.cause: remark for remark in tables.remarks})
        shares.append(tables.recorded_share)
        rows += tables.usage.num_rows + tables.nodes.num_rows
        progress("read Prometheus", done, len(wanted))
        logger.info("read a day", extra={"day": str(day), "rows": tables.usage.num_rows})
    if unreadable and len(unreadable) == len(wanted):
        raise unreadable[wanted[-1]]
    before_write()
    forgotten = own.forget_before(today - timedelta(days=keep_days))
    share = sum(shares) / len(shares) if shares else float("nan")
    read = tuple(day for day in wanted if day not in unreadable)
    why = {day: str(error) for day, error in unreadable.items()}
    return Reading(read, rows, share, why, tuple(damaged), tuple(forgotten), dict(counts), tuple(remarks.values()))
