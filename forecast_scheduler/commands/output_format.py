"""`--output`: whether a command that reports prints tables, or its figures as JSON or YAML for other programs; and how
`requests --out` writes manifests.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum, StrEnum
from typing import Annotated, Any

import typer


class OutputFormat(StrEnum):
    """table: for people; json, yaml: the figures alone, whose keys are those of --json."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


output_format: ContextVar[OutputFormat] = ContextVar("output_format", default=OutputFormat.TABLE)
"""What the command that runs prints."""

_OPTION = inspect.Parameter(
    "output",
    inspect.Parameter.KEYWORD_ONLY,
    default=OutputFormat.TABLE,
    annotation=Annotated[
        OutputFormat,
        typer.Option("--output", "-o", help="Print tables, or the figures alone; their keys are stable."),
    ],
)


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has --json the option --output as well."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def with_output(*, output: OutputFormat = OutputFormat.TABLE, **given: Any) -> None:
        before = output_format.set(output)
        try:
            command(**given)
        finally:
            output_format.reset(before)

    parameters = [*signature.parameters.values(), _OPTION]
    with_output.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_output.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_output


class ManifestFormat(Enum):
    """How manifests are written: values of `--format`."""

    PATCHES = "patches"
    VPA = "vpa"
