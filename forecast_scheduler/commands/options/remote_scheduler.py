"""Options of commands that ask a running scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

SERVER_SECONDS: Final = 30.0
"""An answer comes within."""

ServerOption = Annotated[
    str, typer.Option("--server", metavar="URL", help="Of `forecast-scheduler schedule`: http://HOST:PORT.")
]
HoursOption = Annotated[float, typer.Option("--hours", metavar="N", min=0.1, max=168.0, help="So far ahead.")]
TokenOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File with the bearer token it asks for.")
]
CaOption = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="PEM file its certificate is checked against.")
]
CertOption = Annotated[
    Path | None, typer.Option("--client-cert", metavar="FILE", help="PEM file with the certificate to show it.")
]
KeyOption = Annotated[Path | None, typer.Option("--client-key", metavar="FILE", help="PEM file with its key.")]
