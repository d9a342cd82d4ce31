"""The options by which the services say where they listen and who may ask."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

HostOption = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1.")
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65_535,
        help="Port to listen on; 0: any free one. Default: 8080, extender 8888, schedule 8889, advise 8890, "
        "rebalance 8891, autoscale 8892, webhook 8443.",
    ),
]
TokenOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--token-file", metavar="FILE", help="File with bearer tokens that clients may use; may be given several times."
    ),
]
CertOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="PEM file with the certificate for HTTPS.")
]
KeyOption = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="PEM file with the certificate's key.")
]
ClientCaOption = Annotated[
    Path | None,
    typer.Option(
        "--client-ca", metavar="FILE", help="PEM file with the authority that clients' certificates must be signed by."
    ),
]


def serving_options(
    host: str | None,
    port: int | None,
    token_files: list[Path] | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    client_ca: Path | None,
) -> dict[str, Any]:
    """The options as settings; None = not given."""
    return {
        "host": host,
        "port": port,
        "token_files": token_files or None,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "client_ca": client_ca,
    }
