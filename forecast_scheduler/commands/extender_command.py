"""`extender`: answer kube-scheduler, so that pods land where the predicted peak stays lowest."""

from __future__ import annotations

from typing import Annotated

import typer

from forecast_scheduler.commands.command_options import (
    AtOption,
    CertOption,
    ClientCaOption,
    ClusterOption,
    ConfigOption,
    ContextOption,
    DecisionsOption,
    HostOption,
    KeyOption,
    KubeconfigOption,
    ModelsOption,
    PoliciesOption,
    PortOption,
    PrometheusOption,
    RecordedOption,
    TokenOption,
    VerboseOption,
    parse_moment,
    policies_option,
    serving_options,
)
from forecast_scheduler.commands.shell import open_shell

ScorerOption = Annotated[
    str | None,
    typer.Option("--scorer", metavar="URL", help="URL of a scorer to use instead of the one inside."),
]
ShadowOption = Annotated[
    bool | None,
    typer.Option("--shadow", help="Shadow mode: log the advice, and change nothing.", show_default=False),
]
BindOption = Annotated[
    bool | None,
    typer.Option("--bind", help="Answer /bind, for a configuration that sets bindVerb.", show_default=False),
]


def extender(
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    scorer: ScorerOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
    shadow: ShadowOption = None,
    decisions: DecisionsOption = None,
    bind: BindOption = None,
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
    """Serve kube-scheduler's extender protocol: filter, prioritize and, where asked for, bind and preempt.

    deploy/kube-scheduler/ has a KubeSchedulerConfiguration to go with it. Ends on SIGTERM or Ctrl-C.
    """
    shell = open_shell(config, verbose=verbose, service=True)
    options = serving_options(host, port, token_file, tls_cert, tls_key, client_ca)
    options |= {
        "shadow": shadow or None,
        "bind": bind or None,
        "scorer": None if scorer is None else {"url": scorer},
        "decisions": None if decisions is None else {"log": decisions},
    }
    from forecast_scheduler.settings.document import with_options

    settings = with_options(shell.settings, {"extender": options, "policies": policies_option(policies)})
    moment = parse_moment(at)

    from extender.service.extender_app import create_app
    from forecast_scheduler.commands.extender_setup import open_extender
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs
    from forecast_scheduler.commands.serving_access import check_exposed, hosts_of, kubernetes_access
    from serving.server import ScorerServer

    inputs = Inputs(cluster, shell.cluster_access(kubeconfig, context, cluster), models, prometheus, history, moment)
    check_exposed(settings.extender.serving)
    with open_extender(settings, inputs) as live:
        app = create_app(
            live.extender,
            settings.extender,
            scorer=live.scorer,
            binder=live.binder,
            access=kubernetes_access(settings.extender.serving, inputs.access),
            collectors=live.collectors,
            hosts=hosts_of(settings.extender.serving),
            node_metrics=settings.scorer.node_metrics,
            service_metrics=settings.scorer.service_metrics,
        )
        server = ScorerServer(app, settings.extender.serving, on_started=lambda url: shell.say(f"extender: {url}"))
        with live.background:
            server.run()
    shell.say("extender: ended")
