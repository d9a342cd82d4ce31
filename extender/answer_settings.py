"""Settings of the section `extender`: its answers, a scorer that runs elsewhere, and its HTTP service."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from base.setting_group import Duration, SettingGroup
from serving.remote_service import RemoteServiceOptions
from serving.server_settings import ServingOptions


class RemoteScorerOptions(RemoteServiceOptions):
    """A scorer that runs elsewhere, instead of the one inside."""

    url: str | None = None
    """For instance https://scorer.forecast-scheduler:8080. None: the scorer runs inside; `--scorer`."""


class AnswerOptions(SettingGroup):
    """What the extender answers."""

    shadow: bool = False
    """Compute and write down what would have been advised, and answer neutrally; `--shadow`."""

    score_per_point: ClassVar[float] = 0.2
    """Percent of a node's capacity that one point stands for, with the default weights. Smaller ones give up more of
    what kube-scheduler's own scores protect, and gain nothing that was measurable (docs/use/extender.md)."""

    weight: int = Field(default=1, ge=1)
    """Weight of the extender in the KubeSchedulerConfiguration. By it the extender predicts which node kube-scheduler
    will take.
    """

    longest_reply: ClassVar[int] = 500
    """Nodes named in a reply to /prioritize, the best and the worst; others get 0 points: nodes in the middle
    decide nothing, and kube-scheduler reads the reply for each pod. 0: all that differ from 0."""

    charge: ClassVar[float] = 10.0
    """Seconds for which the node expected to be taken is charged for a pod whose binding is not seen. It outlasts the
    time that a busy API server takes to show a binding."""


class ExtenderServing(ServingOptions):
    """kube-scheduler can send no token: use client certificates for it."""

    group: ClassVar[str] = "extender.serving"

    port: int = Field(default=8888, ge=0, le=65_535)

    # 5,000 node names of 60 characters are 0.3 MB, 5,000 whole nodes tens of MB.
    max_body_bytes: int = Field(default=4 * 2**20, gt=0)

    # Bindings wait for the API server, many at a time.
    max_concurrent: int = Field(default=512, gt=0)


class ExtenderServiceOptions(SettingGroup):
    """Who may ask, how much at a time, and how long kube-scheduler waits."""

    serving: ExtenderServing = Field(default_factory=ExtenderServing)

    deadline: Duration = Field(default=0.2, gt=0)
    """Past it the answer to /filter, /prioritize and /preempt is neutral: all nodes pass, all get 0 points."""

    receive_timeout: ClassVar[float] = 5.0
    """Seconds until a body must have arrived."""

    threads: ClassVar[int] = 2
    """Threads that answer those three at once. One scheduler asks one question at a time."""

    bind_timeout: ClassVar[float] = 4.0
    """Seconds until /bind is answered: below the extender's httpTimeout, which is 5 s unless configured."""

    bind_threads: ClassVar[int] = 32
    """Bindings under way at once: kube-scheduler binds many pods at a time."""
