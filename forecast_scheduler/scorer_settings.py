"""Settings of the scorer: where it listens, who may ask, what the scores are, how long its inputs may be relied on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from forecast.setting_group import Duration, SettingGroup
from forecast_scheduler.serving_settings import ServingSettings

__all__ = ["LadderSettings", "ScorerSettings", "ScoresSettings", "WaterLevelSettings"]

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class WaterLevelSettings(SettingGroup):
    """Of the score spread_or_stack (docs/scores.md)."""

    lower: Share = 0.4
    """Share of the pool of nodes requested up to which pods are spread."""

    upper: Share = 0.6
    """Share of the pool requested from which pods are stacked."""

    hysteresis: Share = 0.05
    """How far the share has to fall before stacking gives way."""

    @model_validator(mode="after")
    def _in_order(self) -> WaterLevelSettings:
        if not self.lower < self.upper:
            raise ValueError("lower must be below upper")
        return self


class ScoresSettings(SettingGroup):
    """Which scores count, and their parameters (docs/scores.md)."""

    weights: dict[str, Weight] = Field(default_factory=lambda: {"predicted_peak": 1.0})
    """Of the scores by name; the weighted mean is the total."""

    request_weights: dict[str, Weight] = Field(default_factory=lambda: {"cpu": 1.0, "memory": 1.0})
    """By Kubernetes resource, of the scores that look at how much is requested."""

    balance_weights: dict[str, Weight] = Field(default_factory=lambda: {"cpu": 1.0, "memory": 1.0})
    """By Kubernetes resource, of balance and balanced_allocation, for instance {nvidia.com/gpu: 3}."""

    usage_weights: dict[str, Weight] = Field(
        default_factory=lambda: {"cpu": 1.0, "memory": 0.25, "disk": 1.0, "network": 1.0, "log": 1.0}
    )
    """By resource, of most_available: 0 leaves a resource out, other weights enter its mean only."""

    shape: dict[int, Annotated[int, Field(ge=0, le=10)]] = Field(default_factory=lambda: {0: 0, 100: 10})
    """Of requested_to_capacity_ratio: utilization in percent -> score 0 to 10."""

    water_levels: WaterLevelSettings = WaterLevelSettings()


class LadderSettings(SettingGroup):
    """How long the scorer's inputs may be relied on (docs/scorer.md)."""

    fresh_model: Duration = Field(default=36 * 3600, gt=0)
    """Up to this age the model was made for today."""

    oldest_model: Duration = Field(default=14 * 86_400, gt=0)
    """Older ones do not enter scores."""

    fresh_usage: Duration = Field(default=300, gt=0)
    """So long a node's last measurement says what it uses now."""

    oldest_state: Duration = Field(default=900, gt=0)
    """So long the cluster as last heard of resembles the real one."""


class ScorerSettings(ServingSettings):
    """How `scorer` runs."""

    kubeconfig: Path | None = None
    """Cluster to follow. None: the one this process runs in, else $KUBECONFIG or ~/.kube/config; `--kubeconfig`."""

    deadline: Duration = Field(default=10, gt=0)
    """A request is answered by then, if only with 503."""

    node_metrics: bool = True
    """Export the series of each node."""

    service_metrics: bool = True
    """Export the series of each service."""

    usage_every: Duration = Field(default=30, ge=1)
    """How often the usage of all nodes is measured."""

    model_every: Duration = Field(default=30, ge=1)
    """How often it is looked whether a new model has been published."""

    overview_every: Duration = Field(default=60, ge=1)
    """How often the peaks of all nodes are computed for page and metrics."""

    scale_out_every: Duration = Field(default=300, ge=1)
    """How often room for replicas still to come is shared out anew."""

    self_check_every: Duration = Field(default=3600, ge=0)
    """How often the tables are compared with a rebuild; 0: only when /v1/self-check is asked."""

    default_run: Duration = Field(default=600, ge=1, le=366 * 86_400)
    """How long a pod of a job runs of which nothing is known, in all commands (docs/jobs.md)."""

    report: Path | None = None
    """Page that `report --html` writes, offered at /report with a link on the scorer's page; read at every request
    (docs/report.md)."""

    scores: ScoresSettings = ScoresSettings()
    ladder: LadderSettings = LadderSettings()

    @field_validator("kubeconfig", "report")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()
