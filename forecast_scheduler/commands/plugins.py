"""`plugins`: plugins of other packages, what they do here, and their settings."""

from __future__ import annotations

from typing import Annotated

import typer

from forecast_scheduler.commands.command_options import ConfigOption, JsonOption, VerboseOption
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

Name = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Plugin to load and describe. Default: those that the settings name."),
]


def plugins(
    name: Name = None, json: JsonOption = None, config: ConfigOption = None, verbose: VerboseOption = False
) -> None:
    """List installed plugins of other packages; describe those that the settings name, with their own settings."""
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)

    from forecast_scheduler.reports.plugin_tables import described, plugin_lines
    from placement.plugin_loading import installed_plugins

    wanted = [*shell.settings.plugins] if name is None else [name]
    figures = [described(one, shell.settings.plugins.get(one)) for one in wanted]
    others = [one for one in installed_plugins() if one.name not in wanted]
    shell.show(plugin_lines(figures, others))
    write_figures(json, {"plugins": figures, "installed": [one.name for one in installed_plugins()]})
