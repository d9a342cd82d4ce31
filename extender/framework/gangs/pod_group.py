"""What matters of a PodGroup: what it asks for, and what its status says."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

from extender.framework.gangs.group_topology import ANYWHERE, GroupTopology
from extender.framework.gangs.labels import group_key
from extender.framework.gangs.minima import Minima
from extender.webhook.stored import Condition

__all__ = ["PodGroupInfo", "PodGroupStatus"]


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


@dataclass(frozen=True, slots=True)
class PodGroupInfo:
    """A PodGroup.

    created          : unix seconds
    version          : resourceVersion
    timeout_seconds  : scheduleTimeoutSeconds, None = the scheduler's own
    problem          : why it cannot be used, '' = it can; minima and topology mean nothing then
    topology         : how close together its members are to be
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

    @property
    def key(self) -> str:
        """As of `group_of` a pod."""
        return group_key(self.namespace, self.name)

    def says_the_same(self, other: PodGroupInfo | None) -> bool:
        """Whether it is the same object that asks for the same; the status may differ."""
        return (
            other is not None
            and (self.key, self.uid, self.problem) == (other.key, other.uid, other.problem)
            and (self.minima, self.timeout_seconds) == (other.minima, other.timeout_seconds)
            and self.topology == other.topology
        )
