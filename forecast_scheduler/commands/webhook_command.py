"""`webhook`: give new pods the affinity that templates and bindings say."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from forecast_scheduler.commands.command_options import (
    CertOption,
    ClientCaOption,
    ConfigOption,
    ContextOption,
    HostOption,
    KeyOption,
    KubeconfigOption,
    PortOption,
    TokenOption,
    VerboseOption,
    serving_options,
)
from forecast_scheduler.commands.shell import open_shell

if TYPE_CHECKING:
    from forecast_scheduler.commands.policy.followed_policies import LivePolicies
    from forecast_scheduler.settings.document import Settings
    from kube.client.cluster_access import ClusterAccess


def webhook(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    host: HostOption = None,
    port: PortOption = None,
    token_file: TokenOption = None,
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    client_ca: ClientCaOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Shape new pods by templates and bindings: the mutating admission webhook, over HTTPS.

    deploy/overlays/webhook has what is to be installed with it. Ends on SIGTERM or Ctrl-C.
    """
    shell = open_shell(config, verbose=verbose, service=True)
    options = serving_options(host, port, token_file, tls_cert, tls_key, client_ca)
    from forecast_scheduler.settings.document import with_options

    settings = with_options(shell.settings, {"webhook": options})
    access = shell.cluster_access(kubeconfig, context)

    from forecast_scheduler.commands.webhook_setup import open_webhook
    from serving.server import ScorerServer

    with (
        _policies(settings, access) as policies,
        open_webhook(settings.webhook, settings.advise, settings.excluded, access, policies) as live,
    ):
        server = ScorerServer(live.app, live.server, on_started=lambda url: shell.say(f"webhook: {url}"))
        server.run()
    shell.say("webhook: ended")


def _policies(settings: Settings, access: ClusterAccess) -> AbstractContextManager[LivePolicies | None]:
    """Return the policies that the settings name. Of mistakes in them the parts that place pods write events."""
    if settings.policies.place is None:
        return nullcontext()
    from forecast_scheduler.commands.policy.followed_policies import open_policies

    quiet = settings.model_copy(update={"policies": settings.policies.model_copy(update={"events": False})})
    return open_policies(quiet, access, has_api_server=False)
