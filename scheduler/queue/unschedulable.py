"""The unschedulable part: pods that wait for an event, found by the kinds of events that may help them.

Like pods of a unit that the same plugins rejected are a cohort: a hint is asked once for all of them. With 10,000 pods
of 200 units that is 200 questions per event instead of 10,000, and none for an event that no plugin of them listens to.

Which properties of a waiting pod matter to whether it can be placed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from operator import attrgetter
from typing import Final

from kube.objects.objects import PodInfo
from kube.objects.pod_shape import IDENTITY_LABELS
from placement.cluster_events import ClusterEvent, EventKind
from scheduler.queue.plugin_calls import EVERYTHING, PluginCalls, Plugins, Questions
from scheduler.queue.queued_pods import Cohort, QueuedPodInfo

# Not among them: what others write into its status while it waits, like conditions and the node it is nominated to.
_MATTERS: Final = attrgetter(
    "namespace",
    "labels",
    "annotations",
    "owner_uid",
    "requests",
    "nonzero_requests",
    "limits",
    "scheduler_name",
    "priority",
    "constraints",
    "host_ports",
    "volumes",
    "images",
    "image_volumes",
    "gates",
    "may_preempt",
    "needed_features",
)


def matters(before: PodInfo, now: PodInfo) -> bool:
    """Whether a change of a waiting pod is worth another attempt."""
    return before is not now and bool(_MATTERS(before) != _MATTERS(now))


def likeness(pod: PodInfo) -> Hashable:
    """Return a key that is equal for pods that share the answer of every queueing hint. They differ at most in name,
    UID, age and the labels by which controllers distinguish their pods. No hint asks for these, and a storm of Jobs is
    a storm of them.

    Constraints are shared by pods that say the same (PodConstraints), so that their identity will do: two that only are
    equal give two questions with the same answer. Keep the pod as long as the result.
    """
    return (
        id(pod.constraints),
        pod.namespace,
        pod.scheduler_name,
        pod.priority,
        pod.may_preempt,
        pod.nominated_node,
        frozenset(item for item in pod.labels.items() if item[0] not in IDENTITY_LABELS),
        frozenset(pod.annotations.items()),
        frozenset(pod.requests.items()),
        pod.host_ports,
        pod.volumes,
        pod.needed_features,
    )


class UnschedulablePods:
    """Cohorts by what wakes them."""

    def __init__(self, asking: PluginCalls) -> None:
        self._asking = asking
        self._cohorts: dict[Hashable, Cohort] = {}
        self._listening: dict[EventKind, dict[Cohort, Plugins | None]] = {kind: {} for kind in EventKind}

    def add(self, pod: QueuedPodInfo) -> None:
        """It waits from now on."""
        key = (pod.home, pod.rejected_by, likeness(pod.pod))
        cohort = self._cohorts.get(key)
        if cohort is None:
            cohort = self._cohorts[key] = Cohort(key, pod.pod, self._asking.questions(pod.pod, pod.rejected_by))
            for kind in _kinds(cohort.questions):
                self._listening[kind][cohort] = cohort.questions.get(kind)
            # Whatever a filter says of namespaces: their labels may give the pod another policy, with other filters.
            self._listening[EventKind.NAMESPACE_CHANGED][cohort] = None
        cohort.pods[pod] = None
        pod.cohort = cohort

    def discard(self, pod: QueuedPodInfo) -> None:
        cohort = pod.cohort
        if cohort is None:
            return
        pod.cohort = None
        del cohort.pods[pod]
        if not cohort.pods:
            del self._cohorts[cohort.key]
            for listening in self._listening.values():
                listening.pop(cohort, None)

    def woken_by(self, event: ClusterEvent) -> list[Cohort]:
        """Those that the event may help."""
        asking = self._asking
        return [
            cohort
            for cohort, plugins in self._listening[event.kind].items()
            if plugins is None or asking.helps(plugins, cohort.example, event)
        ]

    def __iter__(self) -> Iterator[Cohort]:
        return iter(list(self._cohorts.values()))


def _kinds(questions: Questions) -> Iterator[EventKind]:
    return iter(EventKind if questions is EVERYTHING else questions)
