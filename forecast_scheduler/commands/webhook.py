"""`webhook`: give new pods the affinity that templates and bindings say."""

from __future__ import annotations

from forecast_scheduler.options import ConfigOption, VerboseOption
from forecast_scheduler.scorer_inputs import KubeconfigOption
from forecast_scheduler.serving_options import (
    CertOption,
    ClientCaOption,
    HostOption,
    KeyOption,
    PortOption,
    TokenOption,
    serving_options,
)
from forecast_scheduler.settings import with_options
from forecast_scheduler.shell import open_shell


def webhook(
    kubeconfig: KubeconfigOption = None,
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
    settings = with_options(shell.settings, {"webhook": options})

    from forecast_scheduler.live_webhook import open_webhook
    from serving.server import ScorerServer

    with open_webhook(settings.webhook, kubeconfig) as live:
        server = ScorerServer(live.app, live.server, on_started=lambda url: shell.say(f"webhook: {url}"))
        server.run()
    shell.say("webhook: ended")
