"""Settings of a service: where it listens, who may ask, and how much."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from forecast.setting_group import Duration, SettingGroup

__all__ = ["ServingSettings"]


class ServingSettings(SettingGroup):
    """What all services have in common. group: which settings these are, for messages."""

    group: ClassVar[str] = "scorer"

    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 in a pod; `--host`."""

    port: int = Field(default=8080, ge=0, le=65_535)
    """0: any free one, which is printed; `--port`."""

    probe_port: int | None = Field(default=None, ge=0, le=65_535)
    """Where /healthz is answered as well, without TLS or tokens, by a thread of its own. None: on `port` only."""

    token_files: list[Path] = Field(default_factory=list)
    """Files of bearer tokens, one per line; read again when they change; `--token-file`."""

    kubernetes_auth: bool = False
    """Let in whoever has a token of the cluster and RBAC's leave for verb and path (docs/security.md)."""

    kubernetes_audiences: list[str] = Field(default_factory=list)
    """Such tokens must be meant for one of these audiences. None: for the API server itself."""

    anonymous: bool = False
    """Listen beyond this machine although anybody who reaches the port may ask: no tokens, no client certificates."""

    metrics_open: bool = False
    """Answer /metrics without a token."""

    allowed_hosts: list[str] = Field(default_factory=list)
    """Host names, without port, under which clients ask: of an ingress, for instance. None: any; on a loopback address
    localhost only (docs/security.md)."""

    tls_cert: Path | None = None
    """PEM file with the server's certificate; None: plain HTTP; `--tls-cert`."""

    tls_key: Path | None = None
    """PEM file with its key; `--tls-key`."""

    client_ca: Path | None = None
    """Clients must show a certificate signed by one of these (mTLS); `--client-ca`."""

    max_body_bytes: int = Field(default=3 * 2**20, gt=0)
    """Of a request. All bodies together get 8 times as much memory."""

    max_concurrent: int = Field(default=256, gt=0)
    """Requests at work at once; more are turned away with 503."""

    drain: Duration = Field(default=0, ge=0)
    """How long to serve on after SIGTERM while /readyz says no, until load balancers have noticed."""
