"""The options that say which of several replicas acts: one, or each on its own nodes."""

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

ShardsOption = Annotated[
    bool | None,
    typer.Option(
        "--shards/--no-shards",
        help="All replicas place pods, each on nodes of its own. Default: --no-shards, one places on all.",
        show_default=False,
    ),
]
