"""`rules`: recording rules that make the nightly reading of Prometheus cheap."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from base.errors import InputError
from forecast_scheduler.commands.command_options import ConfigOption, VerboseOption
from forecast_scheduler.commands.shell import STDOUT, check_writable, open_shell, write_text

Output = Annotated[
    Path, typer.Option("--output", metavar="FILE", help="Where to write the rules; - is standard output.")
]
Kubernetes = Annotated[
    str | None,
    typer.Option(
        "--kubernetes", metavar="NAMESPACE/NAME", help="Write a PrometheusRule of the operator, of this name."
    ),
]


def rules(
    output: Output = STDOUT, kubernetes: Kubernetes = None, config: ConfigOption = None, verbose: VerboseOption = False
) -> None:
    """Write the recording rules that `train` uses where it finds them, made from the queries of the settings."""
    shell = open_shell(config, verbose=verbose)
    check_writable(output)
    namespace, _, name = (kubernetes or "/").partition("/")
    if kubernetes is not None and not (namespace and name):
        raise InputError(f"--kubernetes is {kubernetes!r}: write NAMESPACE/NAME, for instance monitoring/forecast")

    from trainer.prometheus.recording_rules import prometheus_rule, rule_file, rule_file_text

    settings = shell.settings.prometheus
    content = rule_file(settings.templates, settings.step_seconds, settings.log_source, settings.cluster)
    text = rule_file_text(prometheus_rule(content, name=name, namespace=namespace) if kubernetes else content)
    if output == STDOUT:
        sys.stdout.write(text)
    else:
        write_text(output, text)
