"""The options that several commands share, so that they are named and explained alike everywhere."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from base.errors import InputError

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings (YAML); environment variables and options win over it."),
]
HistoryOption = Annotated[
    Path | None,
    typer.Option("--history", metavar="DIR", help="Directory with usage.parquet, pods.parquet and their neighbours."),
]
EventsOption = Annotated[
    Path | None,
    typer.Option(
        "--events",
        metavar="FILE.yaml",
        help="Calendar of days that differ, with expected factors. Default: events.yaml of the history, if there.",
    ),
]
MovedOption = Annotated[
    Path | None,
    typer.Option(
        "--moved",
        metavar="FILE.yaml",
        help="Services that had another name or cluster. Default: moved.yaml of the history, if there.",
    ),
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


def parse_moment(text: str | None) -> datetime | None:
    """A moment in ISO 8601; without an offset it stays naive and means local time."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"--at {text!r} is not a time: write for instance 2026-11-14T04:00") from error
