"""Victims that belong to a gang count as the whole gang, where it cannot go on without them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kube.objects.objects import PodInfo
from placement.pod_importance import Standing, importance, priority_of


class VictimGangs(Protocol):
    """What preemption asks about gangs; called under the lock of the tables."""

    def group_of(self, pod: PodInfo) -> str | None:
        """The gang of a pod, None = it is in none."""

    def sitting(self, group: str) -> Sequence[PodInfo]:
        """Its members that have a node."""

    def breaks_without(self, group: str, uids: Collection[str]) -> bool:
        """Whether its members that sit, but for these, are fewer than it needs."""


@dataclass(frozen=True, slots=True)
class GangsAfter:
    """Gangs as they are once some pods are evicted."""

    before: VictimGangs
    gone: frozenset[str]

    def group_of(self, pod: PodInfo) -> str | None:
        return self.before.group_of(pod)

    def sitting(self, group: str) -> Sequence[PodInfo]:
        return [pod for pod in self.before.sitting(group) if pod.uid not in self.gone]

    def breaks_without(self, group: str, uids: Collection[str]) -> bool:
        return self.before.breaks_without(group, self.gone.union(uids))


def broken_gangs(victims: Iterable[PodInfo], gangs: VictimGangs) -> list[str]:
    """Gangs that cannot go on without these pods."""
    taken: dict[str, list[str]] = {}
    for pod in victims:
        group = gangs.group_of(pod)
        if group is not None:
            taken.setdefault(group, []).append(pod.uid)
    return [group for group, uids in taken.items() if gangs.breaks_without(group, uids)]


def others_of_broken_gangs(
    victims: Sequence[PodInfo], gangs: VictimGangs | None, standing: Standing = priority_of
) -> list[PodInfo]:
    """All other sitting members of the gangs that cannot go on without these pods, the most important first."""
    if gangs is None:
        return []
    taken = {pod.uid for pod in victims}
    members = (pod for group in broken_gangs(victims, gangs) for pod in gangs.sitting(group))
    return sorted((pod for pod in members if pod.uid not in taken), key=lambda pod: importance(pod, standing))
