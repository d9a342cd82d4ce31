"""Settings of the extender: how it answers, which filters it runs, what it writes down."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from extender.options import AnswerOptions, RemoteScorerOptions
from extender.service.options import ServiceOptions
from placement.decisions.options import DecisionOptions

Share = Annotated[float, Field(gt=0, le=10)]


class ExtenderSettings(ServiceOptions, AnswerOptions):
    """How `extender` runs. It has its scorer inside: the settings under `scorer` count, too, but for serving."""

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

    highest_peaks: dict[str, Share] = Field(default_factory=dict)
    """By resource: share of capacity that a node's predicted peak must not pass, for instance {cpu: 0.9}."""

    scorer: RemoteScorerOptions = Field(default_factory=RemoteScorerOptions)
    decisions: DecisionOptions = Field(default_factory=DecisionOptions)
