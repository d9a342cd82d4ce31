"""The options by which `schedule` and `explain` say which profiles place pods, and on whose nodes."""

from __future__ import annotations

from typing import Annotated

import typer

ProfileOption = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME[,NAME]", help="Profiles to run in this process. Default: online."),
]
DomainOption = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME",
        help="Place on nodes whose label forecast-scheduler.io/domain has this value; '': without the label. "
        "Default: forecast-scheduler.",
    ),
]
ShareOption = Annotated[
    list[str] | None,
    typer.Option(
        "--share-nodes",
        metavar="DOMAIN",
        help="Also place on nodes of this domain, shared with another scheduler; may be given several times.",
    ),
]
