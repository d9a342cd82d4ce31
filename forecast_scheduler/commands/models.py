"""`models`: which models are published, and the way back to an older one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from forecast.errors import InputError
from forecast_scheduler.commands.options.common import ConfigOption, JsonOption, ModelsOption, VerboseOption
from forecast_scheduler.commands.output_format import reporting
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

models = typer.Typer(help="List published models and go back to an older one.", no_args_is_help=True)

Version = Annotated[
    str | None, typer.Argument(metavar="[VERSION]", help="Version to go back to. Default: the one in use before.")
]


@models.command("list")
@reporting
def list_models(
    models: ModelsOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """List published models, oldest first, with age, losses beside last week's and the gate's verdict; * is in use."""
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)

    from forecast_scheduler.commands.model_registry import open_registry, published_versions
    from forecast_scheduler.reports.model_tables import model_facts, models_table

    registry = open_registry(shell.settings.models, models)
    versions, in_use = published_versions(registry)
    found: list[dict[str, Any]] = []
    for version in versions:
        try:
            found.append(model_facts(version, registry.manifest(version), in_use, registry.now()))
        except InputError as error:  # of another release, altered or unsigned: it is there, and cannot be used
            found.append({"version": version, "in_use": version == in_use, "problem": str(error)})
    if versions:
        shell.out.print(models_table(found))
    else:
        shell.out.print(f"no models at {registry.url}: publish one with forecast-scheduler train", highlight=False)
    write_figures(json, {"versions": versions, "in_use": in_use, "models": found})


@models.command()
def rollback(
    version: Version = None,
    models: ModelsOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Put an older model to use again, after checking that it is sound. Nothing is deleted."""
    shell = open_shell(config, verbose=verbose)

    from forecast.model_artefact import model_of
    from forecast_scheduler.commands.model_registry import open_registry

    registry = open_registry(shell.settings.models, models)
    in_use = registry.rollback(version, before_use=lambda artefact: model_of(artefact, registry.now()))
    shell.out.print(f"model in use: {in_use}", highlight=False, markup=False)
