"""What matters of a PodGroup: what it asks for, and what its status says."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from msgspec import Struct

from kube.decoding.stored_templates import Condition
from placement.pod_groups.group_apis import OURS, GroupApi, group_key
from placement.pod_groups.group_topology import ANYWHERE, GroupTopology
from placement.pod_groups.minima import Minima


class PodGroupStatus(Struct, rename="camel", frozen=True):
    """status as the API server has it. scheduled, conditions: never, where scheduler-plugins' own definition is
    installed, which does not know them."""

    phase: str = ""
    occupied_by: str = ""
    scheduled: int | None = None
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    schedule_start_time: str | None = None
    conditions: tuple[Condition, ...] = ()


class Disruption(Enum):
    """What the loss of members that have a node means to the others.

    BY_MINIMA : nothing until less is left than the group needs, then all go; groups of ours
    SINGLE    : nothing, each may be evicted alone; native groups unless they say `all`
    ALL       : one goes, all go
    """

    BY_MINIMA = auto()
    SINGLE = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True)
class PodGroupInfo:
    """A PodGroup.

    created          : unix seconds
    version          : resourceVersion
    timeout_seconds  : scheduleTimeoutSeconds, None = the scheduler's own
    problem          : why the group is unusable, '' = usable; minima and topology mean nothing then
    topology         : how close together its members are to be
    api              : that it is of
    priority         : that its pods must have; None = whatever they have
    may_preempt      : that its pods must say as well; None = whatever they say
    is_by_annotation : created for the owner of its pods (by_annotation.py)
    """

    namespace: str
    name: str
    uid: str
    generation: int
    created: float
    minima: Minima = field(default_factory=Minima)
    timeout_seconds: float | None = None
    problem: str = ""
    status: PodGroupStatus = field(default_factory=PodGroupStatus)
    version: str = ""
    topology: GroupTopology = ANYWHERE
    api: GroupApi = OURS
    disruption: Disruption = Disruption.BY_MINIMA
    priority: int | None = None
    may_preempt: bool | None = None
    is_by_annotation: bool = False

    @property
    def key(self) -> str:
        """As of `group_of` a pod."""
        return group_key(self.namespace, self.name, self.api)

    def says_the_same(self, other: PodGroupInfo | None) -> bool:
        """Whether it is the same object that asks for the same; the status may differ."""
        return (
            other is not None
            and (self.key, self.uid, self.problem) == (other.key, other.uid, other.problem)
            and (self.minima, self.timeout_seconds) == (other.minima, other.timeout_seconds)
            and (self.topology, self.disruption) == (other.topology, other.disruption)
            and (self.priority, self.may_preempt) == (other.priority, other.may_preempt)
        )
