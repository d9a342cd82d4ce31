"""Settings of the load ahead: `autoscale.replicas`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class ReplicaOptions(SettingGroup):
    """The load that services are expected to have shortly, for HorizontalPodAutoscalers and KEDA."""

    lead: Duration = Field(default=900, ge=60, le=4 * 3600)
    """How far ahead: the highest load between now and then counts. It should cover the start-up time of a pod, and of a
    node where nodes are added."""

    ceiling: float = Field(default=3, ge=1, le=100)
    """The expected load is at most this many times what is used now: a wrong forecast adds no more replicas."""

    window: Duration = Field(default=120, ge=30, le=1800)
    """What is used now is the mean over this time. At least four times the scrape interval."""

    fresh: Duration = Field(default=120, ge=1, le=3600)
    """A load that was worked out longer ago is not said any more: the autoscaler falls back on its other metrics."""

    resources: tuple[Literal["cpu", "memory", "disk", "network"], ...] = ("cpu",)
    """Resources of which the load ahead is worked out: one query each for the pods of the whole cluster."""
