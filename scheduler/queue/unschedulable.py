"""The unschedulable part: pods that wait for an event, found by the kinds of events that may help them.

Like pods of a unit that the same plugins rejected are a cohort: a hint is asked once for all of them. With 10,000 pods
of 200 units that is 200 questions per event instead of 10,000, and none for an event that no plugin of them listens to.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from placement.cluster_events import ClusterEvent, EventKind
from scheduler.queue.equivalence import likeness
from scheduler.queue.plugin_calls import EVERYTHING, PluginCalls, Plugins, Questions
from scheduler.queue.queued import Cohort, QueuedPod


class UnschedulablePods:
    """Cohorts by what wakes them."""

    def __init__(self, asking: PluginCalls) -> None:
        self._asking = asking
        self._cohorts: dict[Hashable, Cohort] = {}
        self._listening: dict[EventKind, dict[Cohort, Plugins | None]] = {kind: {} for kind in EventKind}

    def add(self, pod: QueuedPod) -> None:
        """It waits from now on."""
        key = (pod.home, pod.rejected_by, likeness(pod.pod))
        cohort = self._cohorts.get(key)
        if cohort is None:
            cohort = self._cohorts[key] = Cohort(key, pod.pod, self._asking.questions(pod.pod, pod.rejected_by))
            for kind in _kinds(cohort.questions):
                self._listening[kind][cohort] = cohort.questions.get(kind)
        cohort.pods[pod] = None
        pod.cohort = cohort

    def discard(self, pod: QueuedPod) -> None:
        cohort = pod.cohort
        if cohort is None:
            return
        pod.cohort = None
        del cohort.pods[pod]
        if not cohort.pods:
            del self._cohorts[cohort.key]
            for kind in _kinds(cohort.questions):
                self._listening[kind].pop(cohort, None)

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
