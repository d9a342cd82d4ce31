"""Options of commands that ask a running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

SERVER_SECONDS: Final = 30.0
"""An answer comes within."""

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="URL of a running `forecast-scheduler schedule`. Default: this machine, at the port of schedule.serving.",
    ),
]
HoursOption = Annotated[
    float, typer.Option("--hours", metavar="N", min=0.1, max=168.0, help="Hours of the plan to show, from now.")
]
TokenOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File with the bearer token for the server.")
]
CaOption = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="PEM file with the authority of the server's certificate.")
]
CertOption = Annotated[
    Path | None, typer.Option("--client-cert", metavar="FILE", help="PEM file with the client certificate.")
]
KeyOption = Annotated[
    Path | None, typer.Option("--client-key", metavar="FILE", help="PEM file with the key of the client certificate.")
]
