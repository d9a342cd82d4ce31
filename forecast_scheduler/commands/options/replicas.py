"""The option by which one of several replicas is the one that acts."""

from __future__ import annotations

from typing import Annotated

import typer

LeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--leader-elect/--no-leader-elect",
        help="Elect one of several replicas by a Lease; only it writes. Default: --leader-elect.",
        show_default=False,
    ),
]
