"""Asks the advisor which nodes a new pod prefers.

A pod waits for that for a moment only: without an answer it is created as it is, and an advisor that fails is left
alone for a while, so that it delays no pods.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from base.backoff import Backoff
from kube.failure_notice import FailureNotice
from placement.preferred_nodes import PREFERENCES, PreferencesBody
from serving.remote_service import RemoteAddress, RemoteService, ServiceRefused, ServiceUnavailable

logger = logging.getLogger(__name__)

FAILURES_BEFORE_PAUSE: Final = 3
_BACKOFF: Final = Backoff(1.0, 8.0)

_BODY: Final = msgspec.json.Decoder(PreferencesBody)


class AskOutcome(StrEnum):
    """What became of a pod that asks to prefer nodes."""

    PREFERRED = "preferred"
    NONE = "none"
    FAILED = "failed"
    PAUSED = "paused"


class QuestionPauses:
    """When something that fails is asked again: after some failures in a row it is not asked for 1 s, then 2, 4, 8 s.

    For any thread. After a pause one caller tries, and the others go on waiting for what comes of it. Questions that
    were under way when a pause began do not make it longer.
    clock : seconds, monotonic
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._failures, self._again_at, self._is_trying = 0, float("-inf"), False

    def may_ask(self) -> bool:
        with self._lock:
            if self._failures < FAILURES_BEFORE_PAUSE:
                return True
            if (now := self._clock()) < self._again_at:
                return False
            self._again_at, self._is_trying = now + self._pause(), True
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._is_trying = 0, False

    def failed(self) -> None:
        with self._lock:
            if self._failures >= FAILURES_BEFORE_PAUSE and not self._is_trying:
                return
            self._failures, self._is_trying = self._failures + 1, False
            if self._failures >= FAILURES_BEFORE_PAUSE:
                self._again_at = self._clock() + self._pause()

    def _pause(self) -> float:
        return _BACKOFF.seconds(self._failures - FAILURES_BEFORE_PAUSE + 1)


class PreferencesOfAdvisor(Collector):
    """For any thread. Counts what became of its questions, for /metrics."""

    def __init__(self, advisor: RemoteAddress, *, pauses: QuestionPauses | None = None) -> None:
        """Raises InputError: a URL or file that cannot be used."""
        self._seconds, self._pauses = advisor.seconds, pauses or QuestionPauses()
        self._lock = threading.Lock()
        self._service = RemoteService(advisor, "advisor")
        self._notice = FailureNotice(
            logger, "the advisor does not say which nodes pods prefer: they are created without", "it says so again"
        )
        self.outcomes: Final[Counter[AskOutcome]] = Counter()

    def ask(self, pod: Mapping[str, Any], *, dry_run: bool) -> PreferencesBody | None:
        """Return what the pod prefers, None = nothing is known. Never raises."""
        if not self._pauses.may_ask():
            self._count(AskOutcome.PAUSED)
            return None
        body = msgspec.json.encode({"pod": pod, "seconds": self._seconds, "dry_run": dry_run})
        try:
            found = _BODY.decode(self._service.request("POST", PREFERENCES, body))
        except (ServiceUnavailable, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # Anybody may create a pod that is refused, and a refusal comes at once.
            if not isinstance(error, ServiceRefused):
                self._pauses.failed()
            self._notice.failed(str(error))
            self._count(AskOutcome.FAILED)
            return None
        self._pauses.succeeded()
        self._notice.succeeded()
        self._count(AskOutcome.PREFERRED if found.nodes else AskOutcome.NONE)
        return found if found.nodes else None

    def _count(self, outcome: AskOutcome) -> None:
        with self._lock:
            self.outcomes[outcome] += 1

    def close(self) -> None:
        self._service.close()

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "forecast_webhook_preferences",
            "New pods that ask to prefer nodes: given some (preferred), or created without because the advisor names "
            "none (none), gave no answer (failed) or was not asked after failures in a row (paused).",
            labels=["outcome"],
        )
        for outcome in AskOutcome:
            family.add_metric([outcome.value], self.outcomes[outcome])
        yield family
