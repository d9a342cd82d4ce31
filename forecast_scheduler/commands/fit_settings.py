"""The fit as the settings want it, so that what one command measures is what `train` publishes."""

from __future__ import annotations

from forecast.fit import FitOptions
from forecast_scheduler.settings.document import Settings


def fit_options(settings: Settings) -> FitOptions:
    """Options of every fit. Paths are absolute: a worker process may run in another directory."""
    path = settings.train.foundation_model
    return FitOptions(foundation_model=None if path is None else path.absolute())
