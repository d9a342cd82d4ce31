"""Settings of the Prometheus server: `prometheus`. Where it is, how we show who we are, and what to read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, ClassVar

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
    """Cloud of a managed Prometheus: requests carry the pod's identity there (docs/operate/deployment.md)."""

    aws_region: str = ""
    """Region of the workspace with `cloud: aws`. Empty: AWS_DEFAULT_REGION."""

    bearer_token_file: Path | None = None
    """File with a bearer token; it is read for every request."""

    username: str = ""
    """User name for basic authentication; it needs `password_file`."""

    password_file: Path | None = None
    """File with the password."""

    headers: Mapping[str, str] = Field(default_factory=dict)
    """Headers of every request, for instance {X-Scope-OrgID: team} for Mimir."""

    cluster: Mapping[str, str] = Field(default_factory=dict)
    """Labels that choose one of several clusters on the server, such as {cluster: eu-1}; all queries get them."""

    ca_file: Path | None = None
    """File of the authorities that sign the server's certificate. None: those of the system."""

    cert_file: Path | None = None
    """Our client certificate, if the server asks for one."""

    key_file: Path | None = None
    """Key of `cert_file`. None: the key is in that file, too."""

    insecure: bool = False
    """Accept any certificate of the server."""

    timeout: Duration = Field(default=120, gt=0)
    """Longest time of connecting, of a pause of the server, and of a whole answer."""

    patience: Duration = Field(default=180, ge=0)
    """Time for which a failing request is repeated."""

    first_patience: ClassVar[float] = 15.0
    """Seconds for which the first request of a run waits and is repeated at most: a wrong URL is reported soon."""

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
    """Time between two samples of the history, and two evaluations of the recording rules; it divides an hour."""

    queries: Mapping[str, str] = Field(default_factory=dict)
    """PromQL in place of the default queries, by name (docs/operate/prometheus.md)."""

    log_source: LogSource = LogSource.AUTO
    """Collector whose metric counts log bytes. auto: the first that the server knows."""

    log_rotation_cap_bytes: float = Field(default=50 * 2.0**20, gt=0)
    """Bytes: the kubelet's containerLogMaxSize x containerLogMaxFiles. Only for `log_source: kubelet`."""

    max_samples: int = Field(default=2_000_000, ge=1)
    """Points asked for in one query at most; below the server's own limit, such as query.max-samples."""

    parallel: int = Field(default=4, ge=1, le=64)
    """Queries sent at once."""

    recording_rules: bool = True
    """Read what the rules of `forecast-scheduler rules` recorded. false: raw series only, if records are wrong."""

    disk_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s that a node can read and write. None: assumed from a long history (docs/understand/model.md)."""

    network_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s that a node can receive and send. None: the speed of its physical interfaces, else assumed."""

    log_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s that a node's log collector can take. None: assumed from a long history (docs/understand/model.md)."""

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
    """URL of the server, without /api/v1; `--prometheus`. None: the one in the cluster; `train` takes a history that
    the settings name as it is."""

    days: int = Field(default=28, ge=1, le=400)
    """Days that the first run reads; later runs read what is new; `--days`."""
