"""The options that several commands share, so that they are named and explained alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ConfigOption", "HistoryOption", "JsonOption", "ModelsOption", "ReportOption", "SeedOption", "VerboseOption"]

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings (YAML); environment variables and options win over it."),
]
HistoryOption = Annotated[
    Path | None,
    typer.Option("--history", metavar="DIR", help="Directory with usage.parquet, pods.parquet and their neighbours."),
]
ModelsOption = Annotated[
    str | None,
    typer.Option("--models", metavar="DIR-or-URL", help="Where models are published: a directory or any fsspec URL."),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON, too; - is standard output.")
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Write a self-contained page with plots.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Order in which the pods arrive.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log what happens, and show the traceback of an unexpected error.")
]
