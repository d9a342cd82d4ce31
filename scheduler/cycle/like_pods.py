"""Which pods go through filters and scores together: those of which one is as good as another for every node.

Pods of a Job or a StatefulSet have labels of their own, and each run of a CronJob is a Job of its own. What that can
change is looked up: affinity terms of pods that sit, the policy, the curve, and what preferences and filters say of
owners. Filters may look at times, too: pods of one Job share theirs, but between Jobs, and of pods without a Job, they
differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from kube.objects.objects import PodInfo
from kube.objects.pod_shape import is_like, is_like_but_for_identity
from placement.filters.filter import ClusterView, Filter, PlainFilter
from scheduler.profile import SchedulingProfile
from scheduler.queue.queued_pods import QueuedPodInfo


class Likeness:
    """For one cycle, while the lock is held. profiles: by scheduler name."""

    def __init__(self, view: ClusterView, profiles: Mapping[str, SchedulingProfile]) -> None:
        self._view, self._profiles = view, profiles
        self._telling: dict[int, tuple[tuple[Filter, ...], tuple[Filter, ...]]] = {}  # by id of the filters

    @staticmethod
    def grouped(pods: Sequence[QueuedPodInfo]) -> Sequence[QueuedPodInfo]:
        """The same pods, such that those that may be alike stand together: at the first of them, in order.

        A unit of jobs holds pods of many, as they came: taken one by one in turn they would never go together. Those of
        one Job, which are alike to the last label, stand together among them: the tables seat them at once.
        """
        groups: dict[Hashable, dict[str, list[QueuedPodInfo]]] = {}
        for queued in pods:
            pod = queued.pod
            key = (pod.namespace, id(pod.constraints), pod.images, tuple(sorted(pod.requests.items())))
            groups.setdefault(key, {}).setdefault(pod.owner_uid, []).append(queued)
        return [queued for owners in groups.values() for of_owner in owners.values() for queued in of_owner]

    def runs(self, pods: Sequence[PodInfo]) -> Iterator[slice]:
        """Runs of like pods, in order."""
        start = 0
        telling = self._those_that_tell(pods[0]) if pods else ()
        told = _told(pods[0], telling) if pods else ()  # of the first of the run, as are the marks
        marks: tuple[Hashable, ...] | None = None
        for at in range(1, len(pods) + 1):
            if at < len(pods):
                first, pod = pods[start], pods[at]
                if is_like(first, pod):
                    if told == _told(pod, telling):
                        continue
                elif is_like_but_for_identity(first, pod) and not _selects(pod):
                    marks = marks or self._marks(first, telling)
                    if marks == self._marks(pod, telling):
                        continue
                telling = self._those_that_tell(pod)
                told = _told(pod, telling)
            yield slice(start, at)
            start, marks = at, None

    def _marks(self, pod: PodInfo, telling: tuple[Filter, ...]) -> tuple[Hashable, ...]:
        """What may differ between pods that are like but for their identity, and matters. telling: of the first."""
        view, profile = self._view, self._profiles[pod.scheduler_name]
        filters: tuple[object, ...] = telling
        terms, namespaces = view.index.terms, view.index.namespaces
        return (
            id(profile.policies.choose(pod).policy),
            -1 if view.cluster.predicted is None else view.cluster.profile(pod),
            frozenset(map(id, terms.anti_affinity.meaning(pod, namespaces))),
            frozenset(map(id, terms.preferences.meaning(pod, namespaces))),
            *(preference.tells_apart(pod) for preference in profile.preferences if preference not in filters),
            *_told(pod, telling),
        )

    def _those_that_tell(self, pod: PodInfo) -> tuple[Filter, ...]:
        """Filters of the pod's profile and policy by which pods may differ that are alike otherwise."""
        profile = self._profiles.get(pod.scheduler_name)
        if profile is None:
            return ()
        filters = profile.filters_of(pod)
        known = self._telling.get(id(filters))
        if known is None or known[0] is not filters:
            telling = tuple(one for one in filters if type(one).tells_apart is not PlainFilter.tells_apart)
            known = self._telling[id(filters)] = filters, telling
        return known[1]


def _told(pod: PodInfo, telling: tuple[Filter, ...]) -> tuple[Hashable, ...]:
    return tuple(one.tells_apart(pod) for one in telling)


def _selects(pod: PodInfo) -> bool:
    """Whether it says something of other pods' labels, its own kind's maybe."""
    said = pod.constraints
    return bool(
        said.affinity or said.anti_affinity or said.preferred_affinity or said.preferred_anti_affinity or said.spread
    )
