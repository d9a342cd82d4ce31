"""Settings of topology: `node_rules.topology`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class TopologyOptions(SettingGroup):
    """Gangs close together, and cards with fast links (docs/use/topology.md)."""

    gangs: bool = True
    """Heed the topology annotations of PodGroups."""

    node_topologies: bool = True
    """Read NodeResourceTopology objects, if they are installed."""

    settle: Duration = Field(default=120, ge=0)
    """Time after the start of a pod from which what its node publishes is taken to include the pod, even if nothing was
    published since. Twice as long as exporters wait at most by default."""
