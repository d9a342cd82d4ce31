"""`scorer`: keep the cluster in memory and answer how good each node is for a pod, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecast_scheduler.options import ConfigOption, ModelsOption, VerboseOption, parse_moment
from forecast_scheduler.scorer_inputs import (
    AtOption,
    ClusterOption,
    KubeconfigOption,
    PrometheusOption,
    RecordedOption,
)
from forecast_scheduler.settings import with_options
from forecast_scheduler.shell import open_shell

HostOption = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
]
PortOption = Annotated[
    int | None, typer.Option("--port", metavar="N", min=0, max=65_535, help="0: any free one.  [default: 8080]")
]
TokenOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--token-file", metavar="FILE", help="Ask for one of these bearer tokens; may be given several times."
    ),
]
CertOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Speak HTTPS with this certificate.")
]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key.")]
ClientCaOption = Annotated[
    Path | None, typer.Option("--client-ca", metavar="FILE", help="Ask clients for a certificate signed by it.")
]


def scorer(
    models: ModelsOption = None,
    prometheus: PrometheusOption = None,
    kubeconfig: KubeconfigOption = None,
    cluster: ClusterOption = None,
    at: AtOption = None,
    history: RecordedOption = None,
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
    options = {
        "host": host,
        "port": port,
        "token_files": token_file or None,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "client_ca": client_ca,
    }
    settings = with_options(shell.settings, {"scorer": options})
    moment = parse_moment(at)

    from forecast_scheduler.live_scorer import Inputs, open_scorer
    from forecast_scheduler.scorer_options import server_options, service_options
    from scorer.service.app import create_app
    from scorer.service.server import ScorerServer

    inputs = Inputs(cluster, kubeconfig, models, prometheus, history, moment)
    with open_scorer(settings, inputs) as (live, background):
        app = create_app(live, service_options(settings.scorer))
        server = ScorerServer(app, server_options(settings.scorer), on_started=lambda url: shell.say(f"scorer: {url}"))
        with background:
            server.run()
    shell.say("scorer: ended")
