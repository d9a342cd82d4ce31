"""Settings that all services have in common: where a service listens, who may ask, and how much."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class ServerOptions(SettingGroup):
    """Where a service listens, and how it ends."""

    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 in a pod; `--host`."""

    port: int = Field(default=8080, ge=0, le=65_535)
    """0: any free one, which is printed; `--port`."""

    probe_port: int | None = Field(default=None, ge=0, le=65_535)
    """Second port for /healthz, without TLS and tokens. None: there is none."""

    tls_cert: Path | None = None
    """PEM file of the certificate, read again when it changes. None: plain HTTP; `--tls-cert`."""

    tls_key: Path | None = None
    """PEM file of its key. None: in that of the certificate; `--tls-key`."""

    client_ca: Path | None = None
    """PEM file of authorities, one of which must have signed a client's certificate (mTLS); `--client-ca`."""

    client_names: tuple[str, ...] = ()
    """Common names, one of which a client's certificate must have. Empty: any."""

    drain: Duration = Field(default=0, ge=0)
    """Time of serving on after SIGTERM, while /readyz says no."""

    shutdown: ClassVar[float] = 15
    """Seconds that requests in flight may take after that: half of the 30 s that a pod has by default."""

    header_timeout: ClassVar[float] = 10
    """Seconds in which a connection must end its TLS handshake and send the header of a request. Clients of a cluster
    take milliseconds; slower ones hold connections that others need."""

    unread_timeout: ClassVar[float] = 60
    """Seconds after which a client that reads nothing of its answers is disconnected: its answers take memory."""

    connections: ClassVar[int] = 500
    """Most connections at once; the one that has been idle for the longest makes room. The memory limits of deploy/
    are computed with it."""

    reload_every: ClassVar[float] = 5
    """Seconds between two looks at the certificate files. A look costs three calls of stat."""


class ServingOptions(ServerOptions):
    """Where the services listen, who may ask, and how much (docs/operate/security.md). A command that differs has the
    same keys under COMMAND.serving."""

    group: ClassVar[str] = "serving"
    """Where these settings stand, for messages."""

    token_files: tuple[Path, ...] = ()
    """Files of bearer tokens, one a line, read again when they change. Empty: clients need none; `--token-file`."""

    kubernetes_auth: bool = False
    """Admit clients with a token of the cluster whom RBAC allows verb and path."""

    kubernetes_audiences: tuple[str, ...] = ()
    """Audiences, one of which such a token must have. Empty: the API server."""

    anonymous: bool = False
    """Listen beyond this machine although clients show neither token nor certificate."""

    metrics_open: bool = False
    """Answer /metrics without a token."""

    allowed_hosts: tuple[str, ...] = ()
    """Host names by which clients ask, for instance an ingress'. Empty: any; on a loopback address localhost."""

    max_body_bytes: int = Field(default=3 * 2**20, gt=0)
    """Largest request. All together get 8 times as much memory, those of one address 4 times."""

    max_concurrent: int = Field(default=256, gt=0)
    """Requests at work at once; more get 503. Probes are always answered."""
