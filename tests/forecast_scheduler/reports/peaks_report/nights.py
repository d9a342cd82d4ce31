"""A small cluster whose models were published night by night, some of them in time and some long after."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from base.object_store import open_store
from forecast.fit import FitOptions, fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from tests.synthetic import synthetic_history
from trainer.issued_forecasts import store_issued

N_DAYS = 18
MADE = datetime(2027, 6, 1, 9, 30, tzinfo=UTC)
"""Long after the days of the history."""


@lru_cache(maxsize=1)
def history() -> History:
    """From Monday, 2026-05-04 on."""
    return synthetic_history(n_days=N_DAYS, n_services=4, n_nodes=3)


@lru_cache(maxsize=8)
def model_at(n_days: int) -> PeakModel:
    """What was known at that midnight."""
    return fit(history().before(n_days), FitOptions(rehearsal_weeks=1))


def rehearsal(known: History) -> PeakModel:
    """A fit whose result is kept, for histories that are the beginning of ours."""
    return model_at(known.n_days)


def registry_of(folder: Path, *, in_time: tuple[int, ...] = (), late: tuple[int, ...] = (N_DAYS,)) -> Registry:
    """A store with models that know so many days: published at 03:00 of the night, or a year later."""
    url = str(folder / "models")
    published = [
        *((history().calendar.midnight(model_at(n).first_day) + timedelta(hours=3), n) for n in in_time),
        *((MADE - timedelta(days=10) + timedelta(hours=n), n) for n in late),
    ]
    for at, n_days in published:
        registry = Registry(url, clock=lambda at=at: at)  # type: ignore[misc]
        version = registry.publish(artefact_of(model_at(n_days), at))
        store_issued(open_store(url), model_at(n_days), version)
    return Registry(url, clock=lambda: MADE)
