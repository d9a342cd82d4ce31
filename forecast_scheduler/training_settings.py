"""Settings of the nightly run: where Prometheus is, what to ask it, when a model may be published, who is told."""

from __future__ import annotations

import difflib
from dataclasses import fields
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from forecast.setting_group import Duration, SettingGroup
from trainer.prometheus.queries import Queries

__all__ = ["GateSettings", "PrometheusSettings", "TrainSettings"]

_QUERIES = tuple(field.name for field in fields(Queries))


class PrometheusSettings(SettingGroup):
    """Any server with the Prometheus API: Prometheus, Thanos, Mimir, VictoriaMetrics."""

    url: str | None = None
    """Server that `train` reads if neither `--prometheus` nor `--history` is given: what comes before /api/v1. None:
    `train` works on the history as it is."""

    days: int = Field(default=28, ge=1, le=400)
    """Days that the first run reads back. Later runs read what is new; `--days`."""

    step: Duration = Field(default=300, ge=15, le=3600)
    """Distance of two samples; must divide an hour. Recording rules are evaluated as often."""

    queries: dict[str, str] = Field(default_factory=dict)
    """PromQL in place of the defaults, by name (docs/prometheus.md)."""

    log_source: Literal["auto", "vector", "promtail", "alloy", "fluent-bit", "kubelet", "none"] = "auto"
    """What counts log bytes; auto: the first of these that the server knows."""

    log_rotation_cap_bytes: float = Field(default=50 * 2.0**20, gt=0)
    """The kubelet's containerLogMaxSize x containerLogMaxFiles; only for log_source kubelet."""

    recording_rules: bool = True
    """Use what `forecast-scheduler rules` had recorded, where it was."""

    disk_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s a node can read and write; Prometheus does not know it. None: assumed, if the history is long enough
    (docs/model.md)."""

    network_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s a node can receive and send; None: the speed of its physical interfaces, else assumed."""

    log_capacity: float | None = Field(default=None, gt=0)
    """Bytes/s a node's log collector can take. None: assumed, if the history is long enough (docs/model.md)."""

    max_samples: int = Field(default=2_000_000, ge=1000)
    """Most points asked for in one query; the server's own limit is query.max-samples."""

    parallel: int = Field(default=4, ge=1, le=64)
    """Queries under way at once."""

    bearer_token_file: Path | None = None
    """File with a token, read again for every request."""

    username: str = ""
    """For basic authentication, with password_file."""

    password_file: Path | None = None
    """File with the password."""

    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with every request, for instance {X-Scope-OrgID: team} for Mimir."""

    ca_file: Path | None = None
    """Authorities that sign the server's certificate; None: those of the system."""

    cert_file: Path | None = None
    """Our own certificate, where the server asks for one."""

    key_file: Path | None = None
    """Its key."""

    insecure: bool = False
    """Do not check the server's certificate."""

    timeout: Duration = Field(default=120, gt=0)
    """How long one answer may take."""

    patience: Duration = Field(default=180, ge=0)
    """How long a failing request is repeated; the first one of a run at most 15 s."""

    @field_validator("step")
    @classmethod
    def _divides_an_hour(cls, step: float) -> float:
        if 3600 % step:
            raise ValueError("it must divide an hour, for instance 5m")
        return step

    @field_validator("queries")
    @classmethod
    def _known(cls, queries: dict[str, str]) -> dict[str, str]:
        for name in queries:
            if name not in _QUERIES:
                near = difflib.get_close_matches(name, _QUERIES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known queries are {', '.join(_QUERIES)}"
                raise ValueError(f"{name!r} is no query: {hint}")
        return queries


class GateSettings(SettingGroup):
    """When tonight's model may replace the one in use, per resource (docs/train.md)."""

    worse_than_current: float = Field(default=0.02, ge=0)
    """Share by which the loss of a resource may exceed that of the model in use."""

    lowest_coverage: float = Field(default=0.85, ge=0, le=1)
    """Least share of peaks that its 0.95 bounds must have held."""

    max_held_back_nights: int = Field(default=3, ge=1)
    """After so many nights in a row a resource is published all the same, its bounds widened."""


class TrainSettings(SettingGroup):
    """How `train` runs and whom it tells."""

    gate: GateSettings = GateSettings()

    keep_days: int = Field(default=100, ge=7)
    """Days kept in our own history. A fit looks at 91."""

    lease: Duration = Field(default=900, ge=10)
    """How long a run that was killed keeps others out. Running ones renew it."""

    metrics_file: Path | None = None
    """File of figures for the textfile collector of node-exporter; `--metrics`."""

    pushgateway: str | None = None
    """URL of a Pushgateway that gets the same figures; `--pushgateway`."""

    peaks_report: Path | None = None
    """Page of predicted against actual peaks, written after each run (docs/report.md); see also scorer.report."""

    backend: str | None = None
    """Backend of joblib that runs per-series work: loky (processes here), threading, dask. None: this process;
    `--backend`."""

    jobs: int = Field(default=-1, ge=-1)
    """Pieces of work at once with a backend; -1: as many as it offers; `--jobs`."""

    dask_scheduler: str | None = None
    """Address of an existing Dask cluster, for instance tcp://dask:8786; with backend dask; `--dask-scheduler`."""

    @field_validator("jobs")
    @classmethod
    def _some(cls, jobs: int) -> int:
        if jobs == 0:
            raise ValueError("it must be at least 1, or -1 for as many as the backend offers")
        return jobs
