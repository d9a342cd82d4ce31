"""Settings of the extender: how it answers, which filters it runs, what it writes down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from extender.service.options import ServiceOptions
from forecast.setting_group import Duration, SettingGroup

__all__ = ["DecisionSettings", "ExtenderSettings", "RemoteScorerSettings"]

Share = Annotated[float, Field(gt=0, le=10)]


class RemoteScorerSettings(SettingGroup):
    """A scorer that runs elsewhere, instead of the one inside."""

    url: str | None = None
    """For instance https://scorer.forecast-scheduler:8080. None: the scorer runs inside; `--scorer`."""

    token_file: Path | None = None
    """File with the bearer token it asks for."""

    ca: Path | None = None
    """PEM file its certificate is checked against; None: the system's."""

    client_cert: Path | None = None
    """PEM file with the certificate to show it."""

    client_key: Path | None = None
    """PEM file with its key."""


class DecisionSettings(SettingGroup):
    """What is written down of each decision (docs/shadow.md)."""

    log: str | None = None
    """File of JSON lines, - for standard output. None: no log; `--decisions`."""

    max_bytes: int = Field(default=100 * 2**20, ge=0)
    """The file is rotated at this size; 0: never."""

    keep: int = Field(default=5, ge=0)
    """Rotated files kept."""

    events: bool = True
    """Write an event for the pod; never in shadow mode."""

    events_per_second: float = Field(default=5.0, gt=0)
    """More decisions than this get no event."""


class ExtenderSettings(ServiceOptions):
    """How `extender` runs. It has its scorer inside: the settings under `scorer` count, too, but for serving."""

    scheduler_names: list[str] = Field(default_factory=lambda: ["default-scheduler"], min_length=1)
    """Profiles of kube-scheduler that ask the extender, by schedulerName; `explain` goes by them."""

    shadow: bool = False
    """Compute and write down what would have been advised, and answer neutrally; `--shadow`."""

    bind: bool = False
    """Answer /bind; only where bindVerb is set in the KubeSchedulerConfiguration; `--bind`."""

    score_per_point: float = Field(default=0.2, gt=0, le=100)
    """With the default weights: percent of a node's capacity that one point stands for."""

    weight: int = Field(default=1, ge=1)
    """Of the extender in the KubeSchedulerConfiguration, to tell which node kube-scheduler will take."""

    longest_reply: int = Field(default=500, ge=0)
    """Nodes named in a reply to /prioritize: the best and the worst; others get 0 points. 0: all that differ from 0."""

    charge: Duration = Field(default=2, ge=0, le=60)
    """How long the node expected to be taken is charged for a pod whose binding is not seen."""

    domain: str = ""
    """Nodes whose label forecast-scheduler.io/domain says something else are filtered out."""

    daemon_schedulers: list[str] = Field(default_factory=lambda: ["daemons"])
    """Profiles of kube-scheduler whose pods of DaemonSets may be on nodes of every domain."""

    standard_filters: list[str] = Field(default_factory=list)
    """Filters of kube-scheduler to run once more, by plugin name; it has run its own before it asks."""

    highest_peaks: dict[str, Share] = Field(default_factory=dict)
    """By resource: share of capacity that a node's predicted peak must not pass, for instance {cpu: 0.9}."""

    scorer: RemoteScorerSettings = RemoteScorerSettings()
    decisions: DecisionSettings = DecisionSettings()
