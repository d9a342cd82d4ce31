"""All commands of the command line, with those below others."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from typer.core import TyperCommand, TyperGroup

from forecast_scheduler.cli import app


def commands(group: object = None, path: str = "") -> Iterator[tuple[str, TyperCommand]]:
    """Names as one types them, and the commands."""
    group = typer.main.get_command(app) if group is None else group
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path}{name} ")
        elif isinstance(command, TyperCommand):
            yield f"{path}{name}", command
