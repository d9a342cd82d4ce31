"""Which forecast counts for which day, and how honest it is.

issued    made from the days before, and published before the day was over: what the scorer acted upon
later     made from the days before, but published after the day: the same recipe, no component acted upon it
rehearsed no model that is kept knows only the days before, so the recipe was fitted once for the page, on what lay
          before the last days
none      nothing is shown: a model's curves of days that it learned from are no forecasts
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from base.errors import InputError
from cluster.degradation import widening
from forecast.calendar import Calendar
from forecast.history import History
from forecast.model import DATED_DAYS, PeakModel
from forecast.model_artefact import model_of
from forecast.published_models import Registry
from trainer.issued_forecasts import published_at

logger = logging.getLogger(__name__)

REHEARSED_DAYS = 7
LEAST_DAYS_TO_FIT = 7

Fit = Callable[[History], PeakModel]
Use = Callable[[PeakModel, "DayForecast"], None]


class Origin(StrEnum):
    """How the forecast of a day came about, the most honest first."""

    ISSUED = "issued"
    LATER = "later"
    REHEARSED = "rehearsed"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class DayForecast:
    """Where the forecast of one day comes from.

    cut_off   : first day that its model did not know; None = there is no forecast
    version   : "" = not published
    """

    day: date
    origin: Origin = Origin.NONE
    cut_off: date | None = None
    version: str = ""

    @property
    def lead_days(self) -> int:
        """1 = from the midnight the day began with; 0 = there is no forecast."""
        return 0 if self.cut_off is None else (self.day - self.cut_off).days + 1

    @property
    def widen(self) -> float:
        """Factor on the bounds. A rehearsed week is read as fitted: it stands for nights that never were."""
        return 1.0 if self.origin is Origin.REHEARSED else widening(self.lead_days - 1)


def model_in_use(registry: Registry, history: History) -> tuple[PeakModel, str]:
    """The model that `latest.json` names, and its version. Raises InputError where it is not of this cluster."""
    artefact = registry.load()
    model = model_of(artefact, registry.now())
    check_same_cluster(model, history)
    return model, artefact.version or ""


def check_same_cluster(model: PeakModel, history: History) -> None:
    """Raises InputError where a model and a history have no node and no service in common, or count other hours."""
    if not (set(model.nodes) & set(history.nodes) or set(model.services) & set(history.services)):
        raise InputError(
            f"the model knows none of the history's {len(history.nodes)} nodes and {len(history.services)} services "
            f"(its nodes: {', '.join(model.nodes[:3])}, ...): name the --models and the --history of one cluster"
        )
    if model.calendar.time_zone != history.calendar.time_zone:
        raise InputError(
            f"the model counts half hours of {model.calendar.time_zone}, the history those of "
            f"{history.calendar.time_zone}: set time_zone to what the model was trained with"
        )


def forecasts_of(
    days: Sequence[date], registry: Registry, history: History, use: Use, fit: Fit | None
) -> tuple[DayForecast, ...]:
    """Find the forecast of each day and hand it with its model to `use`, one model in memory at a time.

    days : days of the history
    use  : called for a day again where a more honest forecast is found; the last call counts
    fit  : for rehearsed days, where no other forecast is found for any day; None = do without
    """
    found = {day: DayForecast(day) for day in days}
    for version in reversed(registry.versions()):
        if all(forecast.origin is Origin.ISSUED for forecast in found.values()):
            break
        model = _readable(registry, version, history)
        if model is None:
            continue
        for day in days:
            origin = _origin(model.first_day, version, history.calendar, day)
            if _better(origin, found[day].origin):
                found[day] = DayForecast(day, origin, model.first_day, version)
                use(model, found[day])
    if fit is not None and all(forecast.origin is Origin.NONE for forecast in found.values()):
        cut = max(history.n_days - min(REHEARSED_DAYS, len(days)), LEAST_DAYS_TO_FIT)
        if cut < history.n_days:
            model = fit(history.before(cut))
            for day in history.days[cut:]:
                found[day] = DayForecast(day, Origin.REHEARSED, model.first_day)
                use(model, found[day])
    return tuple(found[day] for day in days)


def _origin(cut_off: date, version: str, calendar: Calendar, day: date) -> Origin:
    if not 0 <= (day - cut_off).days < DATED_DAYS:
        return Origin.NONE
    published = published_at(version)
    on_time = published is not None and published < calendar.midnight(day + timedelta(days=1))
    return Origin.ISSUED if on_time else Origin.LATER


def _better(new: Origin, old: Origin) -> bool:
    order = list(Origin)
    return order.index(new) < order.index(old)


def _readable(registry: Registry, version: str, history: History) -> PeakModel | None:
    """A version that is kept, or None with a warning: an old one that cannot be used stops nothing."""
    try:
        model = model_of(registry.load(version), registry.now())
        check_same_cluster(model, history)
    except InputError as error:
        logger.warning("a version is left out", extra={"version": version, "error": " ".join(str(error).split())})
        return None
    return model
