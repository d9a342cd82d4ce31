"""Everything the peaks page shows, in one object: models read, held against the history, and what to draw chosen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

import numpy as np

from base.arrays import AnyFloats, Floats, Floats32, Ints
from base.errors import InputError, StoreError
from base.object_store import open_store
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.model import PeakModel
from forecast.published_models import Registry
from forecast.resources import HOT_RESOURCES, RESOURCES
from forecast_scheduler.reports.peaks_report.day_figures import (
    DayReading,
    DayScore,
    HotNode,
    PeakSpread,
    hottest_nodes,
    peak_shares,
    read_day,
    runs_of_day,
    runs_that_stay,
    score_day,
    spread_of,
)
from forecast_scheduler.reports.peaks_report.origins import DayForecast, Fit, Origin, forecasts_of, model_in_use
from scorer.replay.replay_figures import shares
from trainer.gate.evidence import peaks_of
from trainer.issued_forecasts import KEPT_DAYS, IssuedForecasts, load_issued
from trainer.run_report.earlier_nights import IssuedScore, score_issued

logger = logging.getLogger(__name__)

DEFAULT_DAYS, MOST_DAYS = 14, 35
DEFAULT_TOP, MOST_DRAWN = 60, 300


@dataclass(frozen=True, slots=True)
class DrawnCurves:
    """Half hours of the nodes or services that are drawn, base units, NaN = unknown.

    chosen                  : rows in the history, what matters most first
    actual, expected, bound : (n_chosen, n_resources, n_days, 48), the last day is the one that comes
    """

    chosen: Ints
    actual: Floats32
    expected: Floats32
    bound: Floats32


@dataclass(frozen=True, slots=True)
class PeaksView:
    """What the page shows.

    days           : the last days of the history
    coming         : the local day after them
    forecasts      : of each of the days, and of the coming one
    scores         : of nodes, by day; a day without a forecast has none
    service_scores : of services' peaks of one pod, as issued where that is kept, up to 60 days back
    spread         : of all days of the history
    hottest        : nodes on the coming day, all of them
    adopted        : day from which placements followed our advice, if known
    hot            : share of its capacity above which a node is hot
    """

    history: History
    made: datetime
    days: tuple[date, ...]
    coming: date
    forecasts: tuple[DayForecast, ...]
    scores: dict[date, DayScore]
    service_scores: tuple[IssuedScore, ...]
    spread: PeakSpread
    hottest: tuple[HotNode, ...]
    nodes: DrawnCurves
    services: DrawnCurves
    hot: float
    adopted: date | None = None

    @property
    def model(self) -> DayForecast:
        """Of the coming day."""
        return self.forecasts[-1]


def peaks_view(
    history: History,
    registry: Registry,
    *,
    made: datetime,
    days: int = DEFAULT_DAYS,
    top: int = DEFAULT_TOP,
    adopted: date | None = None,
    hot: float,
    fit: Fit | None = None,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> PeaksView:
    """Make the view from stored models. Raises InputError: no model, one of another cluster, one newer than the
    history.

    days, top : most past days, and most nodes and services with curves; figures are over all
    adopted, hot : see PeaksView
    fit       : fits a model for `Origin.REHEARSED` if no stored model can be compared with past days
    told      : progress: days read, and how many there are
    """
    model, version = model_in_use(registry, history)
    coming = history.days[-1] + timedelta(days=1)
    if model.first_day > coming:
        raise InputError(
            f"the model in use learned from days up to {model.first_day - timedelta(days=1)}, the history ends with "
            f"{history.days[-1]}: name the --history that it was trained on"
        )
    shown = history.days[-days:]
    tonight = DayForecast(coming, Origin.ISSUED, model.first_day, version)
    collected = _Collected.empty(history, (*shown, coming), top)
    reading = read_day(
        model, history, coming, runs_that_stay(history, model), history.replicas[:, -1, -1], widen=tonight.widen
    )
    collected.choose(reading, len(shown))
    collected.keep(coming, reading)
    del model

    def use(model: PeakModel, forecast: DayForecast) -> None:
        index = history.days.index(forecast.day)
        found = read_day(
            model,
            history,
            forecast.day,
            runs_of_day(history, index),
            history.replicas[:, index, 0],
            widen=forecast.widen,
        )
        collected.keep(forecast.day, found)
        collected.scores[forecast.day] = score_day(
            found, history.node_usage[:, :, index], history.capacity_of_days[:, :, index]
        )
        collected.service_peaks[forecast.day] = peaks_of(model, history, (forecast.day,))[:, :, 0]
        told(len(collected.scores), len(shown))

    past = forecasts_of(shown, registry, history, use, fit)
    return PeaksView(
        history=history,
        made=made,
        days=shown,
        coming=coming,
        forecasts=(*past, tonight),
        scores=collected.scores,
        service_scores=score_issued(history, _issued(registry, history, past, collected.service_peaks)),
        spread=spread_of(history, hot),
        hottest=hottest_nodes(reading, history.capacity),
        nodes=collected.nodes,
        services=collected.services,
        adopted=adopted,
        hot=hot,
    )


@dataclass(slots=True)
class _Collected:
    """What is kept of the days' readings while they are read."""

    history: History
    days: tuple[date, ...]
    top: int
    nodes: DrawnCurves
    services: DrawnCurves
    scores: dict[date, DayScore]
    service_peaks: dict[date, Floats]

    @classmethod
    def empty(cls, history: History, days: tuple[date, ...], top: int) -> _Collected:
        nothing = np.empty((0, len(RESOURCES), len(days), SLOTS_PER_DAY), dtype=np.float32)
        none = DrawnCurves(np.zeros(0, dtype=np.int64), nothing, nothing, nothing)
        return cls(history, days, top, none, none, {}, {})

    def choose(self, coming: DayReading, n_past: int) -> None:
        """Which nodes and services are drawn, and what they really used."""
        history = self.history
        of_nodes = history.node_usage[:, :, -n_past:]
        of_services = history.usage_per_pod[:, :, -n_past:] * history.replicas[:, None, -n_past:]
        hot = list(HOT_RESOURCES)
        peaks = np.nan_to_num(of_nodes).max(axis=3, initial=0.0)  # (n_nodes, n_resources, n_past)
        measured = shares(peaks[..., None], history.capacity_of_days[:, :, -n_past:])[..., 0]
        node_rank = np.fmax(
            np.nan_to_num(peak_shares(coming, history.capacity)).max(axis=1, initial=0.0),
            np.nan_to_num(measured)[:, hot].max(axis=(1, 2), initial=0.0),
        )
        load = np.fmax(_highest(of_services), _highest(coming.service_mean))[:, hot]
        of_cluster = load / np.maximum(load.sum(axis=0), 1e-12)
        self.nodes = self._blank(node_rank, of_nodes)
        self.services = self._blank(of_cluster.max(axis=1, initial=0.0), of_services)

    def keep(self, day: date, reading: DayReading) -> None:
        """The curves of a day that are drawn."""
        position = self.days.index(day)
        for curves, expected, bound in (
            (self.nodes, reading.node_mean, reading.node_bound),
            (self.services, reading.service_mean, reading.service_bound),
        ):
            curves.expected[:, :, position] = expected[curves.chosen]
            curves.bound[:, :, position] = bound[curves.chosen]

    def _blank(self, rank: Floats, actual: AnyFloats) -> DrawnCurves:
        chosen = np.argsort(-rank, kind="stable")[: self.top]
        shape = (len(chosen), len(RESOURCES), len(self.days), SLOTS_PER_DAY)
        expected, bound = (np.full(shape, np.nan, dtype=np.float32) for _ in range(2))
        came = np.full(shape, np.nan, dtype=np.float32)
        came[:, :, : len(self.days) - 1] = actual[chosen]
        return DrawnCurves(chosen, came, expected, bound)


