"""The option by which what places pods writes down why."""

from __future__ import annotations

from typing import Annotated

import typer

DecisionsOption = Annotated[
    str | None,
    typer.Option("--decisions", metavar="FILE", help="Log of decisions, JSON lines; - is standard output."),
]
