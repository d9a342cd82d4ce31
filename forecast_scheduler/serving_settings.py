"""Settings of a service: where it listens, who may ask, and how much."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from forecast_scheduler.setting_group import Duration, SettingGroup

__all__ = ["ServingSettings"]


class ServingSettings(SettingGroup):
    """What `scorer` and `extender` have in common."""

    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 in a pod."""

    port: int = Field(default=8080, ge=0, le=65_535)
    """0: any free one, which is printed."""

    token_files: list[Path] = Field(default_factory=list)
    """Bearer tokens, one per line; read again when they change. None: anybody who reaches the port may ask."""

    metrics_open: bool = False
    """Whether /metrics needs no token."""

    tls_cert: Path | None = None
    """PEM file with the server's certificate; None: plain HTTP."""

    tls_key: Path | None = None
    """PEM file with its key."""

    client_ca: Path | None = None
    """Clients must show a certificate signed by one of these (mTLS)."""

    max_body_bytes: int = Field(default=8 * 2**20, gt=0)
    """Of a request."""

    max_concurrent: int = Field(default=64, gt=0)
    """Requests at work at once; more are turned away with 503."""

    drain: Duration = Field(default=0, ge=0)
    """How long to serve on after SIGTERM while /readyz says no, until load balancers have noticed."""
