"""Which pods go through filters and scores together: those of which one is as good as another for every node.

Pods of a Job or a StatefulSet have labels of their own, and each run of a CronJob is a Job of its own. What that can
change is looked up: affinity terms of pods that sit, the policy, the curve, and what preferences say of owners.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from extender.filters.filter import ClusterView
from extender.framework.profile import SchedulingProfile
from extender.framework.queue.queued import QueuedPod
from scorer.cluster.objects import PodInfo
from scorer.cluster.pod_shape import is_like, is_like_but_for_identity

__all__ = ["Likeness"]


class Likeness:
    """For one cycle, while the lock is held. profiles: by scheduler name."""

    def __init__(self, view: ClusterView, profiles: Mapping[str, SchedulingProfile]) -> None:
        self._view, self._profiles = view, profiles

    @staticmethod
    def grouped(pods: Sequence[QueuedPod]) -> Sequence[QueuedPod]:
        """The same pods, such that those that may be alike stand together: at the first of them, in order.

        A unit of jobs holds pods of many, as they came: taken one by one in turn they would never go together.
        """
        groups: dict[Hashable, list[QueuedPod]] = {}
        for queued in pods:
            pod = queued.pod
            key = (pod.namespace, id(pod.constraints), pod.images, tuple(sorted(pod.requests.items())))
            groups.setdefault(key, []).append(queued)
        return pods if len(groups) == 1 else [queued for group in groups.values() for queued in group]

    def runs(self, pods: Sequence[PodInfo]) -> Iterator[slice]:
        """Runs of like pods, in order."""
        start = 0
        marks: tuple[Hashable, ...] | None = None  # of the first of the run
        for at in range(1, len(pods) + 1):
            if at < len(pods):
                first, pod = pods[start], pods[at]
                if is_like(first, pod):
                    continue
                if is_like_but_for_identity(first, pod) and not _selects(pod):
                    marks = marks or self._marks(first)
                    if marks == self._marks(pod):
                        continue
            yield slice(start, at)
            start, marks = at, None

    def _marks(self, pod: PodInfo) -> tuple[Hashable, ...]:
        """What may differ between pods that are like but for their identity, and matters."""
        view, profile = self._view, self._profiles[pod.scheduler_name]
        terms, namespaces = view.index.terms, view.index.namespaces
        return (
            id(profile.policies.choose(pod).policy),
            -1 if view.cluster.predicted is None else view.cluster.profile(pod),
            frozenset(map(id, terms.anti_affinity.meaning(pod, namespaces))),
            frozenset(map(id, terms.preferences.meaning(pod, namespaces))),
            *(preference.tells_apart(pod) for preference in profile.preferences),
        )


def _selects(pod: PodInfo) -> bool:
    """Whether it says something of other pods' labels, its own kind's maybe."""
    said = pod.constraints
    return bool(
        said.affinity or said.anti_affinity or said.preferred_affinity or said.preferred_anti_affinity or said.spread
    )
