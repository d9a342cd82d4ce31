"""Reports of a dry run about pods, in its log only: why they wait, and which pods would have to go."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kube.objects.objects import PodInfo
from kube.status.last_reported import LastReported

logger = logging.getLogger(__name__)

_AGAIN_AFTER_SECONDS: Final = 300.0
_MOST_PODS: Final = 20_000


class LoggedReports:
    """In place of Reports; for any thread. clock: unix seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._told = LastReported(_MOST_PODS, again_after=_AGAIN_AFTER_SECONDS)

    def start(self) -> None:
        """Nothing has to begin."""

    def stop(self) -> None:
        """Nor to end."""

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        now = self._clock()
        with self._lock:
            is_news = self._told.is_news(pod.uid, message, now)
            if is_news:
                self._told.note(pod.uid, message, now)
        level = logging.INFO if is_news else logging.DEBUG
        logger.log(level, "would wait", extra={"pod": _name(pod), "reason": reason, "why": message})

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        self.failed(pod, message, reason=f"WaitingFor{by}")

    def scheduled(self, pod: PodInfo, node: str) -> None:
        self.forget(pod.uid)

    def preempted(self, pod: PodInfo, note: str) -> None:
        logger.info("would be evicted", extra={"pod": _name(pod), "why": note})

    def forget(self, uid: str) -> None:
        with self._lock:
            self._told.forget(uid)


def _name(pod: PodInfo) -> str:
    return f"{pod.namespace}/{pod.name}"
