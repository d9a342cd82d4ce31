"""`advise`: name the node of pods that ask for it, before an untouched kube-scheduler places them."""

from __future__ import annotations

from typing import Annotated

import typer

from forecast_scheduler.commands.command_options import (
    CertOption,
    ClientCaOption,
    ConfigOption,
    ContextOption,
    DecisionsOption,
    HostOption,
    KeyOption,
    KubeconfigOption,
    LeaderOption,
    ModelsOption,
    PoliciesOption,
    PortOption,
    PrometheusOption,
    TokenOption,
    VerboseOption,
    policies_option,
    serving_options,
)
from forecast_scheduler.commands.shell import open_shell

NameOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler-name",
        metavar="NAME",
        help="Advise the kube-scheduler of pods with this schedulerName. Default: default-scheduler.",
    ),
]
ShadowOption = Annotated[
    bool | None,
    typer.Option("--shadow", help="Decide and compare; write nothing.", show_default=False),
]
ReleaseOption = Annotated[
    bool,
    typer.Option("--release", help="Remove our gate from all pods that it holds, and end: for when no advisor runs."),
]


def advise(
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    scheduler_name: NameOption = None,
    shadow: ShadowOption = None,
    release: ReleaseOption = False,
    leader_elect: LeaderOption = None,
    decisions: DecisionsOption = None,
    policies: PoliciesOption = None,
    host: HostOption = None,
    port: PortOption = None,
    token_file: TokenOption = None,
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    client_ca: ClientCaOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Name the node of new pods to an untouched kube-scheduler, by the forecast.

    The webhook holds pods that ask for it by a scheduling gate; this process nominates their node and removes the gate.
    It runs until SIGTERM or Ctrl-C. deploy/overlays/advisor has what is to be installed for it.
    """
    shell = open_shell(config, verbose=verbose, service=not release)
    options = serving_options(host, port, token_file, tls_cert, tls_key, client_ca)

    from forecast_scheduler.settings.document import with_options

    options |= {
        "scheduler_name": scheduler_name,
        "shadow": shadow,
        "decisions": None if decisions is None else {"log": decisions},
        "leader_election": None if leader_elect is None else {"enabled": leader_elect},
    }
    settings = with_options(shell.settings, {"advise": options, "policies": policies_option(policies)})
    access = shell.cluster_access(kubeconfig, context)
    if release:
        from advisor.remove_all_gates import release_all

        shell.say(str(release_all(access.client())))
        return

    from forecast_scheduler.commands.advise.driver import Advising
    from forecast_scheduler.commands.schedule.schedule_serve import serve
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from placement.plugin_options import EXTENDER

    ours = settings.advise
    # The loop of the advisor has one profile, whose pods kube-scheduler places.
    plugins = {
        name: one.replace(profiles=["online"] if EXTENDER in one.profiles else [])
        for name, one in settings.plugins.items()
    }
    loop = settings.model_copy(update={"schedule": ours.loop_settings(), "plugins": plugins})
    inputs = Inputs(access=access, models=models, prometheus=prometheus)
    serve(shell, loop, inputs, name="advise", driver=Advising(ours, settings.excluded), serving=ours.serving)
