"""`autoscale`: say and write what the coming hours will need: load of services, nodes, requests of pods."""

from __future__ import annotations

from typing import Annotated

import typer

from forecast_scheduler.commands.command_options import (
    CertOption,
    ClientCaOption,
    ConfigOption,
    ContextOption,
    HostOption,
    KeyOption,
    KubeconfigOption,
    LeaderOption,
    ModelsOption,
    PortOption,
    PrometheusOption,
    TokenOption,
    VerboseOption,
    serving_options,
)
from forecast_scheduler.commands.shell import open_shell

ReleaseOption = Annotated[
    bool,
    typer.Option("--release", help="Take back all that was written, and end: for when no autoscaler runs any more."),
]


def autoscale(
    release: ReleaseOption = False,
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    leader_elect: LeaderOption = None,
    host: HostOption = None,
    port: PortOption = None,
    token_file: TokenOption = None,
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    client_ca: ClientCaOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Scale ahead of the load: expected load for HPA and KEDA, nodes in time, nodes that stay, requests with a clock.

    It runs until SIGTERM or Ctrl-C, and writes only what `autoscale.buffers`, `autoscale.guard`,
    `autoscale.min_replicas` and `requests.resize` enable. At its end it takes back what it wrote.
    """
    shell = open_shell(config, verbose=verbose, service=not release)
    options = serving_options(host, port, token_file, tls_cert, tls_key, client_ca)
    options |= {"leader_election": None if leader_elect is None else {"enabled": leader_elect}}

    from forecast_scheduler.commands.autoscale_serve import release_all, serve
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from forecast_scheduler.settings.document import with_options

    settings = with_options(shell.settings, {"autoscale": options})
    inputs = Inputs(access=shell.cluster_access(kubeconfig, context), models=models, prometheus=prometheus)
    if release:
        release_all(shell, settings, inputs)
        return
    serve(shell, settings, inputs)
