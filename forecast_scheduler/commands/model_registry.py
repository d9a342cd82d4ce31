"""The registry that the settings describe: where models are, which keys sign and vouch for them, and which processes
use which model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from base.errors import InputError, StoreError
from forecast.published_models import Registry
from forecast_scheduler.settings.document import ModelsSettings
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import ConnectionOptions

_QUERY = "count by (version, job) (forecast_model_info)"

_PATIENCE_SECONDS = 5.0
"""For a person who waits; a nightly run has more."""

Users = Mapping[str, Mapping[str, int]]
"""By version, processes by the job that scrapes them."""


def open_registry(settings: ModelsSettings, location: str | None) -> Registry:
    """The registry at `location`, or where the settings say if that is None."""
    return Registry(
        location or settings.location,
        public_key=_read_key(settings.public_key, "models.public_key"),
        private_key=_read_key(settings.private_key, "models.private_key"),
        keep=settings.keep,
    )


def published_versions(registry: Registry) -> tuple[list[str], str | None]:
    """All complete versions, oldest first, and the one in use."""
    try:
        return registry.versions(), registry.latest()
    except StoreError as error:
        raise InputError(f"models at {registry.url} cannot be listed: {error}; check --models") from error


def _read_key(path: Path | None, setting: str) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"key file {path} cannot be read: {error.strerror or error}; correct {setting}") from error


def model_users(url: str, options: ConnectionOptions) -> Users:
    """Return who uses each model. Raises ForecastError if Prometheus does not answer, or refuses the query."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    quick = options.model_copy(update={"patience": min(options.patience, _PATIENCE_SECONDS)})
    answer = PrometheusConnection(url, quick).instant("model_info", _QUERY)
    for at, value in zip(answer.series.tolist(), answer.values.tolist(), strict=True):
        labels = answer.labels[at]
        found[labels.get("version", "")][labels.get("job", "")] = int(value)
    return found
