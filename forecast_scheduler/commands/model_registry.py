"""The registry that the settings describe: where models are, and which keys sign and vouch for them."""

from __future__ import annotations

from pathlib import Path

from base.errors import InputError, StoreError
from forecast.published_models import Registry
from forecast_scheduler.settings.document import ModelsSettings


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
