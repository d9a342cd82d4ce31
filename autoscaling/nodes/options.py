"""Settings of nodes in time: buffers before a ramp, and marks of nodes that the coming hours need."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class BufferKind(Enum):
    """What buffers are written as."""

    AUTO = "auto"
    CAPACITY_BUFFER = "capacity-buffer"
    PLACEHOLDER_PODS = "placeholder-pods"


class BufferOptions(SettingGroup):
    """Room for the pods that autoscaled services are expected to add before a new node could be there."""

    enabled: bool = False
    """Whether buffers are written."""

    namespace: str = Field(default="forecast-scheduler-buffers", min_length=1)
    """Namespace of all objects that are written. It must exist, and hold nothing else."""

    kind: BufferKind = BufferKind.AUTO
    """What is written. auto: CapacityBuffer where the API server has them, otherwise placeholder pods."""

    lead: Duration = Field(default=600.0, ge=60, le=6 * 3600)
    """Time from the start of a new node until its first pod runs, with the intervals of the autoscaler and of this
    service."""

    margin: float = Field(default=0.5, ge=0, le=5)
    """Standard deviations of the forecast's error that a buffer covers, in addition to what is expected."""

    most_share: float = Field(default=0.2, gt=0, le=1)
    """All buffers together are at most this share of what the pods of all known services request now."""

    priority_class: str = Field(default="forecast-scheduler-buffer", min_length=1)
    """PriorityClass of placeholder pods. Its value must be negative, so that every real pod may take their place."""

    image: str = Field(default="registry.k8s.io/pause:3.10", min_length=1)
    """Image of placeholder pods. It is started and does nothing."""


class GuardOptions(SettingGroup):
    """Marks on nodes that the coming hours need. Autoscalers do not remove a node that bears them."""

    enabled: bool = False
    """Whether nodes are marked."""

    horizon: Duration = Field(default=4 * 3600.0, ge=1800, le=24 * 3600)
    """Time that the guard looks ahead. A mark names its end, and is renewed after half of this time. No autoscaler
    reads that end: only the guard, or `autoscale --release`, removes a mark."""

    margin: float = Field(default=1.0, ge=0, le=5)
    """Standard deviations of the forecast's error that the need covers, in addition to what is expected."""

    fill: float = Field(default=0.85, gt=0, le=1)
    """Share of a node's allocatable that pods fill in practice. What is left over is too small for another pod."""

    slack: float = Field(default=0.01, ge=0, le=0.5)
    """Marks begin once the need exceeds what runs by this share, and one more node is released only if the others hold
    the need and this share of it. It keeps marks from coming and going."""

    always: bool = False
    """Whether marks hold the need also while the coming hours need no more than runs now. Karpenter fills nodes
    completely in a descent, and orders some again an hour later; with this it does not, for some more node-hours."""

    most_share: float = Field(default=1.0, gt=0, le=1)
    """At most this share of the nodes is marked. Before a ramp all nodes are needed: with less, some of them are
    removed and ordered again."""
