"""`scorer`: keep the cluster in memory and answer how good each node is for a pod, over HTTP."""

from __future__ import annotations

from contextlib import ExitStack

from forecast_scheduler.commands.command_options import (
    AtOption,
    CertOption,
    ClientCaOption,
    ClusterOption,
    ConfigOption,
    ContextOption,
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


def scorer(
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
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
    """Serve predicted-peak scores, explanations and forecasts of the cluster, with a page to look at.

    Ends on SIGTERM or Ctrl-C once requests under way are answered.
    """
    shell = open_shell(config, verbose=verbose, service=True)
    options = serving_options(host, port, token_file, tls_cert, tls_key, client_ca)
    from forecast_scheduler.settings.document import with_options

    settings = with_options(shell.settings, {"scorer": options, "policies": policies_option(policies)})
    moment = parse_moment(at)

    from forecast_scheduler.commands.policy.followed_policies import open_policies, scored_by_policy
    from forecast_scheduler.commands.scorer.scorer_setup import Inputs, prepare_scorer
    from forecast_scheduler.commands.serving_access import check_exposed, hosts_of, kubernetes_access
    from scorer.service.app import create_app
    from serving.server import ScorerServer

    inputs = Inputs(cluster, shell.cluster_access(kubeconfig, context, cluster), models, prometheus, history, moment)
    check_exposed(settings.scorer.serving)
    with ExitStack() as stack:
        named = stack.enter_context(open_policies(settings, inputs.access, has_api_server=cluster is None))
        provider, collectors = (None, ()) if named is None else (named.provider, (named.collector,))
        prepared = prepare_scorer(settings, inputs, policies=provider)
        live, background = prepared.scorer, prepared.background
        stack.enter_context(prepared.following(scored_by_policy(live, provider)))
        hosts, hot = hosts_of(settings.scorer.serving), settings.hot_share
        app = create_app(
            live,
            settings.scorer,
            access=kubernetes_access(settings.scorer.serving, inputs.access),
            collectors=collectors,
            hosts=hosts,
            hot=hot,
        )
        server = ScorerServer(app, settings.scorer.serving, on_started=lambda url: shell.say(f"scorer: {url}"))
        with background:
            server.run()
    shell.say("scorer: ended")
