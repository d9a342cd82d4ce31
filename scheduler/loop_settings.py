"""Settings of the parts of the scheduling loops: the queue, gangs, preemption, the repair of overcommitted nodes,
shards.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from base.setting_group import SettingGroup


class QueueOptions(SettingGroup):
    """How long pods wait in the parts of the queue. Times as in kube-scheduler."""

    backoff_initial: ClassVar[float] = 1.0
    """Seconds from the first failed attempt to the next; twice as many after each further one."""

    backoff_longest: ClassVar[float] = 10.0
    """Seconds where doubling ends."""

    unschedulable_flush: ClassVar[float] = 300.0
    """Seconds after which a pod that no event has woken is tried again."""

    most_events: ClassVar[int] = 10_000
    """Events remembered for pods in flight: a few seconds of a large cluster. A pod that is longer in flight is tried
    again in any case."""


class GangOptions(SettingGroup):
    """Pods of one PodGroup, placed all or not at all (docs/use/gangs.md)."""

    enabled: bool = True
    """Heed PodGroups. If false, their pods are placed one by one."""

    timeout: ClassVar[float] = 60.0
    """Seconds from the first failed attempt of a complete group until others go first, if the group has no
    scheduleTimeoutSeconds. As in scheduler-plugins."""

    pause: ClassVar[float] = 60.0
    """Seconds in which a group that is past its timeout is not tried: as long as it had for its first tries."""


class PreemptionOptions(SettingGroup):
    """Evicting pods of lower priority for one that fits nowhere (docs/use/preemption.md)."""

    enabled: bool = True
    """Evict. If false, pods wait for room."""

    protect_started: ClassVar[float] = 60.0
    """Seconds after its start in which a pod is not evicted: it may have been preempted elsewhere just before."""

    least_candidates: ClassVar[int] = 8
    """Nodes that are tried one by one for a pod that needs more than requests to leave. Each takes 15 ms at 1,000
    nodes, 50 ms at 5,000, in which nothing else is scheduled. kube-scheduler tries 100, or a tenth of the nodes."""


class RepairOptions(SettingGroup):
    """What is done where requests on a node pass its allocatable (docs/use/scheduling.md)."""

    enabled: bool = True
    """Evict our newest pods there. If false, overcommits are only counted and reported."""


class ShardOptions(SettingGroup):
    """Several replicas place at once: each on the nodes of its own shards.

    Every replica of one deployment has the same settings here. The times of `schedule.leader_election` hold for shards,
    too.
    """

    enabled: bool = False
    """All replicas place pods, each on its own nodes, instead of one replica on all; `--shards`."""

    count: int = Field(default=16, ge=1, le=256)
    """Shards that nodes are parted into; about four for each replica. All replicas need the same number."""

    passes: ClassVar[int] = 1
    """Further replicas that try a unit which found no room, before the leader looks at the nodes of all. Each further
    one delays every unit that fits nowhere by a cycle."""

    most_difference: ClassVar[float] = 0.1
    """Share of the mean room by which shards may differ before nodes move. Less moves nodes for noise."""

    balance_every: ClassVar[float] = 30.0
    """Seconds between two looks at the room of all shards: nodes that moved have been heard of by then."""

    moves: ClassVar[int] = 20
    """Most nodes that a replica hands over at once, so that the next look sees what it brought."""

    loan: ClassVar[float] = 30.0
    """Seconds for which the leader keeps a node that another replica lent it for one unit: it is bound by then."""
