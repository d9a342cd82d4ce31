"""The options that several commands share, so that they are named and explained alike everywhere."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from base.errors import InputError
from forecast_scheduler.settings.policy_place import split_place

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings (YAML); environment variables and options win over it."),
]

HistoryOption = Annotated[
    Path | None,
    typer.Option("--history", metavar="DIR", help="Directory with usage.parquet, pods.parquet and their neighbours."),
]

EventsOption = Annotated[
    Path | None,
    typer.Option(
        "--events",
        metavar="FILE.yaml",
        help="Calendar of days that differ, with expected factors. Default: events.yaml of the history, if there.",
    ),
]

MovedOption = Annotated[
    Path | None,
    typer.Option(
        "--moved",
        metavar="FILE.yaml",
        help="Services that had another name or cluster. Default: moved.yaml of the history, if there.",
    ),
]

ModelsOption = Annotated[
    str | None,
    typer.Option("--models", metavar="DIR-or-URL", help="Where models are published: a directory or any fsspec URL."),
]

JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON, too; - is standard output.")
]

ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Write a self-contained page with plots.")
]

SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Order in which the pods arrive.")]

VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log what happens, and show the traceback of an unexpected error.")
]

ClusterOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        help="A cluster from a file instead of an API server: kubectl get nodes,pods,replicasets,jobs -A -o json. Also "
        "the folder that kubectl cluster-info dump writes.",
    ),
]

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Kubeconfig of the cluster. Default: the cluster this runs in, else $KUBECONFIG or ~/.kube/config.",
    ),
]

ContextOption = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Context of the kubeconfig. Default: the current one."),
]

PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="Prometheus server to read the usage of nodes from. Default: prometheus.url of the settings, else the one "
        "in the cluster.",
    ),
]

AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="With --cluster: as if it were 2026-02-12T17:00, local time unless it has an offset: by time_zone of the "
        "settings, else of the history, else of the model.",
    ),
]

RecordedOption = Annotated[
    Path | None,
    typer.Option(
        "--history", metavar="DIR", help="With --cluster and --at: usage recorded there, as if it were measured now."
    ),
]

DecisionsOption = Annotated[
    str | None,
    typer.Option("--decisions", metavar="FILE", help="Log of decisions, JSON lines; - is standard output."),
]

PoliciesOption = Annotated[
    str | None,
    typer.Option(
        "--policies",
        metavar="WHERE",
        help="Policies by pod: a file, or configmap:NAMESPACE/NAME. Changes take effect without a restart.",
    ),
]

ProfileOption = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME[,NAME]", help="Profiles to run in this process. Default: online."),
]

DomainOption = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME",
        help="Place on nodes whose label forecast-scheduler.io/domain has this value; '': without the label. "
        "Default: forecast-scheduler.",
    ),
]

ShareOption = Annotated[
    list[str] | None,
    typer.Option(
        "--share-nodes",
        metavar="DOMAIN",
        help="Also place on nodes of this domain, shared with another scheduler; may be given several times.",
    ),
]

LeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--leader-elect/--no-leader-elect",
        help="Elect one of several replicas by a Lease; only it writes. Default: --leader-elect.",
        show_default=False,
    ),
]

ShardsOption = Annotated[
    bool | None,
    typer.Option(
        "--shards/--no-shards",
        help="All replicas place pods, each on nodes of its own. Default: --no-shards, one places on all.",
        show_default=False,
    ),
]

HostOption = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1.")
]

PortOption = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65_535,
        help="Port to listen on; 0: any free one. Default: 8080, extender 8888, schedule 8889, advise 8890, "
        "rebalance 8891, autoscale 8892, webhook 8443.",
    ),
]

TokenOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--token-file", metavar="FILE", help="File with bearer tokens that clients may use; may be given several times."
    ),
]

CertOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="PEM file with the certificate for HTTPS.")
]

KeyOption = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="PEM file with the certificate's key.")
]

ClientCaOption = Annotated[
    Path | None,
    typer.Option(
        "--client-ca", metavar="FILE", help="PEM file with the authority that clients' certificates must be signed by."
    ),
]

TemplatesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--templates",
        metavar="FILE-or-DIR",
        help="Templates and bindings (YAML), instead of those in the cluster; may be given several times.",
    ),
]


def parse_moment(text: str | None) -> datetime | None:
    """A moment in ISO 8601; without an offset it stays naive and means local time."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"--at {text!r} is not a time: write for instance 2026-11-14T04:00") from error


def policies_option(where: str | None) -> dict[str, Any]:
    """The option as settings of the group `policies`, in place of what the file says; nothing where it is not given.

    Raises InputError where it names nothing.
    """
    if where is None:
        return {}
    file, config_map = split_place(where)
    return {"file": "" if file is None else file, "config_map": config_map or ""}


def serving_options(
    host: str | None,
    port: int | None,
    token_files: list[Path] | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    client_ca: Path | None,
) -> dict[str, Any]:
    """The options as settings of a command; None = not given."""
    serving = {
        "host": host,
        "port": port,
        "token_files": token_files or None,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "client_ca": client_ca,
    }
    return {"serving": serving}
