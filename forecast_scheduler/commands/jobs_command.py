"""`jobs`: what a running scheduler plans for jobs that wait, and what it expects to come."""

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
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="Only jobs of this namespace.")
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=5000, help="Most jobs to show.")]


def jobs(
    server: ServerOption = None,
    hours: HoursOption = 24.0,
    namespace: NamespaceOption = None,
    limit: LimitOption = 50,
    token_file: TokenOption = None,
    ca: CaOption = None,
    client_cert: CertOption = None,
    client_key: KeyOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Show when jobs that may wait are planned to start and why, with expected bursts, providers and queues."""
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)

    from forecast_scheduler.commands.remote_server import asked_scheduler
    from forecast_scheduler.reports.scheduler_tables import job_plan_lines, job_plan_tables
    from profiles.job.jobs_plan_answers import JobPlan

    query = {"hours": hours, "limit": limit, "namespace": namespace}
    files = (token_file, ca, client_cert, client_key)
    plan = asked_scheduler(shell.settings.schedule, server, files, "/v1/jobs/plan", query, JobPlan, profile="job")
    shell.show(job_plan_tables(plan), job_plan_lines(plan))
    write_figures(json, plan)
