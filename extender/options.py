"""Settings of the extender's answers, in the section `extender`, and of a scorer that runs elsewhere."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup
from serving.remote_options import RemoteServiceOptions


class RemoteScorerOptions(RemoteServiceOptions):
    """A scorer that runs elsewhere, instead of the one inside."""

    url: str | None = None
    """For instance https://scorer.forecast-scheduler:8080. None: the scorer runs inside; `--scorer`."""


class AnswerOptions(SettingGroup):
    """What the extender answers."""

    shadow: bool = False
    """Compute and write down what would have been advised, and answer neutrally; `--shadow`."""

    score_per_point: float = Field(default=0.2, gt=0, le=100)
    """With the default weights: percent of a node's capacity that one point stands for."""

    weight: int = Field(default=1, ge=1)
    """Weight of the extender in the KubeSchedulerConfiguration. By it the extender predicts which node kube-scheduler
    will take.
    """

    longest_reply: int = Field(default=500, ge=0)
    """Nodes named in a reply to /prioritize: the best and the worst; others get 0 points. 0: all that differ from 0."""

    charge: Duration = Field(default=10, ge=0, le=60)
    """How long the node expected to be taken is charged for a pod whose binding is not seen. It must outlast the time
    that a busy API server takes to show a binding.
    """
