"""Settings of several schedulers that place at the same time: `schedule.shards`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class ShardOptions(SettingGroup):
    """Several replicas place at once: each on the nodes of its own shards.

    Every replica of one deployment has the same settings here. The times of `schedule.lease` hold for shards, too.
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
