"""Settings of one of our services that runs elsewhere."""

from __future__ import annotations

from pathlib import Path

from base.setting_group import SettingGroup
from serving.remote_service import RemoteAddress


class RemoteServiceOptions(SettingGroup):
    """Where a service of ours runs, and how to speak to it."""

    url: str | None = None
    """For instance https://scorer.forecast-scheduler:8080. None: it is not asked."""

    token_file: Path | None = None
    """File with the bearer token it asks for."""

    ca: Path | None = None
    """PEM file its certificate is checked against. None: the system's."""

    client_cert: Path | None = None
    """PEM file with the certificate to show it."""

    client_key: Path | None = None
    """PEM file with its key."""

    def address(self, seconds: float) -> RemoteAddress | None:
        """Return where to ask, None = nowhere. seconds: within which an answer must come."""
        if self.url is None:
            return None
        return RemoteAddress(self.url, self.token_file, self.ca, self.client_cert, self.client_key, seconds)
