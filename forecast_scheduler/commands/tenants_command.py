"""`tenants`: what each tenant of a running scheduler, or of a cluster file, has, lends, owes and will need."""

from __future__ import annotations

from typing import Annotated

import typer

from forecast_scheduler.commands.command_options import (
    AtOption,
    ClusterOption,
    ConfigOption,
    JsonOption,
    ModelsOption,
    VerboseOption,
    parse_moment,
)
from forecast_scheduler.commands.remote_server_options import (
    CaOption,
    CertOption,
    KeyOption,
    ServerOption,
    TokenOption,
)
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

HoursOption = Annotated[
    int,
    typer.Option("--hours", metavar="N", min=0, max=24, help="Hours of expected needs to show, from now; 0 = none."),
]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="Only tenants of this name or namespace.")
]


def tenants(
    server: ServerOption = None,
    cluster: ClusterOption = None,
    models: ModelsOption = None,
    at: AtOption = None,
    hours: HoursOption = 0,
    namespace: NamespaceOption = None,
    token_file: TokenOption = None,
    ca: CaOption = None,
    client_cert: CertOption = None,
    client_key: KeyOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Show what each tenant uses of its quota, borrows, lends, is owed, and is expected to need by hour.

    A running `schedule` or `advise` is asked, or the quotas and pods of a cluster file are put together.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)

    from base.errors import InputError
    from forecast_scheduler.reports.scheduler_tables import tenant_lines, tenant_tables

    if cluster is not None and server is not None:
        raise InputError("--server and --cluster exclude each other: name a running service, or a file")
    if cluster is not None:
        from forecast_scheduler.commands.schedule.dry_run_of_file import tenants_of_file
        from forecast_scheduler.commands.scorer.scorer_setup import Inputs

        inputs = Inputs(cluster=cluster, models=models, at=parse_moment(at))
        found = tenants_of_file(shell.settings, inputs, hours=hours, namespace=namespace)
    else:
        from forecast_scheduler.commands.remote_server import asked_scheduler
        from tenants.tenant_routes import Tenants

        query = {"hours": hours, "namespace": namespace}
        files = (token_file, ca, client_cert, client_key)
        found = asked_scheduler(shell.settings.schedule, server, files, "/v1/tenants", query, Tenants)
    shell.show(tenant_tables(found, hours), tenant_lines(found))
    write_figures(json, found)
