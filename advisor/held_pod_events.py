"""An Event for each pod that our gate still holds after a moment: why, and how to release it.

A pod that is advised at once gets none. Bounded: one for each pod in five minutes, 5 a second; in a burst the pods that
were held first come first, and the others follow while they are still held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from advisor.advice_settings import GATE_SECONDS
from advisor.pods_waiting_for_advice import GatedPods
from kube.events.event_recorder import EventRecorder
from kube.objects.objects import PodInfo
from kube.status.pod_conditions import LastReported
from placement.gate_exemptions import ADVICE

LOOK_SECONDS: Final = 0.2
"""Between two looks: together with `_HELD_SECONDS` less than the second within which people look for a reason."""

EVENTS_A_SECOND: Final = 5.0
EVENTS_AT_ONCE: Final = 50.0

REASON: Final = "ForecastHeld"

_HELD_SECONDS: Final = 0.5
"""A pod that comes alone is advised in a tenth of this, and needs no event."""

_AGAIN_SECONDS: Final = 300.0
_MOST_PODS: Final = 20_000


class HeldPodEvents:
    """`look` is to be called every LOOK_SECONDS by one thread.

    leads     : whether this replica leads: one alone posts
    quota_why : why the quota of its tenant keeps a pod held, '' = none does; may wait for the lock of the tables
    """

    def __init__(
        self, gated: GatedPods, events: EventRecorder, *, leads: Callable[[], bool], quota_why: Callable[[PodInfo], str]
    ) -> None:
        self._gated, self._events, self._leads, self._quota_why = gated, events, leads, quota_why
        self._last = LastReported(_MOST_PODS, again_after=_AGAIN_SECONDS)

    def look(self) -> None:
        """Post what is due, until the rate is used up."""
        if not self._leads():
            return
        for pod in self._gated.held_for(_HELD_SECONDS):
            now = self._events.clock()
            if not self._last.is_news(pod.uid, REASON, now):
                continue
            note = held_note(pod, self._quota_why(pod))
            if not self._events.record(pod, REASON, note, is_warning=False):
                return
            self._last.note(pod.uid, REASON, now)


def held_note(pod: PodInfo, quota_why: str) -> str:
    """Return what the event says. quota_why: see HeldPodEvents."""
    until = (
        f"the quota admits it: {quota_why}"
        if quota_why
        else f"the advisor names its node, {GATE_SECONDS:.0f} s at most"
    )
    return (
        f"The scheduling gate {ADVICE} holds the pod until {until}. "
        f"Why: forecast-scheduler explain {pod.namespace}/{pod.name}. "
        "To release all pods: forecast-scheduler advise --release"
    )
