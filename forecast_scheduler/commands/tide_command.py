"""`tide`: what a running scheduler plans between inference and training on the same GPUs, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from forecast_scheduler.commands.command_options import ConfigOption, JsonOption, VerboseOption
from forecast_scheduler.commands.remote_server_options import (
    CaOption,
    CertOption,
    HoursOption,
    KeyOption,
    ServerOption,
    TokenOption,
)
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="Only trainings of this namespace.")
]


def tide(
    server: ServerOption = None,
    hours: HoursOption = 24.0,
    namespace: NamespaceOption = None,
    token_file: TokenOption = None,
    ca: CaOption = None,
    client_cert: CertOption = None,
    client_key: KeyOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Show how many GPUs inference will need, what training has meanwhile, and every move of it with the reason."""
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)

    from forecast_scheduler.commands.remote_server import asked_scheduler
    from forecast_scheduler.reports.scheduler_tables import tide_lines, tide_report_tables
    from profiles.gpu.tide.tide_bodies import TideBody

    query = {"hours": hours, "namespace": namespace}
    files = (token_file, ca, client_cert, client_key)
    enabled = "schedule.gpu.tide.enabled"
    plan = asked_scheduler(
        shell.settings.schedule, server, files, "/v1/tide", query, TideBody, profile="gpu", enabled_by=enabled
    )
    shell.show(tide_report_tables(plan), tide_lines(plan))
    write_figures(json, plan)
