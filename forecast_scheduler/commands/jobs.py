"""`jobs`: what a running scheduler plans for jobs that wait, and what it expects to come."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecast_scheduler.options import ConfigOption, JsonOption, VerboseOption
from forecast_scheduler.shell import check_writable, open_shell, write_json

_SECONDS = 30.0

ServerOption = Annotated[
    str, typer.Option("--server", metavar="URL", help="Of `forecast-scheduler schedule`: http://HOST:PORT.")
]
HoursOption = Annotated[float, typer.Option("--hours", metavar="N", min=0.1, max=168.0, help="So far ahead.")]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="Only jobs of this namespace.")
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=5000, help="Most jobs to show.")]
TokenOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File with the bearer token it asks for.")
]
CaOption = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="PEM file its certificate is checked against.")
]
CertOption = Annotated[
    Path | None, typer.Option("--client-cert", metavar="FILE", help="PEM file with the certificate to show it.")
]
KeyOption = Annotated[Path | None, typer.Option("--client-key", metavar="FILE", help="PEM file with its key.")]


def jobs(
    server: ServerOption = "http://127.0.0.1:8889",
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

    from extender.remote_service import RemoteAddress
    from forecast_scheduler.jobs_plan import asked_plan
    from forecast_scheduler.jobs_tables import job_plan_lines, job_plan_tables

    remote = RemoteAddress(server, token_file, ca, client_cert, client_key, _SECONDS)
    plan = asked_plan(remote, hours=hours, namespace=namespace, limit=limit)
    for table in job_plan_tables(plan):
        shell.out.print(table)
    for line in job_plan_lines(plan):
        shell.say(line)
    write_json(json, plan)
