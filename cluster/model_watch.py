"""Which published model is in use, and why a newer one is not. Nothing here ever takes a good model away."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from base.errors import ForecastError, StoreError
from forecast.model import PeakModel
from forecast.model_artefact import model_of
from forecast.published_models import Registry

logger = logging.getLogger(__name__)

_LOOK_AGAIN_SECONDS = 600.0
"""A refused model may have been damaged on its way; it is looked at again from time to time."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model and the version it was published as."""

    version: str
    model: PeakModel
    backtest: dict[str, object]


class ModelWatch:
    """Polls a registry. `refused` says what is wrong with what is published there, None = nothing."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._in_use: str | None = None
        self._before: str | None = None
        self._refused_version: str | None = None
        self._refused_because: str | None = None
        self._refused_at = 0.0
        self.refused: str | None = None

    def poll(self, now: float) -> LoadedModel | None:
        """A model to use instead of the one handed out before, None = go on with that. Raises nothing."""
        version = None
        try:
            version = self._registry.latest()
            if version is None:
                if self._in_use is None:
                    self.refused = None
                else:  # a volume that is not mounted any more looks like this
                    self._refuse(f"nothing is published at {self._registry.shown} any more: is it the right place?")
                return None
            if version == self._in_use:
                self.refused = self._refused_version = None
                return None
            if version == self._refused_version and abs(now - self._refused_at) < _LOOK_AGAIN_SECONDS:
                self.refused = self._refused_because
                return None
            artefact = self._registry.load(version)
            model = model_of(artefact, self._registry.now())
        except StoreError as error:  # it may answer again at the next look
            self._refuse(str(error))
            return None
        except ForecastError as error:
            self._refuse(str(error), version, now)
            return None
        except Exception as error:  # a foreign store may raise anything; what is in use stays in use
            logger.exception("a model could not be read")
            self._refuse(f"{type(error).__name__}: {error}", version, now)
            return None
        self._before, self._in_use, self._refused_version, self.refused = self._in_use, version, None, None
        return LoadedModel(version, model, dict(artefact.manifest.backtest))

    def give_back(self, loaded: LoadedModel, reason: str, now: float) -> None:
        """A model that was handed out turned out not to be usable; the one before is still in use."""
        if self._in_use == loaded.version:
            self._in_use = self._before
        self._refuse(reason, loaded.version, now)

    def _refuse(self, reason: str, version: str | None = None, now: float = 0.0) -> None:
        """version: looked at again after a while only; None = at the next poll."""
        if version is not None:
            self._refused_version, self._refused_because, self._refused_at = version, reason, now
        if reason != self.refused:
            logger.warning("model refused", extra={"reason": reason})
        self.refused = reason
