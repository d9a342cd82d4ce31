"""The options by which `scorer` and `explain` say what they work on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus", metavar="URL", help="Prometheus server to read the usage of nodes from. Default: none."
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
