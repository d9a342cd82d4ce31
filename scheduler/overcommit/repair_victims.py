"""Which pods have to leave an overcommitted node? Decided from the pods alone; disruption budgets decide when they are
evicted.

Ours only (of our scheduler names), and of these only such as a controller makes anew elsewhere. The newest first: what
came last did the harm, and has done the least work. No more than needed: the newest pod that alone is enough, else the
newest together, without those that turn out not to be needed. A resource of which our pods cannot release enough is
left alone: evicting some would cost work and mend nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kube.objects.objects import PodInfo
from scheduler.overcommit.overcommit import Overcommit, units_of

Gives = Callable[[PodInfo, str], int]
"""What a pod releases of a resource, in whole units."""

_NOT_MADE_ANEW = frozenset({"", "DaemonSet", "Node"})
"""Kinds of owners: none, one that puts the pod back on the same node, and the kubelet's static pods."""


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """victims: newest first; unrepaired: whole units that stay beyond allocatable all the same, by resource."""

    victims: tuple[PodInfo, ...] = ()
    unrepaired: Mapping[str, int] = field(default_factory=dict)


def is_evictable(pod: PodInfo, scheduler_names: Collection[str]) -> bool:
    """Whether it is one of our pods that a controller makes anew, and not about to go anyway."""
    is_ours = pod.scheduler_name in scheduler_names and not pod.stands_in
    return is_ours and pod.owner.kind not in _NOT_MADE_ANEW and bool(pod.owner_uid) and not pod.terminating


def newest_first(pods: Collection[PodInfo]) -> list[PodInfo]:
    """Return pods in the order of their eviction. What has not started is newer than what has; containers start soon
    after the binding, whose time is not in the pod.
    """
    return sorted(pods, key=lambda pod: (_started(pod), pod.created, pod.uid), reverse=True)


def plan_repair(
    overcommit: Overcommit,
    may_go: Callable[[PodInfo], bool],
    *,
    leaving: Collection[str] = (),
    refused: Collection[str] = (),
) -> RepairPlan:
    """Return what to evict now.

    may_go  : see is_evictable
    leaving : UIDs of pods that were evicted, which the watch may not show yet; like terminating ones, and those that
              their kubelet may still reject, they count as gone
    refused : UIDs of pods that may not be evicted now
    """
    leaving = {*leaving, *overcommit.awaited}
    staying = [pod for pod in overcommit.pods if not pod.terminating and pod.uid not in leaving]
    going = [pod for pod in overcommit.pods if pod.terminating or pod.uid in leaving]
    needed = {kind: excess - units_of(going, kind) for kind, excess in overcommit.excess.items()}
    candidates = [pod for pod in staying if pod.uid not in refused and may_go(pod)]
    return plan_relief(candidates, needed, _held)


def plan_relief(candidates: Collection[PodInfo], needed: Mapping[str, int], gives: Gives) -> RepairPlan:
    """Return the fewest of the newest pods that release what is needed, by resource. Resources of which all together
    cannot release enough are left alone.
    """
    newest = newest_first(candidates)
    needed = {kind: units for kind, units in needed.items() if units > 0}
    hopeless = {kind: units for kind, units in needed.items() if sum(gives(pod, kind) for pod in newest) < units}
    possible = {kind: units for kind, units in needed.items() if kind not in hopeless}
    return RepairPlan(tuple(_fewest(newest, possible, gives)), hopeless)


def _fewest(candidates: Sequence[PodInfo], needed: Mapping[str, int], gives: Gives) -> list[PodInfo]:
    """Newest first. All candidates together are enough."""
    left, chosen, open_needs = list(candidates), [], dict(needed)
    while open_needs:
        relieving = [pod for pod in left if any(gives(pod, kind) for kind in open_needs)]
        alone = (pod for pod in relieving if _is_enough([pod], open_needs, gives))
        pod = next(alone, relieving[0])
        chosen.append(pod)
        left.remove(pod)
        open_needs = {kind: units - gives(pod, kind) for kind, units in open_needs.items()}
        open_needs = {kind: units for kind, units in open_needs.items() if units > 0}
    for pod in reversed(newest_first(chosen)):  # the oldest are the first to be spared
        without = [other for other in chosen if other is not pod]
        if _is_enough(without, needed, gives):
            chosen = without
    return newest_first(chosen)


def _is_enough(pods: Sequence[PodInfo], needed: Mapping[str, int], gives: Gives) -> bool:
    return all(sum(gives(pod, kind) for pod in pods) >= units for kind, units in needed.items())


def _held(pod: PodInfo, kind: str) -> int:
    return units_of([pod], kind)


def _started(pod: PodInfo) -> float:
    return math.inf if pod.started is None else pod.started
