"""Settings of the nightly run: when a model may be published, and where its figures go."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from base.setting_group import Duration, SettingGroup
from trainer.gate.options import GateLimits


class TrainSettings(SettingGroup):
    """How `train` runs, and where its figures go."""

    gate: GateLimits = Field(default_factory=GateLimits)

    keep_days: int = Field(default=100, ge=7)
    """Days kept in our own history. A fit looks at 91."""

    lease: Duration = Field(default=900, ge=10)
    """How long a run that was killed keeps others out. Running ones renew it."""

    metrics_file: Path | None = None
    """File of figures for the textfile collector of node-exporter; `--metrics`."""

    pushgateway: str | None = None
    """URL of a Pushgateway that gets the same figures; `--pushgateway`."""

    peaks_report: Path | None = None
    """Page of predicted against actual peaks, written after each run (docs/operate/report.md).
    See also scorer.report."""

    backend: str | None = None
    """Backend of joblib that runs per-series work: loky (processes here), threading, dask. None: this process;
    `--backend`."""

    jobs: int = Field(default=-1, ge=-1)
    """Pieces of work at once with a backend; -1: as many as it offers; `--jobs`."""

    dask_scheduler: str | None = None
    """Address of an existing Dask cluster, for instance tcp://dask:8786; with backend dask; `--dask-scheduler`."""

    foundation_model: Path | None = None
    """Local .onnx file, or a directory that holds one: one more predictor (docs/extend/foundation-models.md). Nothing
    is downloaded. Other commands that fit use it, too; `--foundation-model`."""

    @field_validator("jobs")
    @classmethod
    def _some(cls, jobs: int) -> int:
        if jobs == 0:
            raise ValueError("it must be at least 1, or -1 for as many as the backend offers")
        return jobs

    @field_validator("foundation_model")
    @classmethod
    def _is_local(cls, path: Path | None) -> Path | None:
        if path is not None and ":/" in str(path):
            raise ValueError("it must be a local path, nothing is downloaded: fetch the model first, and name the file")
        return path
