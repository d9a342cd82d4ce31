"""`--output`: whether a command that reports prints tables for people or for other programs, or its figures as JSON or
YAML; and how `requests --out` writes manifests.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from base.redaction import redacted

if TYPE_CHECKING:
    from rich.table import Table


class OutputFormat(StrEnum):
    """table: for people; csv, markdown: these tables as text; json, yaml: the figures alone, keyed as --json is."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    MARKDOWN = "markdown"


output_format: ContextVar[OutputFormat] = ContextVar("output_format", default=OutputFormat.TABLE)
"""What the command that runs prints."""

tables_for_csv: ContextVar[list[Table]] = ContextVar("tables_for_csv")
"""Those that the command has shown: CSV is one rectangle of all, so it waits for the last."""

_OPTION = inspect.Parameter(
    "output",
    inspect.Parameter.KEYWORD_ONLY,
    default=OutputFormat.TABLE,
    annotation=Annotated[
        OutputFormat,
        typer.Option(
            "--output", "-o", help="Print tables, also for other programs, or the figures alone; their keys are stable."
        ),
    ],
)


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has --json the option --output as well."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def with_output(*, output: OutputFormat = OutputFormat.TABLE, **given: Any) -> None:
        shown: list[Table] = []
        before = output_format.set(output)
        before_shown = tables_for_csv.set(shown)
        try:
            command(**given)
        finally:
            output_format.reset(before)
            tables_for_csv.reset(before_shown)
            if shown:
                from forecast_scheduler.reports.table_text import csv_text

                sys.stdout.write(redacted(csv_text(shown)))

    parameters = [*signature.parameters.values(), _OPTION]
    with_output.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_output.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_output


class ManifestFormat(Enum):
    """How manifests are written: values of `--format`."""

    PATCHES = "patches"
    VPA = "vpa"
