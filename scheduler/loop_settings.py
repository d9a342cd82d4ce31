"""Settings of the parts of the scheduling loops: the queue, gangs, preemption, the repair of overcommitted nodes,
shards.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from base.setting_group import Duration, SettingGroup


class BackoffOptions(SettingGroup):
    """How long a pod that could not be placed waits before it is tried again. The defaults are kube-scheduler's."""

    initial: Duration = Field(default=1, ge=0, le=600)
    """Wait after the first attempt; doubled with every further one. 0: none."""

    longest: Duration = Field(default=10, ge=0, le=3600)
    """Where doubling ends; at least `initial`."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.longest < self.initial:
            raise ValueError("longest must be at least initial")
        return self


class QueueOptions(SettingGroup):
    """How long pods wait in the parts of the queue."""

    backoff: BackoffOptions = Field(default_factory=BackoffOptions)

    unschedulable_flush: Duration = Field(default=300, gt=0)
    """A pod that no event has woken for this time is tried again."""

    most_events: int = Field(default=10_000, ge=1)
    """Events remembered for pods in flight. A pod that was longer in flight is tried again in any case."""


class GangOptions(SettingGroup):
    """Pods of one PodGroup, placed all or not at all (docs/use/gangs.md)."""

    enabled: bool = True
    """Heed PodGroups. If false, their pods are placed one by one."""

    timeout: Duration = Field(default=60, ge=0)
    """Time from the first failed attempt of a complete group until others go first, for groups without
    scheduleTimeoutSeconds. As in scheduler-plugins."""

    pause: Duration = Field(default=60, ge=0)
    """Time in which a group that is past its timeout is not tried."""


class PreemptionOptions(SettingGroup):
    """Evicting pods of lower priority for one that fits nowhere (docs/use/preemption.md)."""

    enabled: bool = True
    """Evict. If false, pods wait for room."""

    protect_started: Duration = Field(default=60, ge=0)
    """Pods that started less long ago are not evicted: what has just been started, perhaps for having been preempted
    elsewhere, is not evicted again at once. 0: all may be."""

    least_candidates: int = Field(default=8, ge=1)
    """Fewest nodes that are tried one by one for a pod that needs more than requests to leave. Each takes 15 ms at
    1,000 nodes, 50 ms at 5,000, in which nothing else is scheduled. 100 in kube-scheduler's DefaultPreemptionArgs."""

    candidates_share: float = Field(default=0, ge=0, le=1)
    """Share of the nodes that is tried so, if it is more. 0.1 in kube-scheduler's DefaultPreemptionArgs."""

    def most_candidates(self, n_nodes: int) -> int:
        """Return how many of `n_nodes` are tried one by one (calculateNumCandidates)."""
        return max(self.least_candidates, int(n_nodes * self.candidates_share))


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
    """Shards that nodes are parted into; about four for each replica. Replicas with another number place nothing while
    some with the first one live."""

    passes: int = Field(default=1, ge=0, le=16)
    """Further replicas that try a unit which found no room, before the leader looks at the nodes of all."""

    most_difference: float = Field(default=0.1, gt=0, le=1)
    """Nodes move from a shard with more room than the mean to one with less, when they differ by more than this share
    of the mean."""

    balance_every: Duration = Field(default=30, ge=1)
    """Time between two looks at the room of all shards."""

    moves: int = Field(default=20, ge=1, le=500)
    """Most nodes that a replica hands over at once."""

    loan: Duration = Field(default=30, ge=5)
    """Time for which the leader keeps a node that another replica lent it for one unit."""
