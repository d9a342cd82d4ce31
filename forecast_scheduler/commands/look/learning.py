"""Reads the last days of a metrics store and learns from them, as `train` does, in a directory that is then removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from base.progress import Progress
from forecast.published_models import Registry
from forecast_scheduler.commands.look.temporary import temporary_directory
from forecast_scheduler.commands.train_night import Trained, train_night
from forecast_scheduler.settings.document import ModelsSettings, Settings
from trainer.prometheus.metrics_store import MetricsStore

MOST_DAYS: Final = 14
"""Two weeks: one to learn from and one to play back. More make a first look longer, and hardly better."""

_PATIENCE_SECONDS: Final = 30.0
"""For which a store that fails is asked again: a person waits, and a nightly run has more."""


@dataclass(frozen=True, slots=True)
class Learned:
    """settings: whose models are the one that was learned; models: where it is, until the context ends"""

    settings: Settings
    trained: Trained
    models: str


@contextmanager
def learned(settings: Settings, source: MetricsStore | Path, *, now: datetime, progress: Progress) -> Iterator[Learned]:
    """Yield what the last days teach; nothing of it remains afterwards. Raises InputError as `train` does.

    source : a store, or the directory of a history, which is used as it is
    """
    with temporary_directory() as directory:
        models = str(directory / "models")
        days = min(settings.prometheus.days, MOST_DAYS)
        patience = min(settings.prometheus.patience, _PATIENCE_SECONDS)
        # Keys that sign or check models are for models that are kept.
        alone = settings.replace(
            models=ModelsSettings(location=models),
            prometheus=settings.prometheus.replace(days=days, patience=patience),
        )
        trained = train_night(
            alone,
            Registry(models),
            history=str(source if isinstance(source, Path) else directory / "history"),
            store=None if isinstance(source, Path) else source,
            force=False,
            now=now,
            progress=progress,
        )
        yield Learned(alone, trained, models)
