"""Sections of the settings that span several rooms: the nightly run, the scorer, the extender, and where the document
of policies is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from base.setting_group import SettingGroup
from extender.answer_settings import AnswerOptions, ExtenderServiceOptions, RemoteScorerOptions
from forecast_scheduler.settings.policy_place import CONFIG_MAP, namespace_and_name
from placement.decisions.decision_settings import DecisionOptions
from scorer.options import ScoringOptions
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.server_settings import ServingOptions


class TrainSettings(SettingGroup):
    """How `train` runs, and where its figures go."""

    keep_days: int = Field(default=100, ge=7)
    """Days kept in our own history. A fit uses 91."""

    metrics_file: Path | None = None
    """File of the run's figures for node-exporter's textfile collector; `--metrics`."""

    pushgateway: str | None = None
    """URL of a Pushgateway that gets the same figures; `--pushgateway`."""

    peaks_report: Path | None = None
    """HTML page of predicted and actual peaks, written after each run (docs/operate/dashboards.md)."""

    backend: str | None = None
    """joblib backend for the work per series: loky, threading or dask. None: this process; `--backend`."""

    jobs: int = Field(default=-1, ge=-1)
    """Pieces of work at once with a backend; -1: as many as it has; `--jobs`."""

    dask_scheduler: str | None = None
    """Address of a Dask cluster for the backend dask, for instance tcp://dask:8786; `--dask-scheduler`."""

    foundation_model: Path | None = None
    """Local .onnx file or its directory, one more predictor (docs/extend/foundation-models.md); `--foundation-model`.
    """

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


class ExtenderSettings(ExtenderServiceOptions, AnswerOptions):
    """Settings of the command `extender`."""

    scheduler_names: list[str] = Field(default_factory=lambda: ["default-scheduler"], min_length=1)
    """Profiles of kube-scheduler that ask the extender, by schedulerName; `explain` goes by them."""

    bind: bool = False
    """Answer /bind; only where bindVerb is set in the KubeSchedulerConfiguration; `--bind`."""

    domain: str = ""
    """Nodes whose label forecast-scheduler.io/domain says something else are filtered out."""

    daemon_schedulers: list[str] = Field(default_factory=lambda: ["daemons"])
    """Profiles of kube-scheduler whose pods of DaemonSets may be on nodes of every domain."""

    standard_filters: list[str] = Field(default_factory=list)
    """Filters of kube-scheduler to run once more, by plugin name; it has run its own before it asks."""

    scorer: RemoteScorerOptions = Field(default_factory=RemoteScorerOptions)
    decisions: DecisionOptions = Field(default_factory=DecisionOptions)


class PolicySettings(SettingGroup):
    """Policies by pod (docs/use/policies.md). Neither file nor config_map: the settings apply to all pods."""

    file: Path | None = None
    """YAML file, looked at twice a second; also that of a mounted ConfigMap; `--policies FILE`."""

    config_map: str | None = None
    """NAMESPACE/NAME of a ConfigMap, which is watched; `--policies configmap:NAMESPACE/NAME`."""

    events: bool = True
    """Tell in events what became of the ConfigMap, and pods that the policy they name is none."""

    @property
    def place(self) -> str | None:
        """As commands take it; None = there is none."""
        if self.config_map is not None:
            return f"{CONFIG_MAP}{self.config_map}"
        return None if self.file is None else str(self.file)

    @field_validator("file", "config_map", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        """So that an option can take the place of the other setting."""
        return None if value == "" else value

    @field_validator("config_map")
    @classmethod
    def _has_both(cls, value: str | None) -> str | None:
        if value is not None:
            namespace_and_name(value)
        return value

    @model_validator(mode="after")
    def _one_place(self) -> PolicySettings:
        if self.file is not None and self.config_map is not None:
            raise ValueError("policies come from a file or from a ConfigMap: leave one of them out")
        return self


class ScorerServing(ServingOptions):
    """Where `scorer` listens, and who may ask."""

    group: ClassVar[str] = "scorer.serving"


class ScorerSettings(ScorerServiceOptions, ScoringOptions):
    """Settings of the command `scorer`, in the section of the same name."""

    serving: ScorerServing = Field(default_factory=ScorerServing)


class KubernetesSettings(SettingGroup):
    """Which cluster all commands read and write."""

    kubeconfig: Path | None = None
    """Names the cluster. None: the one this process runs in, else $KUBECONFIG or ~/.kube/config; `--kubeconfig`."""

    @field_validator("kubeconfig")
    @classmethod
    def _expand_kubeconfig(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()
