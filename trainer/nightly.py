"""The nightly run: history -> fit -> publish, picking up where the night before left off."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from forecast.errors import ForecastError
from forecast.fit import FitOptions, fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_artefact import artefact_of, model_of
from forecast.progress import Progress, silent
from forecast.registry import Registry

__all__ = ["Published", "load_previous", "train_and_publish"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Published:
    """A model and the version it was published as."""

    version: str
    model: PeakModel


def train_and_publish(
    history: History,
    registry: Registry,
    *,
    now: datetime,
    data_digest: str = "",
    options: FitOptions | None = None,
    backtest: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Published:
    """Fit a model on the whole history and publish it; the model in use before stays in use if anything fails.

    now         : aware datetime that the manifest records
    data_digest : which data the model was fitted on
    backtest    : figures to publish with it
    """
    model = fit(history, options or FitOptions(), previous=load_previous(registry), progress=progress)
    model = replace(model, data_digest=data_digest)
    version = registry.publish(artefact_of(model, now, dict(backtest) if backtest is not None else None))
    return Published(version, model)


def load_previous(registry: Registry) -> PeakModel | None:
    """The model in use, whose choice of predictors most services keep; None if there is none that can be read.

    A broken model in use is no reason to stop: a new one is the cure.
    """
    try:
        return model_of(registry.load()) if registry.latest() is not None else None
    except ForecastError as error:
        logger.warning("the model in use is not built upon", extra={"url": registry.url, "error": str(error)})
        return None
