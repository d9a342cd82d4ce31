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
    """Port on which a thread of its own answers /healthz as well, without TLS or tokens. None: `port` only."""

    tls_cert: Path | None = None
    """PEM file with the server's certificate, read again when it changes. None: plain HTTP; `--tls-cert`."""

    tls_key: Path | None = None
    """PEM file with its key. None: the file of the certificate holds it; `--tls-key`."""

    client_ca: Path | None = None
    """PEM file: clients must show a certificate that one of these authorities signed (mTLS); `--client-ca`."""

    client_names: tuple[str, ...] = ()
    """Common names; a client's certificate must have one of them. Empty: any certificate that `client_ca` signed."""

    drain: Duration = Field(default=0, ge=0)
    """Time of serving on after SIGTERM, while /readyz says no, until load balancers have noticed."""

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
    """Where the services listen, who may ask, and how much. A command that differs has the same keys under
    COMMAND.serving."""

    group: ClassVar[str] = "serving"
    """Where these settings stand, for messages."""

    token_files: tuple[Path, ...] = ()
    """Files of bearer tokens, one per line, each of which is valid; read again when they change. Empty: no token is
    asked for; `--token-file`."""

    kubernetes_auth: bool = False
    """Admit clients with a token of the cluster if RBAC allows verb and path (docs/operate/security.md)."""

    kubernetes_audiences: tuple[str, ...] = ()
    """Audiences, of which such a token must name one. Empty: the API server's own."""

    anonymous: bool = False
    """Listen beyond this machine although no client shows a token or certificate: everyone who reaches the port may
    ask."""

    metrics_open: bool = False
    """Answer /metrics without a token."""

    allowed_hosts: tuple[str, ...] = ()
    """Host names, without port, by which clients ask, for instance an ingress'. Empty: any; on a loopback address
    localhost only (docs/operate/security.md)."""

    max_body_bytes: int = Field(default=3 * 2**20, gt=0)
    """Largest request, counted while reading. All bodies together get 8 times as much memory, those of one address 4
    times."""

    max_concurrent: int = Field(default=256, gt=0)
    """Requests at work at once; more get 503. Probes are always answered."""
