"""Settings of the Prometheus server: `prometheus`. Where it is, how we show who we are, and what to read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from base.setting_group import Duration, Off, SettingGroup
from trainer.prometheus.log_source import LogSource
from trainer.prometheus.queries import Queries

_LABELS_OF_OURS = frozenset(("__name__", "namespace", "pod", "node", "container", "uid", "resource", "instance", "job"))
_QUERIES = tuple(field.name for field in fields(Queries))


class Cloud(Enum):
    """Whose identity of the pod is shown to a managed Prometheus."""

    OFF = "off"
    AWS = "aws"
    GOOGLE = "google"
    AZURE = "azure"


class ConnectionOptions(SettingGroup):
    """How we show who we are, which cluster we ask about, and how long we wait."""

    cloud: Annotated[Cloud, Off] = Cloud.OFF
    """Whose managed Prometheus it is: its requests carry the identity that this cloud gives the pod, in place of
    `bearer_token_file` and `username` (docs/operate/managed-clusters.md)."""

    aws_region: str = ""
    """Region of the workspace, with `cloud: aws`. Empty: what AWS_DEFAULT_REGION says."""

    bearer_token_file: Path | None = None
    """File with a token, read again for every request, since tokens of service accounts rotate."""

    username: str = ""
    """For basic authentication, with `password_file`."""

    password_file: Path | None = None
    """File with the password."""

    headers: Mapping[str, str] = Field(default_factory=dict)
    """Sent with every request, for instance {X-Scope-OrgID: team} for Mimir."""

    cluster: Mapping[str, str] = Field(default_factory=dict)
    """Labels that choose one cluster where the server holds several, such as {cluster: eu-1}: every query, recording
    rule, alert and dashboard has them (docs/operate/prometheus.md)."""

    ca_file: Path | None = None
    """Authorities that sign the server's certificate. None: those of the system."""

    cert_file: Path | None = None
    """Our own certificate, if the server asks for one."""

    key_file: Path | None = None
    """PEM file with the key of cert_file. None: the key is in cert_file."""

    insecure: bool = False
    """Do not check the server's certificate."""

    timeout: Duration = Field(default=120, gt=0)
    """How long the connection, each pause of the server, and the whole of an answer may take."""

    patience: Duration = Field(default=180, ge=0)
    """How long a failing request is repeated."""

    first_patience: Duration = Field(default=15, ge=0)
    """How long the first request of a run is repeated at most, so that a wrong URL is reported at once."""

    compress: bool = False
    """Let the server compress its answers. Inside a cluster that costs more than it saves: 172,800 samples took the
    server 0.34 s compressed and 0.05 s plain (6 MB)."""

    @field_validator("cluster")
    @classmethod
    def _labels_of_clusters(cls, cluster: Mapping[str, str]) -> Mapping[str, str]:
        for label in cluster:
            if label in _LABELS_OF_OURS or not label:
                raise ValueError(
                    f"{label!r} tells series of one cluster apart: name a label that is the same on all of its series, "
                    "such as an external label"
                )
        return cluster


class SourceOptions(SettingGroup):
    """What to read and how."""

    step: Duration = Field(default=300, ge=15, le=3600)
    """Distance of two samples. Must divide an hour. Recording rules are evaluated as often."""

    queries: Mapping[str, str] = Field(default_factory=dict)
    """PromQL in place of the defaults, by name (docs/operate/prometheus.md)."""

    log_source: LogSource = LogSource.AUTO
    """What counts log bytes. auto: the first of these that the server knows."""

    log_rotation_cap_bytes: float = Field(default=50 * 2.0**20, gt=0)
    """The kubelet's containerLogMaxSize x containerLogMaxFiles, 5 files of 10 MiB. Only for log_source kubelet."""

    max_samples: int = Field(default=2_000_000, ge=1)
    """Most points asked for in one query; the server's own limit is query.max-samples."""

    parallel: int = Field(default=4, ge=1, le=64)
    """Queries under way at once."""

    recording_rules: bool = True
    """Use what `forecast-scheduler rules` had recorded, where it was."""

    disk_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s a node can read and write; Prometheus does not know it. None: assumed, if the history is long enough
    (docs/understand/model.md)."""

    network_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s a node can receive and send. None: the speed of its physical interfaces, else assumed."""

    log_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s a node's log collector can take. None: assumed, if the history is long enough
    (docs/understand/model.md)."""

    @field_validator("step")
    @classmethod
    def _divides_an_hour(cls, step: float) -> float:
        if 3600 % step:
            raise ValueError("it must divide an hour, for instance 5m")
        return step

    @field_validator("queries")
    @classmethod
    def _known(cls, queries: Mapping[str, str]) -> Mapping[str, str]:
        for name in queries:
            if name not in _QUERIES:
                near = difflib.get_close_matches(name, _QUERIES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known queries are {', '.join(_QUERIES)}"
                raise ValueError(f"{name!r} is no query: {hint}")
        return queries

    @property
    def step_seconds(self) -> int:
        return int(self.step)

    @property
    def templates(self) -> Queries:
        """The default queries with those of the settings in their places."""
        return replace(Queries(), **self.queries)


class PrometheusOptions(ConnectionOptions, SourceOptions):
    """Any server with the Prometheus API: Prometheus, Thanos, Mimir, VictoriaMetrics."""

    url: str | None = None
    """Server that `train` reads if neither `--prometheus` nor `--history` is given: what comes before /api/v1. None:
    `train` works on the history as it is."""

    days: int = Field(default=28, ge=1, le=400)
    """Days that the first run reads back. Later runs read what is new; `--days`."""
