"""What a filter or preference asks about gangs; scheduler loops answer from GangDirectory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kube.objects.objects import PodInfo
from placement.pod_groups.group_topology import GroupTopology


class Gangs(Protocol):
    """Gangs by the key of their PodGroup, namespace/name. All methods are for the thread that places pods."""

    def group_of(self, pod: PodInfo) -> str | None:
        """Return the gang of a pod, None for a pod without one."""

    def topology(self, group: str) -> GroupTopology:
        """Return how close together the members are to be."""

    def sitting(self, group: str) -> Sequence[PodInfo]:
        """Return the members that have a node."""

    def waiting(self, group: str) -> Sequence[PodInfo]:
        """Return the members that wait for a node."""

    def in_placing_order(self, group: str, pods: Sequence[PodInfo]) -> list[int]:
        """Return positions in `pods`, the first to place first."""

    def shortfall(self, group: str, placed: Sequence[PodInfo]) -> str:
        """Return what the gang lacks if only `placed` join its sitting members; empty if its minima are met."""
