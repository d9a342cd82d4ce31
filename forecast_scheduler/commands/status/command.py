"""`status`: whether the installation in the cluster is healthy, and what to do first."""

from __future__ import annotations

import time
from functools import partial

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import (
    ConfigOption,
    ContextOption,
    JsonOption,
    KubeconfigOption,
    VerboseOption,
)
from forecast_scheduler.commands.shell import check_writable, open_shell, write_figures

DEGRADED, NOT_KNOWN = 1, 3
"""Exit statuses. A script must not take an installation for healthy of which a part could not be read."""


def status(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    json: JsonOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Say whether the installation is healthy: parts, leaders, model, nightly run, Prometheus, advice, held pods,
    alerts, and what to do first.

    It needs a kubeconfig alone, and takes 20 s at most. Exit status: 0 healthy, 1 degraded, 2 not reachable or not
    installed, 3 nothing is known to be degraded and not everything could be read.
    """
    shell = open_shell(config, verbose=verbose, json_file=json)
    check_writable(json)

    from forecast_scheduler.commands.metrics_store import found_address
    from forecast_scheduler.commands.status.reading import read_facts
    from forecast_scheduler.commands.status.verdict import verdict_of

    access = shell.cluster_access(kubeconfig, context)
    api = access.client(connections=16)
    find = partial(found_address, shell.settings, access)
    found = verdict_of(read_facts(api, shell.settings, time.time(), find))
    if not found.is_installed:
        raise InputError(
            f"no part of forecast-scheduler is in the namespace {found.facts.namespace} of {api.configuration.host}, "
            "and none answers on this machine: install an overlay (docs/operate/deployment.md)"
        )
    shell.show(found.table(), found.lines())
    write_figures(json, found.figures())
    if not found.is_healthy:
        raise typer.Exit(DEGRADED if found.faults else NOT_KNOWN)
