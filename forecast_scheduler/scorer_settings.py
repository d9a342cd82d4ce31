"""Settings of the scorer: where it listens, who may ask, what the scores are, how long its inputs may be relied on."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from forecast.setting_group import Duration
from forecast_scheduler.serving_settings import ServingSettings
from scorer.options import ScoringOptions

__all__ = ["ScorerSettings"]


class ScorerSettings(ServingSettings, ScoringOptions):
    """How `scorer` runs."""

    kubeconfig: Path | None = None
    """Cluster to follow. None: the one this process runs in, else $KUBECONFIG or ~/.kube/config; `--kubeconfig`."""

    deadline: Duration = Field(default=10, gt=0)
    """A request is answered by then, if only with 503."""

    node_metrics: bool = True
    """Export the series of each node."""

    service_metrics: bool = True
    """Export the series of each service."""

    report: Path | None = None
    """Page that `report --html` writes, offered at /report with a link on the scorer's page; read at every request
    (docs/report.md)."""

    @field_validator("kubeconfig", "report")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()
