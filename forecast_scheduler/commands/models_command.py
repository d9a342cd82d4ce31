"""`models`: which models are published, and the way back to an older one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from base.errors import ForecastError, InputError
from base.redaction import redacted
from forecast_scheduler.commands.command_options import ConfigOption, JsonOption, ModelsOption, VerboseOption
from forecast_scheduler.commands.output_format import reporting
from forecast_scheduler.commands.shell import Shell, check_writable, open_shell, write_figures

if TYPE_CHECKING:
    from forecast_scheduler.commands.model_registry import Users

UsersOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="Prometheus that scrapes us: also say who uses which model. Default: prometheus.url of the settings.",
    ),
]

models = typer.Typer(help="List published models and go back to an older one.")

Version = Annotated[
    str | None, typer.Argument(metavar="[VERSION]", help="Version to go back to. Default: the one in use before.")
]


@models.command("list")
@reporting
def list_models(
    models: ModelsOption = None,
    prometheus: UsersOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """List published models, oldest first, with age, losses beside last week's, the gate's verdict, and who uses them.

    * is the one that services take up.
    """
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
    users = _users(shell, prometheus)
    if users is not None:
        for one in found:
            one["used_by"] = dict(users.get(one["version"], {}))
    if versions:
        shell.show(models_table(found))
    else:
        shell.say(f"no models at {registry.url}: publish one with forecast-scheduler train")
    write_figures(json, {"versions": versions, "in_use": in_use, "models": found})


def _users(shell: Shell, url: str | None) -> Users | None:
    """None = Prometheus is not known, or does not answer, which is a note: the models are there all the same."""
    url = url or shell.settings.prometheus.url
    if url is None:
        return None

    from forecast_scheduler.commands.model_registry import model_users

    try:
        return model_users(url, shell.settings.prometheus)
    except ForecastError as error:
        why = redacted(str(error))
        shell.err.print(f"note: who uses the models is not known: {why}", highlight=False, markup=False)
        return None


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
