"""The options by which the services say where they listen and who may ask."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

HostOption = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Where to listen. Default: 127.0.0.1.")
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65_535,
        help="0: any free one. Default: 8080, of the extender 8888, of schedule 8889, of the webhook 8443.",
    ),
]
TokenOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--token-file", metavar="FILE", help="Ask for one of these bearer tokens; may be given several times."
    ),
]
CertOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Speak HTTPS with this certificate.")
]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key.")]
ClientCaOption = Annotated[
    Path | None, typer.Option("--client-ca", metavar="FILE", help="Ask clients for a certificate signed by it.")
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