def _highest(usage: AnyFloats) -> Floats:
    """Highest half hour of each series, 0 where nothing is known: (n, n_resources, ...) -> (n, n_resources)."""
    by_series = np.nan_to_num(usage).reshape(*usage.shape[:2], -1)
    return np.asarray(by_series.max(axis=2, initial=0.0), dtype=np.float64)


def _issued(
    registry: Registry, history: History, past: tuple[DayForecast, ...], peaks: dict[date, Floats]
) -> IssuedForecasts:
    """Peaks of services as the trainer kept them; of days without, as the models read here have them."""
    days = history.days[-KEPT_DAYS:]
    try:
        kept = load_issued(open_store(registry.url), days).aligned(history.services)
    except StoreError as error:
        logger.warning("forecasts that were kept cannot be read", extra={"url": registry.url, "error": str(error)})
        kept = IssuedForecasts.none(days).aligned(history.services)
    table, lead, versions = kept.peaks.copy(), kept.lead_days.copy(), list(kept.versions)
    for forecast in past:
        position = days.index(forecast.day) if forecast.day in days else None
        if position is not None and not lead[position] and forecast.day in peaks:
            table[:, :, position], lead[position] = peaks[forecast.day], forecast.lead_days
            versions[position] = forecast.version
    return replace(kept, peaks=table, lead_days=lead, versions=tuple(versions))
