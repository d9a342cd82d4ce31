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
    """Where /healthz is answered as well, without TLS or tokens, by a thread of its own. None: on `port` only."""

    tls_cert: Path | None = None
    """PEM file with the server's certificate, if needed with its key; read again when it changes. TLS 1.2 or later.
    None: plain HTTP; `--tls-cert`."""

    tls_key: Path | None = None
    """PEM file with its key; `--tls-key`."""

    client_ca: Path | None = None
    """Clients must show a certificate signed by one of these (mTLS); `--client-ca`."""

    client_names: tuple[str, ...] = ()
    """Common names, of which a client's certificate must have one. None: any certificate signed by `client_ca` will
    do."""

    drain: Duration = Field(default=0, ge=0)
    """How long to serve on after SIGTERM while /readyz says no, until load balancers have noticed."""

    shutdown: Duration = Field(default=15, gt=0)
    """How long requests in flight may take after that."""

    header_timeout: Duration = Field(default=10, gt=0)
    """A connection must send the header of a request within this time, and before it end its TLS handshake."""

    unread_timeout: Duration = Field(default=60, gt=0)
    """A client that has read nothing of its answers for this time is disconnected."""

    connections: int = Field(default=500, gt=0)
    """Most connections at once. The one that has been idle for the longest makes room."""

    reload_every: Duration = Field(default=5, gt=0)
    """Time between two looks at the certificate files."""


class ServingOptions(ServerOptions):
    """What all services have in common. group: which settings these are, for messages."""

    group: ClassVar[str] = "scorer"

    token_files: tuple[Path, ...] = ()
    """Files of bearer tokens, one per line. Every line is valid, so that tokens can be rotated; read again when they
    change. Empty: no token is asked for; `--token-file`."""

    kubernetes_auth: bool = False
    """Admit clients with a token of the cluster that RBAC allows verb and path (docs/operate/security.md)."""

    kubernetes_audiences: tuple[str, ...] = ()
    """Such tokens must be meant for one of these audiences. Empty: for the API server itself."""

    anonymous: bool = False
    """Listen beyond this machine although every client that reaches the port may send requests: no tokens, no client
    certificates.
    """

    metrics_open: bool = False
    """Answer /metrics without a token."""

    allowed_hosts: tuple[str, ...] = ()
    """Host names, without port, under which clients ask: of an ingress, for instance. Empty: any; on a loopback address
    localhost only (docs/operate/security.md)."""

    max_body_bytes: int = Field(default=3 * 2**20, gt=0)
    """Size of a request, counted while reading, whether or not a length is announced. 50,000 node names of 60
    characters are 3 MB. All bodies together get 8 times as much memory, those of one address 4 times."""

    max_concurrent: int = Field(default=256, gt=0)
    """Requests at work at once; more are turned away with 503 rather than queued past their deadline. Probes are always
    answered."""
